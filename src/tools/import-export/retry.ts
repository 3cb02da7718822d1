/** Work on a store in steps: what fails for a moment is tried again, and the gateways on it get their turn between steps. */
import { setTimeout as wait } from 'node:timers/promises'
import { StoreUnavailable } from '../../store/port.ts'

/** Tries a step until it succeeds or the retry limit is reached. */
export type Retry = <T>(step: () => Promise<T>) => Promise<T>

/** How patient to be; times in milliseconds. */
export interface RetryOptions {
  /** From the first failure of a step to its last attempt. */
  readonly limit: number
  /** The pause after the first failure; it doubles with each. */
  readonly first: number
  /** Stops retrying. */
  readonly signal: AbortSignal
  /** Told of a step's first failure. */
  readonly onTrouble: (error: StoreUnavailable) => void
}

const LONGEST_PAUSE = 5000

/** The operator's own: a restart of the database, or a change of its leader, takes less. */
export const PATIENT = { limit: 30_000, first: 100 }

/**
 * Makes it. A step is repeated only where the store did not answer: every step can be done twice.
 * @throws StoreUnavailable, by the attempts, when the limit is over or the signal came
 */
export function makeRetry({ limit, first, signal, onTrouble }: RetryOptions): Retry {
  return async (step) => {
    let until: number | undefined
    for (let pause = first; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      try {
        return await step()
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        if (until === undefined) onTrouble(error)
        until ??= performance.now() + limit
        if (signal.aborted || performance.now() + pause > until) throw error
        await wait(pause, undefined, { signal }).catch(() => {})
      }
    }
  }
}

/** As long as one step may keep the others waiting after it, in milliseconds. */
const LONGEST_BREATH = 50

/**
 * Does a step, and then lets the others have as much time as it took: SQLite has one write lock, and whoever took it again at
 * once would starve the gateways.
 */
export async function throttled<T>(step: () => Promise<T>): Promise<T> {
  const began = performance.now()
  const result = await step()
  await wait(Math.min(performance.now() - began, LONGEST_BREATH))
  return result
}

export interface Steps {
  readonly done: number
  /** True if the signal came before nothing was left. */
  readonly interrupted: boolean
}

/**
 * Repeats a step until nothing is left.
 * @param step gives how many rows it worked on; 0 when nothing is left
 * @param onProgress told how many in all
 */
export async function inSteps(
  step: () => Promise<number>,
  retry: Retry,
  signal: AbortSignal,
  onProgress: (done: number) => void,
): Promise<Steps> {
  let done = 0
  while (!signal.aborted) {
    const count = await throttled(() => retry(step))
    if (count === 0) return { done, interrupted: false }
    done += count
    onProgress(done)
  }
  return { done, interrupted: true }
}
