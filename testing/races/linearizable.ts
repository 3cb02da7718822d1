/**
 * Whether calls that ran at once can be put in an order, each of them somewhere between its beginning and its end, in which
 * the model gives every answer that was given (J. Wing, C. Gong: Testing and verifying concurrent objects, 1993; with the
 * memory of states that led nowhere, G. Lowe: Testing for linearizability, 2017).
 */
import { isDeepStrictEqual } from 'node:util'

/** A call as somebody made it. */
export interface Operation<Call, Answer> {
  readonly call: Call
  /** When it began and when its answer came, on one clock over all processes; null if nobody knows what became of it. */
  readonly from: number
  readonly to: number | null
  /** Left aside where nobody knows what became of it: it was done at any time after it began, or not at all. */
  readonly answer: Answer | null
}

/** Plain code that does the calls one after the other. */
export interface Model<State, Call, Answer> {
  readonly first: State
  /** All that a call may come to. */
  readonly do: (state: State, call: Call) => readonly { readonly state: State; readonly answer: Answer }[]
  /** The same text for states that behave alike. */
  readonly text: (state: State) => string
}

/** How far an order could be found. */
export interface Verdict<State, Call, Answer> {
  readonly ok: boolean
  /** What it comes to. */
  readonly state: State
  /** The longest order that gives the answers; with `ok` it has all calls whose answers are known. */
  readonly order: readonly Operation<Call, Answer>[]
  /** Where it is not `ok`: those that could have come next, none of which fits. */
  readonly stuck: readonly Operation<Call, Answer>[]
}

/** A place in the search. */
interface Place<State> {
  readonly state: State
  /** What was put in order: by its index, or of those whose answers are not known, by theirs. */
  readonly done: bigint
  readonly last: number | null
  readonly before: Place<State> | null
}

/** Looks for an order. */
export function findOrder<State, Call, Answer>(
  history: readonly Operation<Call, Answer>[],
  model: Model<State, Call, Answer>,
): Verdict<State, Call, Answer> {
  const operations = [...history].sort((one, other) => one.from - other.from)
  const known = operations.reduce((bits, { to }, at) => (to === null ? bits : bits | (1n << BigInt(at))), 0n)
  const seen = new Set<string>()
  let farthest: Place<State> = { state: model.first, done: 0n, last: null, before: null }
  let most = 0
  const stack: Place<State>[] = [farthest]
  for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
    if ((place.done & known) === known) return { ok: true, state: place.state, order: orderOf(operations, place), stuck: [] }
    const count = countOf(place.done & known)
    if (count > most) [farthest, most] = [place, count]
    // Backwards: what began first is tried first, and it is most often what was done first.
    for (const at of nextOf(operations, place.done).reverse()) {
      const { call, to, answer } = operations[at]!
      for (const told of model.do(place.state, call)) {
        if (to !== null && !isDeepStrictEqual(told.answer, answer)) continue
        const done = place.done | (1n << BigInt(at))
        const text = `${done.toString(36)} ${model.text(told.state)}`
        if (seen.has(text)) continue
        seen.add(text)
        stack.push({ state: told.state, done, last: at, before: place })
      }
    }
  }
  return {
    ok: false,
    state: farthest.state,
    order: orderOf(operations, farthest),
    stuck: nextOf(operations, farthest.done).map((at) => operations[at]!),
  }
}

/** Those that may come next: not after one that had ended before they began. */
function nextOf<Call, Answer>(operations: readonly Operation<Call, Answer>[], done: bigint): number[] {
  const next: number[] = []
  let end = Infinity
  for (let at = 0, rest = done; at < operations.length; at += 1, rest >>= 1n) {
    if ((rest & 1n) === 1n) continue
    const { from, to } = operations[at]!
    if (from > end) break
    next.push(at)
    end = Math.min(end, to ?? Infinity)
  }
  return next
}

function orderOf<State, Call, Answer>(
  operations: readonly Operation<Call, Answer>[],
  place: Place<State>,
): readonly Operation<Call, Answer>[] {
  const order: Operation<Call, Answer>[] = []
  for (let at: Place<State> | null = place; at !== null; at = at.before) if (at.last !== null) order.push(operations[at.last]!)
  return order.reverse()
}

function countOf(bits: bigint): number {
  let count = 0
  for (let rest = bits; rest > 0n; rest &= rest - 1n) count += 1
  return count
}
