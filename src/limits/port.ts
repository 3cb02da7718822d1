/** The port of the request counters: this process's memory, or counters that replicas share. */
import type { BudgetUse, Rate } from '../core/decide/limits.ts'
import type { LimitState } from '../core/reasons.ts'

export type RateName = 'requests' | 'runs' | 'newThreads' | 'grants'

/** Values that survive a structured clone: workers ask their primary. */
export interface TokenCounters {
  /** Sets tokens aside in all budgets, or in none. Call `settle` once for each reservation. */
  reserve(uses: readonly BudgetUse[]): Promise<Reservation | LimitState>
  /** Releases the tokens that are set aside, and charges `tokens`. `unseen`: at least those set aside. Never rejects. */
  settle(reservation: string, tokens: number, end: RunEnd): Promise<void>
  spending(counters: readonly TokenCounter[]): Promise<readonly Spending[]>
}

export type RunEnd = 'seen' | 'unseen'

export type TokenCounter = Pick<BudgetUse, 'who' | 'window'>

export interface Reservation {
  readonly id: string
  /** Tokens that the run may use, in each budget: neither spent nor set aside for other runs. */
  readonly left: readonly number[]
}

/** In tokens and milliseconds. */
export interface Spending {
  readonly spent: number
  /** Set aside for open runs, and their number. */
  readonly reserved: number
  readonly open: number
  /** 0 where no window has begun. */
  readonly resetsIn: number
}

export interface Limiter extends TokenCounters {
  /** Null if one was left. `who` comes from countersOf, with the rule for a rule's limit. */
  take(name: RateName, who: string, rate: Rate): Promise<LimitState | null>
  /** Takes one of the streams of a counter. The returned function gives it back; call it once. */
  open(who: string, most: number): Promise<(() => void) | LimitState>
}
