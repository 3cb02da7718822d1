/** The port of the request counters: this process's memory, or counters that replicas share. */
import type { LimitState } from '../core/reasons.ts'
import type { Rate } from '../core/decide/rules.ts'

export type RateName = 'requests' | 'runs' | 'newThreads' | 'grants'

export interface Limiter {
  /** Null if one was left. `who` comes from callerKey, with the rule for a rule's limit. */
  take(name: RateName, who: string, rate: Rate): Promise<LimitState | null>
  /** Takes one of the caller's streams. The returned function gives it back; call it once. */
  open(who: string, most: number): Promise<(() => void) | LimitState>
}
