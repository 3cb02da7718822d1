/**
 * Gives others their turn between the steps of long work. In one turn of the event loop one step is taken, whichever of the
 * requests it is of: sixteen large bodies at once hold up other requests no longer than one does. Short works are done at once,
 * and by the next turns where many come together.
 */
import type { Steps } from '../../core/json/steps.ts'

const waiting: (() => void)[] = []

/** Waits for the next turn that nobody else waits for before. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(begin)
  })
}

function begin(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(begin)
}

/** Takes steps, and lets others have their turn between them. @returns what comes of the last one */
export async function inTurns<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    await turn()
  }
}

/** So long short works go on in one turn, in milliseconds; one that has begun is not broken off. */
const SPELL_MS = 5

const short: (() => void)[] = []
/** What short works have taken of this turn, in milliseconds. */
let taken = 0

/** Does short work at once; after others where these have had their share of this turn, or wait already. */
export function inTurn<Result>(work: () => Result): Result | Promise<Result> {
  if (taken < SPELL_MS && short.length === 0) {
    if (taken === 0) setImmediate(forget)
    const since = performance.now()
    try {
      return work()
    } finally {
      taken += performance.now() - since
    }
  }
  return new Promise((resolve, reject) => {
    if (short.length === 0) setImmediate(goOn)
    short.push(() => {
      try {
        resolve(work())
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    })
  })
}

function forget(): void {
  taken = 0
}

function goOn(): void {
  // What has come meanwhile has its turn first.
  if (taken === 0) {
    const until = performance.now() + SPELL_MS
    do short.shift()?.()
    while (short.length > 0 && performance.now() < until)
  }
  taken = 0
  if (short.length > 0) setImmediate(goOn)
}
