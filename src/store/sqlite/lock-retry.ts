/** Waits for a lock without blocking the process: SQLite gives up soon, and the step is retried after a pause. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Turns {
  /** Runs the step at once if none waits. While a lock makes it fail, it is retried until its time is over. */
  take<T>(step: () => T): Promise<T>
  readonly waiting: number
}

const FIRST_PAUSE_MS = 2
const LONGEST_PAUSE_MS = 25

/** @param limit milliseconds that a step is tried, including its wait for earlier steps */
export function makeTurns(limit: number, isBusy: (error: unknown) => boolean): Turns {
  let waiting = 0
  let last: Promise<unknown> = Promise.resolve()

  const retry = async <T>(step: () => T, until: number): Promise<T> => {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        return step()
      } catch (error) {
        if (!isBusy(error) || performance.now() >= until) throw error
      }
      await sleep(pause)
    }
  }

  return {
    async take(step) {
      const until = performance.now() + limit
      if (waiting === 0) {
        try {
          return step()
        } catch (error) {
          if (!isBusy(error)) throw error
        }
      }
      waiting += 1
      // In order: of many waiting steps only one blocks the process for a moment, and the first is served first.
      const mine = last.then(() => retry(step, until))
      last = mine.catch(() => {})
      try {
        return await mine
      } finally {
        waiting -= 1
      }
    },
    get waiting() {
      return waiting
    },
  }
}
