/** What one request has taken of its caller's limits: each limit once, however often the request is decided. */
import type { Permit } from '../../core/decide/decide.ts'
import { budgetUses, countersOf, type Rates, type StreamLimits, type TokenBudgets } from '../../core/decide/limits.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { refuse, type LimitState, type Refusal } from '../../core/reasons.ts'
import { tokensOfRequest } from '../../core/wire/run-meter.ts'
import type { Limiter, RateName } from '../../limits/port.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'
import { makeRunBudget, type RunBudget } from './run-budget.ts'

export interface CallerLimits {
  readonly requests: Rates
  readonly runs: Rates
  readonly newThreads: Rates
  readonly streams: StreamLimits
  readonly tokens: TokenBudgets
}

/** What the request has taken, and gives back when its answer is over. */
export interface LimitLeases {
  readonly caller: string
  readonly principal: Principal
  taken: readonly RateName[]
  streams: readonly (() => void)[] | null
  budget: RunBudget | null
  isOver: boolean
}

/** Takes the limits in this order. Null where nothing is limited: then there is nothing to await. */
export function takeLimits(
  leases: LimitLeases,
  permit: Permit,
  limits: CallerLimits,
  limiter: Limiter,
): Promise<Refusal | null> | null {
  const { route } = permit.descriptor
  const { rule } = permit
  const { requests = 'off', runs = limits.runs, streams = limits.streams, newThreads = limits.newThreads } = rule.limits
  const steps: (() => Promise<Refusal | null>)[] = []
  if (requests !== 'off') {
    steps.push(() =>
      count(leases, limiter, 'requests', 'requests-limited', requests, (counter) => JSON.stringify(['rule', rule.name, counter])),
    )
  }
  if (runs !== 'off' && route.unknownThread === 'claim') steps.push(() => count(leases, limiter, 'runs', 'runs-limited', runs))
  if ((permit.begins || route.copiesThread === true) && newThreads !== 'off')
    steps.push(() => countNewThread(leases, limiter, newThreads))
  if (streams !== 'off' && route.streams === true) steps.push(() => openStreams(leases, limiter, streams))
  return steps.length === 0 ? null : inOrder(steps)
}

/** Called before the gateway asks the upstream about a thread that would be new. */
export async function takeNewThread(
  leases: LimitLeases,
  own: Rates | undefined,
  limits: CallerLimits,
  limiter: Limiter,
): Promise<Refusal | null> {
  const rates = own ?? limits.newThreads
  return rates === 'off' ? null : countNewThread(leases, limiter, rates)
}

/**
 * Sets tokens aside for a request that an agent works on.
 * @param sent the bytes of its body
 */
export async function takeTokens(
  leases: LimitLeases,
  { descriptor: { route }, principal }: Permit,
  budgets: TokenBudgets,
  sent: number,
  { limiter: counters, metrics }: { readonly limiter: Limiter; readonly metrics: Pick<RequestMetrics, 'tokens'> },
): Promise<Refusal | null> {
  if (leases.budget !== null || (route.unknownThread !== 'claim' && route.unknownThread !== 'try')) return null
  const uses = budgetUses(budgets, principal, leases.caller, tokensOfRequest(sent))
  const reservation = await counters.reserve(uses)
  if ('name' in reservation) return refuse('token-budget-exceeded', { limit: reservation })
  leases.budget = makeRunBudget({ uses, reservation, counters, metrics, sent })
  if (leases.isOver) leases.budget.over('gateway')
  return null
}

/** For an answer that turns out to last; null where that is not limited, or was done for the permit. */
export function lastingLimit(
  leases: LimitLeases,
  { descriptor: { route }, rule }: Permit,
  limits: CallerLimits,
  limiter: Limiter,
): (() => Promise<boolean>) | null {
  const { streams = limits.streams } = rule.limits
  if (streams === 'off' || route.streams === true) return null
  return async () => (await openStreams(leases, limiter, streams)) === null
}

/** A place that is taken later is given back at once. */
export function releaseLimits(leases: LimitLeases): void {
  leases.isOver = true
  for (const close of leases.streams ?? []) close()
  leases.streams = null
  leases.budget?.over('gateway')
}

/** Counts in each counter of each limit. A counted request stays counted, also where another limit then refuses it. */
export async function takeRates(
  limiter: Pick<Limiter, 'take'>,
  name: RateName,
  rates: Rates,
  { principal, caller }: Pick<LimitLeases, 'principal' | 'caller'>,
  counterNamed?: (counter: string) => string,
): Promise<LimitState | null> {
  for (const rate of rates === 'off' ? [] : rates) {
    for (const counter of countersOf(rate.by, principal, caller)) {
      const limit = await limiter.take(name, counterNamed?.(counter) ?? counter, rate)
      if (limit !== null) return limit
    }
  }
  return null
}

function countNewThread(leases: LimitLeases, limiter: Limiter, rates: Rates): Promise<Refusal | null> {
  return count(leases, limiter, 'newThreads', 'new-threads-limited', rates)
}

async function count(
  leases: LimitLeases,
  limiter: Limiter,
  name: RateName,
  reason: 'requests-limited' | 'runs-limited' | 'new-threads-limited',
  rates: Rates,
  counterNamed?: (counter: string) => string,
): Promise<Refusal | null> {
  if (leases.taken.includes(name)) return null
  leases.taken = [...leases.taken, name]
  const limit = await takeRates(limiter, name, rates, leases, counterNamed)
  return limit === null ? null : refuse(reason, { limit })
}

async function openStreams(leases: LimitLeases, limiter: Limiter, limits: Exclude<StreamLimits, 'off'>): Promise<Refusal | null> {
  if (leases.streams !== null) return null
  const opened: (() => void)[] = []
  const giveBack = (): void => {
    for (const close of opened) close()
  }
  for (const [counter, most] of placesOf(limits, leases)) {
    const stream = await limiter.open(counter, most)
    if (typeof stream === 'function') opened.push(stream)
    else {
      giveBack()
      return refuse('streams-limited', { limit: stream })
    }
  }
  if (leases.isOver) giveBack()
  else leases.streams = opened
  return null
}

/** Each counter once, with its strictest limit: two limits may name one group. */
function placesOf(limits: Exclude<StreamLimits, 'off'>, { principal, caller }: LimitLeases): ReadonlyMap<string, number> {
  const places = new Map<string, number>()
  for (const { by, most } of limits) {
    for (const counter of countersOf(by, principal, caller)) places.set(counter, Math.min(most, places.get(counter) ?? most))
  }
  return places
}

async function inOrder(steps: readonly (() => Promise<Refusal | null>)[]): Promise<Refusal | null> {
  for (const step of steps) {
    const refusal = await step()
    if (refusal !== null) return refusal
  }
  return null
}
