/** Shares the result of an expensive operation between all callers that ask at about the same time. */
import { setTimeout as sleep } from 'node:timers/promises'

/** In milliseconds; replaceable for tests. */
export interface FlightClock {
  readonly now: () => number
  readonly wait: (duration: number) => Promise<unknown>
}

/** The pause after a run, as a multiple of its duration: the operation takes a tenth of the time at most. */
const REST = 9
const SHORTEST_REST_MS = 50
const LONGEST_REST_MS = 1000

const REAL: FlightClock = {
  now: () => performance.now(),
  wait: (duration) => sleep(duration, undefined, { ref: false }),
}

/** Runs once at a time. A call during a run shares its result; calls in the pause after it share the next run. */
export function singleFlight<T>(run: () => Promise<T>, { now, wait }: FlightClock = REAL): () => Promise<T> {
  let running: Promise<T> | null = null
  let next: Promise<T> | null = null
  let restsUntil = -Infinity
  const timed = async (): Promise<T> => {
    const began = now()
    try {
      return await run()
    } finally {
      const ended = now()
      restsUntil = ended + Math.min(Math.max(REST * (ended - began), SHORTEST_REST_MS), LONGEST_REST_MS)
      running = null
    }
  }
  const ask = (): Promise<T> => {
    if (running !== null) return running
    const left = restsUntil - now()
    if (left > 0) {
      next ??= wait(left).then(() => {
        next = null
        return ask()
      })
      return next
    }
    // Started asynchronously: a run that throws before its first await would otherwise end before it is recorded.
    running = Promise.resolve().then(timed)
    return running
  }
  return ask
}
