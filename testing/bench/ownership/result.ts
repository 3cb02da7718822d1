/** What comes of measuring the ownership table. */
import type { Machine } from '../machine.ts'
import type { Measured } from '../rounds.ts'
import type { StoreKind } from './table.ts'

/** How much is in a table. */
export type Size = 'small' | 'large'

/** A table that was built. */
export interface BuiltTable {
  readonly store: StoreKind
  readonly size: Size
  readonly rows: number
  readonly bytes: number
  readonly buildSeconds: number
}

/** An operation on a table. */
export interface MeasuredOperation extends Measured {
  readonly operation: string
  readonly title: string
  readonly store: StoreKind
  readonly size: Size
  /** How many statements it sends, with those that begin and end transactions. */
  readonly statements: number
  /** What they read, and by which index: `threads by threads_pkey`. */
  readonly reads: readonly string[]
}

/** All of it. */
export interface OwnershipResult {
  /** The day, as YYYY-MM-DD. */
  readonly date: string
  readonly machine: Machine
  /** What the stores are, and how they are set. */
  readonly versions: readonly string[]
  /** For each operation on each table. */
  readonly seconds: number
  readonly tables: readonly BuiltTable[]
  readonly operations: readonly MeasuredOperation[]
}
