/** Who used which thread under `enforcement: observe`, which makes no user an owner. Times are milliseconds since the epoch. */
import type { ThreadKey } from './thread.ts'

export interface ObservedThread extends ThreadKey {
  /** The users who ran the thread, earliest first; more than one are a conflict. */
  readonly runners: readonly string[]
  readonly agentId: string
  readonly firstUsedAt: number
  readonly lastUsedAt: number
}

export interface ObservationStore {
  /** Records nothing for a thread without a run or a row: callers make up ids. `agentId` is `''` if none was named. */
  observe(key: ThreadKey, userId: string, agentId: string, use: 'run' | 'other', now: number): Promise<void>
  unowned(): Promise<number>
  /** Threads that were run under `observe` and have no row, in key order. */
  observed(after: ThreadKey | null, limit: number): Promise<readonly ObservedThread[]>
}
