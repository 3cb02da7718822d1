/** Import of rows, for operators. */
import type { ThreadRow } from './administration.ts'

export type ImportedThread = Omit<ThreadRow, 'deletedAt' | 'provisional'>

/**
 * The result for one imported row. `same`: the row existed with the same owner. `conflict`: the row has another owner, another
 * user was seen on it under `observe`, or it is deleted; then nothing is changed.
 */
export type ImportOutcome =
  | { readonly outcome: 'added' | 'same' }
  | { readonly outcome: 'conflict'; readonly with: 'owner' | 'observed' | 'deleted'; readonly users: readonly string[] }

export interface ImportOptions {
  /** True to report the outcomes and change nothing. */
  readonly dryRun: boolean
  /** True to import a row although others were seen on its thread under `observe`: the operator has decided. */
  readonly settleConflicts: boolean
}

export interface ImportStore {
  /** Imports rows independently of each other, in one step; an existing owner is never replaced. */
  import(rows: readonly ImportedThread[], options: ImportOptions): Promise<readonly ImportOutcome[]>
}
