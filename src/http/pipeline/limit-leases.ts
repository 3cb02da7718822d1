/** What one request has taken of its caller's limits: each limit once, however often the request is decided. */
import type { Permit } from '../../core/decide/decide.ts'
import type { Rate } from '../../core/decide/rules.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import type { Limiter, RateName } from '../../limits/port.ts'

export interface CallerLimits {
  readonly requests: Rate | 'off'
  readonly runs: Rate | 'off'
  readonly newThreads: Rate | 'off'
  readonly streams: number | 'off'
}

/** What the request has taken, and gives back when its answer is over. */
export interface LimitLeases {
  readonly caller: string
  taken: readonly RateName[]
  close: (() => void) | null
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
    const who = JSON.stringify([rule.name, leases.caller])
    steps.push(() => count(leases, limiter, 'requests', 'requests-limited', requests, who))
  }
  if (runs !== 'off' && route.id === 'agent/run') steps.push(() => count(leases, limiter, 'runs', 'runs-limited', runs))
  if (permit.begins && newThreads !== 'off') steps.push(() => countNewThread(leases, limiter, newThreads))
  if (streams !== 'off' && route.streams === true) steps.push(() => openStream(leases, limiter, streams))
  return steps.length === 0 ? null : inOrder(steps)
}

/** Called before the gateway asks the upstream about a thread that would be new. */
export async function takeNewThread(
  leases: LimitLeases,
  own: Rate | 'off' | undefined,
  limits: CallerLimits,
  limiter: Limiter,
): Promise<Refusal | null> {
  const rate = own ?? limits.newThreads
  return rate === 'off' ? null : countNewThread(leases, limiter, rate)
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
  return async () => (await openStream(leases, limiter, streams)) === null
}

/** A place that is taken later is given back at once. */
export function releaseLimits(leases: LimitLeases): void {
  leases.isOver = true
  leases.close?.()
  leases.close = null
}

function countNewThread(leases: LimitLeases, limiter: Limiter, rate: Rate): Promise<Refusal | null> {
  return count(leases, limiter, 'newThreads', 'new-threads-limited', rate)
}

async function count(
  leases: LimitLeases,
  limiter: Limiter,
  name: RateName,
  reason: 'requests-limited' | 'runs-limited' | 'new-threads-limited',
  rate: Rate,
  who = leases.caller,
): Promise<Refusal | null> {
  if (leases.taken.includes(name)) return null
  leases.taken = [...leases.taken, name]
  const limit = await limiter.take(name, who, rate)
  return limit === null ? null : refuse(reason, { limit })
}

async function openStream(leases: LimitLeases, limiter: Limiter, most: number): Promise<Refusal | null> {
  if (leases.close !== null) return null
  const opened = await limiter.open(leases.caller, most)
  if (typeof opened !== 'function') return refuse('streams-limited', { limit: opened })
  if (leases.isOver) opened()
  else leases.close = opened
  return null
}

async function inOrder(steps: readonly (() => Promise<Refusal | null>)[]): Promise<Refusal | null> {
  for (const step of steps) {
    const refusal = await step()
    if (refusal !== null) return refusal
  }
  return null
}
