/** Gives other requests a turn between steps of long work. */
import type { Steps } from '../../core/json/steps.ts'

/** Milliseconds of long work in one turn of the event loop. A step that has begun is not interrupted. */
const LONG_MS = 0.25

const waiting: (() => void)[] = []
/** When the long work of this turn has to end, by the monotonic clock; 0 before any. */
let longUntil = 0

/** Null while this turn has time for long work; otherwise resolves in a later turn, after those who wait already. */
export function turn(): Promise<void> | null {
  if (longUntil === 0) newTurn()
  if (performance.now() < longUntil) return null
  return new Promise((resolve) => {
    waiting.push(resolve)
  })
}

function newTurn(): void {
  longUntil = performance.now() + LONG_MS
  setImmediate(endTurn)
}

function endTurn(): void {
  longUntil = 0
  const next = waiting.shift()
  if (next === undefined) return
  newTurn()
  next()
}

export async function inTurns<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    const waited = turn()
    if (waited !== null) await waited
    const { done, value } = steps.next()
    if (done === true) return value
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
