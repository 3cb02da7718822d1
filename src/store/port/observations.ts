/** Which user used which thread under `enforcement: observe`. It makes no user an owner. */
import type { ThreadKey } from './thread.ts'

export interface ObservedThread extends ThreadKey {
  /** The users who ran it, earliest first; more than one are a conflict. */
  readonly runners: readonly string[]
  readonly agentId: string
  /** Milliseconds since the epoch. */
  readonly firstUsedAt: number
  readonly lastUsedAt: number
}

export interface ObservationStore {
  /**
   * Records that the upstream served a user on a thread; notes the time of use at most once a minute. Records nothing for a
   * thread that no user ran and that has no row: ids are easily made up.
   * @param use a thread begins with a run
   * @param agentId `''` where the request named none
   * @param now milliseconds since the epoch
   */
  observe(key: ThreadKey, userId: string, agentId: string, use: 'run' | 'other', now: number): Promise<void>
  unowned(): Promise<number>
  /**
   * Threads that were run under `observe` and have no row, in the order of their keys.
   * @param after the last thread of the previous page, or null for the first page
   */
  observed(after: ThreadKey | null, limit: number): Promise<readonly ObservedThread[]>
}
