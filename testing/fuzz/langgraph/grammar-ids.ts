/** Ids that a hostile caller tries: their own, those of others, and those that some server reads in another way. */
import fc from 'fast-check'
import { ASSISTANT, checkpointOf, FOREIGN, NEW, ORPHAN, OWN, runOf, SHARED } from './world.ts'

const spellings = (id: string): readonly string[] => [
  id.toUpperCase(),
  id.replaceAll('-', ''),
  `{${id}}`,
  `urn:uuid:${id}`,
  ` ${id}`,
  `${id}\0`,
  `${id}/`,
  `${id}.`,
  `${OWN[0]}/../${id}`,
]

// oxfmt-ignore
const ODD = [
  '', '.', '..', '__proto__', 'constructor', 'toString', 'prototype', 'hasOwnProperty', 'null', 'undefined', '0', '*', '%', 'search', 'count',
  'prune', 'copy', 'state', 'history', 'runs', 'stream', 'wait', 'crons', 'join', 'checkpoint', 'commands', 'events', 'batch', 'cancel', 'threads',
  'notes', 'a/b', 'a\\b', 'a:b', 'a.b', 'é', '\u200b', 'x'.repeat(129),
]

const ownThread = fc.constantFrom(...OWN)
const others = [...FOREIGN, ORPHAN, SHARED]

/** The thread that a path names: mostly one of the caller's, so that the rest of the request matters. */
export const threadId = fc.oneof(
  { arbitrary: ownThread, weight: 14 },
  { arbitrary: fc.constantFrom(...FOREIGN), weight: 3 },
  { arbitrary: fc.constantFrom(SHARED, ORPHAN, ...NEW), weight: 4 },
  { arbitrary: fc.constantFrom(...others.flatMap(spellings), ...spellings(OWN[0])), weight: 1 },
  { arbitrary: fc.constantFrom(...ODD), weight: 1 },
)

export const runId = fc.oneof(
  { arbitrary: ownThread.map(runOf), weight: 4 },
  { arbitrary: fc.constantFrom(...others).map(runOf), weight: 4 },
  { arbitrary: fc.constantFrom(...NEW), weight: 1 },
  { arbitrary: fc.constantFrom(...FOREIGN.map(runOf).flatMap(spellings)), weight: 1 },
  { arbitrary: fc.constantFrom(...ODD), weight: 1 },
)

export const checkpointId = fc.oneof(
  { arbitrary: fc.tuple(ownThread, fc.integer({ min: 1, max: 3 })).map(([id, number]) => checkpointOf(id, number)), weight: 3 },
  {
    arbitrary: fc
      .tuple(fc.constantFrom(...others), fc.integer({ min: 1, max: 3 }))
      .map(([id, number]) => checkpointOf(id, number)),
    weight: 3,
  },
  { arbitrary: fc.constantFrom(...NEW, ...OWN, ...FOREIGN, ...FOREIGN.map(runOf), ...ODD), weight: 1 },
)

/** Of graphs inside the graph. */
export const namespace = fc.oneof(
  { arbitrary: fc.constantFrom('', '', 'inner'), weight: 2 },
  { arbitrary: fc.constantFrom(...OWN, ...others).map((id) => `inner:${checkpointOf(id, 0)}`), weight: 2 },
  { arbitrary: fc.constantFrom(...FOREIGN, `inner|${FOREIGN[0]}`, `${FOREIGN[0]}:inner`, ...ODD), weight: 1 },
)

export const assistantId = fc.oneof(
  { arbitrary: fc.constant(ASSISTANT), weight: 12 },
  { arbitrary: fc.constantFrom(...FOREIGN, ...OWN, 'd5041ea1-17e3-5fca-acb5-2dd80987bcfc', ...ODD), weight: 1 },
)

/** Any id, in any place. */
export const anyId = fc.oneof(threadId, runId, checkpointId)
