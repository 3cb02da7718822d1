/** A table that is measured on. */
import type { Store } from '../../../src/store/port/store.ts'
import type { Access } from '../../support/plans.ts'
import type { Sent } from '../../support/statements.ts'

export const STORES = ['sqlite', 'postgres'] as const

/** Which store. */
export type StoreKind = (typeof STORES)[number]

/** It, and what can be asked of it. */
export interface Table {
  readonly store: StoreKind
  /** Its file, or the URL of its database. */
  readonly place: string
  /**
   * Opens the store, as a gateway does.
   * @param cache how many threads it remembers
   */
  open(cache: number): Promise<Store>
  /** On the disk, with all indexes. */
  bytes(): Promise<number>
  /** Microseconds of CPU that a server has spent on the queries so far; null where there is none, or it can't be seen. */
  serverCpu(): Promise<number | null>
  version(): Promise<string>
  /** What a statement reads that was sent; what it writes is undone. */
  accesses(sent: Sent): Promise<readonly Access[]>
  /** Ends what was opened to tell this. */
  close(): Promise<void>
}

/** Is told how far a table is: so many rows, or so many of the indexes, which come after them. */
export type Tell = (what: 'rows' | 'indexes', done: number, of: number) => void
