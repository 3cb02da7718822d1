/** Gives other requests a turn between steps of long work. */
import type { Steps } from '../../core/json/steps.ts'

/** Milliseconds of long work in one turn of the event loop. A step that has begun is not interrupted. */
const LONG_MS = 0.25

/** Turns in a row: of a task, before it waits behind the others again, and of tasks that have begun, before another one begins. */
const MOST_IN_A_ROW = 16

/** Bytes of a task that is over so soon that it does not wait for others to end. */
const SHORT_TASK = 16 * 1024

/** Tasks that have begun hold memory, so they go on before others begin. */
const goingOn: (() => void)[] = []
const waiting: (() => void)[] = []
let inARow = 0
/** When the long work of this turn has to end, by the monotonic clock; 0 before any. */
let longUntil = 0

/**
 * Null if a task may begin at once; otherwise resolves in a later turn, after the tasks that wait already.
 *
 * Call a new function after this wait, and keep its results there. V8 promotes the waiting async frame to the old generation. A
 * dead frame there still keeps what it refers to until the next major collection.
 *
 * @param bytes that the task is about
 */
export function firstTurn(bytes: number): Promise<void> | null {
  if (bytes <= SHORT_TASK || (hasTime() && goingOn.length === 0 && waiting.length === 0)) return null
  return new Promise((resolve) => {
    waiting.push(resolve)
  })
}

/**
 * Null while this turn has time for a task that has begun; otherwise resolves in a later turn.
 * @param had the turns in a row that the task has had
 */
export function turn(had = 1): Promise<void> | null {
  if (hasTime()) return null
  const queue = had < MOST_IN_A_ROW ? goingOn : waiting
  return new Promise((resolve) => {
    queue.push(resolve)
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
  let next = inARow < MOST_IN_A_ROW ? goingOn.shift() : undefined
  inARow = next === undefined ? 0 : inARow + 1
  next ??= waiting.shift() ?? goingOn.shift()
  if (next === undefined) return
  newTurn()
  next()
}

/** Goes on with a task that has begun. */
export async function inTurns<Result>(steps: Steps<Result>): Promise<Result> {
  let had = 1
  for (;;) {
    const waited = turn(had)
    if (waited !== null) {
      await waited
      had = had < MOST_IN_A_ROW ? had + 1 : 1
    }
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
