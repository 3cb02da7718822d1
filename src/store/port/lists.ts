/** Lists of threads, for runtimes without a list of their own. */
import type { Reader, Right } from '../../core/decide/sharing.ts'
import type { ThreadRow } from './administration.ts'

/** Times are milliseconds since the epoch. */
export interface ListedThread extends Omit<ThreadRow, 'scope' | 'lastUsedAt' | 'deletedAt'> {
  readonly granted: Right | null
  readonly updatedAt: number
}

/** Threads last used first; those used at the same time by id. */
export interface ListWindow {
  readonly agentId: string | null
  readonly includeArchived: boolean
  readonly after: { readonly updatedAt: number; readonly threadId: string } | null
  readonly limit: number
}

export interface ListStore {
  /** One query: live rows that the reader owns or was granted; with `everybody`, those of all users. */
  listed(scope: string, reader: Reader | 'everybody', window: ListWindow): Promise<readonly ListedThread[]>
}
