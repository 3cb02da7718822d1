/** Gives other requests a turn between steps of long work. */
import type { Steps } from '../../core/json/steps.ts'

/** Milliseconds of long work in one turn of the event loop. A step that has begun is not interrupted. */
const LONG_MS = 0.25

/** Work that has begun holds memory, so it goes on before other work begins. */
const begun: (() => void)[] = []
const fresh: (() => void)[] = []

/** Turns of begun work until other work begins in any case: enough to end what callers usually send. */
const MOST_IN_A_ROW = 16

let inARow = 0
/** When the long work of this turn has to end, by the monotonic clock; 0 before any. */
let longUntil = 0

/**
 * Null if long work may begin at once; otherwise resolves in a later turn, after all work that waits already.
 *
 * What the work makes is not to be the value of a promise or variable that waited for this turn. V8 moves what waits for long to
 * its old generation. There, even after its end, it would keep what it refers to until the next collection of the whole heap.
 */
export function firstTurn(): Promise<void> | null {
  if (hasTime() && begun.length === 0 && fresh.length === 0) return null
  return new Promise((resolve) => {
    fresh.push(resolve)
  })
}

/** Null while this turn has time for work that has begun; otherwise resolves in a later turn. */
export function turn(): Promise<void> | null {
  if (hasTime()) return null
  return new Promise((resolve) => {
    begun.push(resolve)
  })
}

function hasTime(): boolean {
  if (longUntil === 0) newTurn()
  return performance.now() < longUntil
}

function newTurn(): void {
  longUntil = performance.now() + LONG_MS
  setImmediate(endTurn)
}

function endTurn(): void {
  longUntil = 0
  const begins = begun.length === 0 || inARow === MOST_IN_A_ROW
  inARow = begins ? 0 : inARow + 1
  const next = (begins ? fresh.shift() : undefined) ?? begun.shift()
  if (next === undefined) return
  newTurn()
  next()
}

/** Goes on with work that has begun. */
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
