/** Works on a store in steps: a failed step is tried again, and the gateways on the store get time between steps. */
import { setTimeout as wait } from 'node:timers/promises'
import { StoreUnavailable } from '../../store/port/state.ts'

export type Retry = <T>(step: () => Promise<T>) => Promise<T>

/** Times are in milliseconds. */
export interface RetryOptions {
  /** From the first failure of a step to its last attempt. */
  readonly limit: number
  /** The pause after the first failure; it doubles with each failure. */
  readonly first: number
  readonly signal: AbortSignal
  /** Called with a step's first failure. */
  readonly onTrouble: (error: StoreUnavailable) => void
}

const LONGEST_PAUSE = 5000

/** For commands of an operator: a restart of the database, or a change of its leader, takes less time. */
export const COMMAND_RETRY = { limit: 30_000, first: 100 }

/** Repeats a step only if the store did not answer: every step can safely run twice. @throws StoreUnavailable */
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

/** The longest pause after a step, in milliseconds. */
const LONGEST_BREATH = 50

/** Leaves the store to others for as long as the step took: SQLite has one write lock, and gateways need it too. */
export async function throttled<T>(step: () => Promise<T>): Promise<T> {
  const began = performance.now()
  const result = await step()
  await wait(Math.min(performance.now() - began, LONGEST_BREATH))
  return result
}

export interface Steps {
  readonly done: number
  readonly interrupted: boolean
}

/** @param step returns the number of rows that it processed; 0 when none are left */
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
