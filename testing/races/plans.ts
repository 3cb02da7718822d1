/** What workers do, step by step, as a seed has it. */
import fc from 'fast-check'
import type { Right } from '../../src/core/decide/sharing.ts'

/**
 * A kind of step. `settle` and `release` end a run that the worker has begun, or begin one where it has none; `settle` confirms
 * it where the step has `write`.
 */
export type Kind =
  | 'claim'
  | 'guest'
  | 'settle'
  | 'release'
  | 'bury'
  | 'rename'
  | 'archive'
  | 'grant'
  | 'ungrant'
  | 'assign'
  | 'withhold'
  | 'transfer'
  | 'erase'
  | 'prune'
  | 'accessTo'
  | 'accessToSeveral'
  | 'thread'

/** A step: of all that stands in it a kind takes what it needs. */
export interface Step {
  readonly kind: Kind
  /** Numbers that are taken modulo how many there are. */
  readonly thread: number
  readonly user: number
  readonly other: number
  readonly right: Right
  readonly flag: boolean
}

/** How often what is done. */
export type Mix = keyof typeof MIXES

const MIXES = {
  /** What runs and deletions come to: without operators a thread that was confirmed is its owner's for ever. */
  runs: { claim: 30, guest: 8, settle: 20, release: 20, bury: 8, rename: 4, accessTo: 5, thread: 5 },
  /** All that the store can do with a thread. */
  everything: {
    claim: 24,
    guest: 8,
    settle: 9,
    release: 9,
    bury: 8,
    rename: 2,
    archive: 2,
    grant: 6,
    ungrant: 3,
    assign: 3,
    withhold: 3,
    transfer: 2,
    erase: 1,
    prune: 3,
    accessTo: 5,
    accessToSeveral: 4,
    thread: 4,
  },
} as const satisfies Readonly<Record<string, Partial<Record<Kind, number>>>>

const BATCH = 500

/** Steps without an end. */
export function* stepsOf(mix: Mix, seed: number): Generator<Step, never> {
  const number = fc.nat({ max: 999 })
  const kinds = Object.entries(MIXES[mix]).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind as Kind) }))
  const step = fc.record({
    kind: fc.oneof(...kinds),
    thread: number,
    user: number,
    other: number,
    right: fc.constantFrom<Right>('read', 'write'),
    flag: fc.boolean(),
  })
  for (let batch = 0; ; batch += 1) yield* fc.sample(step, { numRuns: BATCH, seed: seed + batch })
}
