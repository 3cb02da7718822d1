/**
 * Waiting for a lock without standing still: SQLite itself can only wait by blocking the whole process, so it gives up soon,
 * and the step is tried again after a pause in which everything else goes on.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** Does steps, one after the other where they have to wait. */
export interface Turns {
  /** Does a step, at once if nobody waits. It is retried while a lock makes it fail, until its time is over. */
  take<T>(step: () => T): Promise<T>
  readonly waiting: number
}

const FIRST_PAUSE_MS = 2
const LONGEST_PAUSE_MS = 25

/**
 * Makes turns.
 * @param patience how long a step is tried, in milliseconds, the time included in which others were before it
 * @param isBusy whether a failure is that of a lock: nothing of the step was done then
 */
export function makeTurns(patience: number, isBusy: (error: unknown) => boolean): Turns {
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
      const until = performance.now() + patience
      if (waiting === 0) {
        try {
          return step()
        } catch (error) {
          if (!isBusy(error)) throw error
        }
      }
      waiting += 1
      // In turn: of many that wait only one blocks the process for a moment, and the first that came is served first.
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
