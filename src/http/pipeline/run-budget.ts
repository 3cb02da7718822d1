/** Charges the tokens of one request to its budgets: once, when its run is over or the gateway sees no more of it. */
import type { BudgetUse } from '../../core/decide/limits.ts'
import { addTokens } from '../../core/wire/run-events.ts'
import { makeRunMeter, type RunMeter } from '../../core/wire/run-meter.ts'
import type { RunEnd, Reservation, TokenCounters } from '../../limits/port.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'

/** `not-started`: nothing was used. `upstream`: the upstream has ended its answer. `gateway`: the run may be going on. */
export type SeenEnd = 'not-started' | 'upstream' | 'gateway'

export interface RunBudget {
  /** From now on, a request of which the gateway sees nothing more may have started a run. */
  sent(): void
  /** @param form null for an answer whose events the gateway cannot read: it then sees no end of the run */
  answered(form: 'events' | 'frames' | null): void
  /** @returns false once a budget whose rule ends runs is used up */
  see(chunk: Uint8Array): boolean
  /** Only the first call has an effect. */
  over(end: SeenEnd): void
}

export interface RunBudgetParts {
  readonly uses: readonly BudgetUse[]
  readonly reservation: Reservation
  readonly counters: Pick<TokenCounters, 'settle'>
  readonly metrics: Pick<RequestMetrics, 'tokens'>
  /** The bytes of the request's body. */
  readonly sent: number
}

export function makeRunBudget({ uses, reservation, counters, metrics, sent }: RunBudgetParts): RunBudget {
  let allowed = Infinity
  for (const [at, { onExceeded }] of uses.entries()) {
    if (onExceeded === 'end') allowed = Math.min(allowed, reservation.left[at] ?? Infinity)
  }
  let meter: RunMeter = makeRunMeter(null, sent)
  let isReadable = true
  let isSent = false
  let isOver = false

  const settle = (reported: number, estimated: number, end: RunEnd): void => {
    metrics.tokens('reported', reported)
    metrics.tokens('estimated', estimated)
    void counters.settle(reservation.id, addTokens(reported, estimated), end)
  }
  return {
    sent: () => void (isSent = true),
    answered(form) {
      isReadable = form !== null
      meter = makeRunMeter(form, sent)
    },
    see(chunk) {
      meter.see(chunk)
      // What a run has used at its end is used: an error after its last event would not be one.
      if (allowed === Infinity || meter.isRunOver()) return true
      const { reported, estimated } = meter.count()
      return reported + estimated <= allowed
    },
    over(end) {
      if (isOver) return
      isOver = true
      if (!isSent || end === 'not-started') {
        settle(0, 0, 'seen')
        return
      }
      if (end === 'upstream') meter.end()
      const { reported, estimated } = meter.count()
      const hasSeenEnd = meter.isRunOver() || (end === 'upstream' && isReadable)
      settle(reported, estimated, hasSeenEnd ? 'seen' : 'unseen')
    },
  }
}
