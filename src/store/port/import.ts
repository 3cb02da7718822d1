/** Import of rows, for operators. */
import type { ThreadRow } from './administration.ts'

export type ImportedThread = Omit<ThreadRow, 'deletedAt' | 'provisional'>

/** `conflict`: another owner, a tombstone, or another user was seen under `observe`. The row is unchanged then. */
export type ImportOutcome =
  | { readonly outcome: 'added' | 'same' }
  | { readonly outcome: 'conflict'; readonly with: 'owner' | 'observed' | 'deleted'; readonly users: readonly string[] }

export interface ImportOptions {
  readonly dryRun: boolean
  /** True to import a row although other users were seen on its thread under `observe`. */
  readonly settleConflicts: boolean
}

export interface ImportStore {
  /** Handles the rows independently, in one atomic step. Never replaces an owner. */
  import(rows: readonly ImportedThread[], options: ImportOptions): Promise<readonly ImportOutcome[]>
}
