/**
 * What the gateway asks of a counter of requests. Behind this seam it may be this process's own memory, or one that
 * replicas share.
 */
import type { LimitState } from '../core/reasons.ts'
import type { Rate } from '../core/decide/rules.ts'

/** What is counted per time, as the configuration calls it. */
export type RateName = 'requests' | 'runs' | 'newThreads' | 'grants'

export interface Limiter {
  /**
   * Takes one from what a caller may do per time.
   * @param who the caller, as callerKey gives it; with the rule where it is counted for one
   * @returns null if there was one left, or how the limit stands
   */
  take(name: RateName, who: string, rate: Rate): Promise<LimitState | null>
  /**
   * Takes one of the streams that a caller may have open at once.
   * @returns what gives it back, once; or how the limit stands
   */
  open(who: string, most: number): Promise<(() => void) | LimitState>
}
