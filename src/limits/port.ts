/** The port of the request counters: this process's memory, or counters that replicas share. */
import type { LimitState } from '../core/reasons.ts'
import type { Rate } from '../core/decide/rules.ts'

export type RateName = 'requests' | 'runs' | 'newThreads' | 'grants'

export interface Limiter {
  /**
   * Takes one from what a caller may do per time.
   * @param who the caller, from callerKey; with the rule where a rule's limit is counted
   * @returns null if there was one left, or the state of the limit
   */
  take(name: RateName, who: string, rate: Rate): Promise<LimitState | null>
  /**
   * Takes one of the streams that a caller may have open at once.
   * @returns a function to call once to give it back, or the state of the limit
   */
  open(who: string, most: number): Promise<(() => void) | LimitState>
}
