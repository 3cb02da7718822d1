/** Gives other requests a turn between steps of long work: a turn of the event loop runs the steps of one request. */
import type { Steps } from '../../core/json/steps.ts'

const waiting: (() => void)[] = []

/** Resolves in the next turn that no earlier caller waits for. */
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

/** @param together steps of one turn: where a step is short, a turn for each would take more time than the steps */
export async function inTurns<Result>(steps: Steps<Result>, together = 1): Promise<Result> {
  // Many that begin in the same turn would otherwise take their first steps in it.
  if (waiting.length > 0) await turn()
  for (;;) {
    for (let step = 0; step < together; step += 1) {
      const { done, value } = steps.next()
      if (done === true) return value
    }
    await turn()
  }
}

/** Milliseconds of short work in one turn. Work that has begun is not interrupted. */
const SPELL_MS = 5

const short: (() => void)[] = []
let taken = 0

/** Runs short work at once; later where short work has used its share of this turn, or already waits. */
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
  // Work that has come meanwhile has its turn first.
  if (taken === 0) {
    const until = performance.now() + SPELL_MS
    do short.shift()?.()
    while (short.length > 0 && performance.now() < until)
  }
  taken = 0
  if (short.length > 0) setImmediate(goOn)
}
