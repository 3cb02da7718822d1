/** What one request has taken of its caller's limits: each limit once, however often the request is decided. */
import type { Permit } from '../../core/decide/decide.ts'
import type { Rate } from '../../core/decide/rules.ts'
import { refuse, type LimitState, type Refusal } from '../../core/reasons.ts'
import type { Limiter, RateName } from '../../limits/port.ts'

export interface CallerLimits {
  readonly requests: Rate | 'off'
  readonly runs: Rate | 'off'
  readonly newThreads: Rate | 'off'
  readonly streams: number | 'off'
}

const NONE: readonly RateName[] = []

export class LimitLeases {
  readonly #caller: string
  #taken: readonly RateName[] = NONE
  #close: (() => void) | null = null
  #isOver = false

  constructor(caller: string) {
    this.#caller = caller
  }

  /** Takes the limits in this order. Null where nothing is limited: then there is nothing to await. */
  take(permit: Permit, limits: CallerLimits, limiter: Limiter): Promise<Refusal | null> | null {
    const { route } = permit.descriptor
    const { rule } = permit
    const { requests = 'off', runs = limits.runs, streams = limits.streams, newThreads = limits.newThreads } = rule.limits
    const steps: (() => Promise<Refusal | null>)[] = []
    if (requests !== 'off') {
      const who = JSON.stringify([rule.name, this.#caller])
      steps.push(() => this.#count(limiter, 'requests', 'requests-limited', requests, who))
    }
    if (runs !== 'off' && route.id === 'agent/run') steps.push(() => this.#count(limiter, 'runs', 'runs-limited', runs))
    if (permit.begins && newThreads !== 'off') steps.push(() => this.#countNewThread(limiter, newThreads))
    if (streams !== 'off' && route.streams === true) steps.push(() => this.#open(limiter, streams))
    return steps.length === 0 ? null : inOrder(steps)
  }

  /** Called before the gateway asks the upstream about a thread that would be new. */
  async takeNewThread(own: Rate | 'off' | undefined, limits: CallerLimits, limiter: Limiter): Promise<Refusal | null> {
    const rate = own ?? limits.newThreads
    return rate === 'off' ? null : this.#countNewThread(limiter, rate)
  }

  /** For an answer that turns out to last; null where that is not limited, or was done for the permit. */
  lasting({ descriptor: { route }, rule }: Permit, limits: CallerLimits, limiter: Limiter): (() => Promise<boolean>) | null {
    const { streams = limits.streams } = rule.limits
    if (streams === 'off' || route.streams === true) return null
    return async () => (await this.#open(limiter, streams)) === null
  }

  /** A place that is taken later is given back at once. */
  release(): void {
    this.#isOver = true
    this.#close?.()
    this.#close = null
  }

  #countNewThread(limiter: Limiter, rate: Rate): Promise<Refusal | null> {
    return this.#count(limiter, 'newThreads', 'new-threads-limited', rate)
  }

  async #count(
    limiter: Limiter,
    name: RateName,
    reason: 'requests-limited' | 'runs-limited' | 'new-threads-limited',
    rate: Rate,
    who = this.#caller,
  ): Promise<Refusal | null> {
    if (this.#taken.includes(name)) return null
    this.#taken = [...this.#taken, name]
    return refusalFor(reason, await limiter.take(name, who, rate))
  }

  async #open(limiter: Limiter, most: number): Promise<Refusal | null> {
    if (this.#close !== null) return null
    const opened = await limiter.open(this.#caller, most)
    if (typeof opened !== 'function') return refusalFor('streams-limited', opened)
    if (this.#isOver) opened()
    else this.#close = opened
    return null
  }
}

function refusalFor(
  reason: 'requests-limited' | 'runs-limited' | 'new-threads-limited' | 'streams-limited',
  limit: LimitState | null,
): Refusal | null {
  return limit === null ? null : refuse(reason, { limit })
}

async function inOrder(steps: readonly (() => Promise<Refusal | null>)[]): Promise<Refusal | null> {
  for (const step of steps) {
    const refusal = await step()
    if (refusal !== null) return refusal
  }
  return null
}
