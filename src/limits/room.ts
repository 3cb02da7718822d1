/** Whether a run may start within its budgets, for all kinds of counters alike. */
import type { BudgetUse } from '../core/decide/limits.ts'
import type { LimitState } from '../core/reasons.ts'
import type { Spending } from './port.ts'

/** Another run may end at any moment. */
const OPEN_RETRY_MS = 1000

/**
 * Only a run that is alone may use more than is left. So the spent tokens exceed the limit by one run at most, as long as the runs
 * beside it use no more than was set aside for them.
 * @returns the refusal that lasts longest, or the tokens that are left in each budget
 */
export function roomFor(uses: readonly BudgetUse[], spending: readonly Spending[]): readonly number[] | LimitState {
  const left: number[] = []
  let refusal: LimitState | null = null
  for (const [at, { limit, window, reserve }] of uses.entries()) {
    const { spent, reserved, open, resetsIn } = spending[at] ?? NOTHING_SPENT
    const mayStart = spent < limit && (open === 0 || spent + reserved + reserve <= limit)
    const retryAfter = spent >= limit ? resetsIn : OPEN_RETRY_MS
    if (!mayStart && retryAfter > (refusal?.retryAfter ?? -1)) refusal = { name: 'tokens', most: limit, window, retryAfter }
    left.push(limit - spent - reserved)
  }
  return refusal ?? left
}

export const NOTHING_SPENT: Spending = { spent: 0, reserved: 0, open: 0, resetsIn: 0 }
