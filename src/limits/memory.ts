/** Counters of limits in the memory of this process. */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { LimitState } from '../core/reasons.ts'
import type { Rate } from '../core/decide/limits.ts'
import type { Limiter, RateName } from './port.ts'
import { makeTokenMemory } from './token-memory.ts'

/** Twice the time and amount: a caller may be quick for a while, but never exceeds the rate over time (docs/how-to/authorize/limits.md). */
export const WINDOW = 2
/** A stream may end at any moment. */
export const STREAM_RETRY_MS = 1000

/**
 * The counters outlive a configuration change: used tokens stay used.
 * @param clock milliseconds since the epoch, for budgets of tokens
 */
export function makeMemoryLimiter(clock: () => number = Date.now): Limiter {
  const counters = new Map<string, RateLimiterMemory>()
  const counterOf = (name: RateName, { amount, per }: Rate): RateLimiterMemory => {
    const key = `${name} ${amount}/${per}`
    let counter = counters.get(key)
    if (counter === undefined) {
      counter = new RateLimiterMemory({ keyPrefix: key, points: amount * WINDOW, duration: (per * WINDOW) / 1000 })
      counters.set(key, counter)
    }
    return counter
  }
  // Not a counter of the library: reading one is asynchronous, and another stream may open or close meanwhile.
  const streams = new Map<string, number>()
  const close = (who: string): void => {
    const left = (streams.get(who) ?? 0) - 1
    if (left > 0) streams.set(who, left)
    else streams.delete(who)
  }

  return {
    ...makeTokenMemory(clock),
    async take(name, who, rate) {
      try {
        await counterOf(name, rate).consume(who)
        return null
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error
        return stateOf(name, rate.amount * WINDOW, rate.per * WINDOW, error.msBeforeNext)
      }
    },
    open(who, most) {
      const open = streams.get(who) ?? 0
      if (open >= most) return Promise.resolve(stateOf('streams', most, 0, STREAM_RETRY_MS))
      streams.set(who, open + 1)
      let isOpen = true
      return Promise.resolve(() => {
        if (isOpen) close(who)
        isOpen = false
      })
    },
  }
}

/** Times are in milliseconds. */
export function stateOf(name: string, most: number, window: number, retryAfter: number): LimitState {
  return { name, most, window, retryAfter }
}
