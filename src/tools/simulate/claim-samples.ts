/** Makes values of claims that comparisons distinguish. */
import { holdsOf, type ClaimTest } from '../../core/decide/rules.ts'
import type { Json } from '../../core/json/read.ts'

/** A value, or `undefined` for no claim. */
export type Sample = Json | undefined

const STRANGE: readonly Sample[] = [
  undefined,
  'something else',
  0.5,
  true,
  false,
  [],
  ['something else'],
  [0.5],
  [true],
  ['mixed', 0.5],
  null,
]

/** One value for each combination of results that comparisons of a claim can have; a missing claim comes first. */
export function samplesOf(tests: readonly ClaimTest[]): readonly Sample[] {
  const found = new Map<string, Sample>()
  for (const sample of [undefined, ...tests.flatMap(hits), ...lists(tests), ...numbers(tests), ...STRANGE]) {
    const outcomes = tests.map((test) => outcomeOf(test, sample)).join()
    if (!found.has(outcomes)) found.set(outcomes, sample)
  }
  return [...found.values()]
}

/** Values that meet a comparison; empty if a missing claim meets it. */
export function hits(test: ClaimTest): readonly Json[] {
  switch (test.is) {
    case 'equal':
      return [test.to]
    case 'in':
      return test.list
    case 'containing':
      return [[test.item]]
    case 'at-least':
    case 'at-most':
      return [test.bound]
    case 'present':
      return test.wanted ? ['something'] : []
  }
}

export function outcomeOf(test: ClaimTest, sample: Sample): boolean | 'failed' {
  const claims = sample === undefined ? {} : { claim: sample }
  const anyUser = {
    kind: 'user',
    id: '',
    issuer: '',
    subject: '',
    name: undefined,
    roles: [],
    permissions: [],
    groups: [],
  } as const
  const user = { ...anyUser, claims }
  return holdsOf({ claims: [{ ...test, at: '/claim' }] }, user)
}

/** Up to this many members, the samples have a list for every subset of them. */
const MOST_MEMBERS = 6

function lists(tests: readonly ClaimTest[]): readonly Json[] {
  const items = [...new Set(tests.flatMap((test) => (test.is === 'containing' ? [test.item] : [])))]
  return ['string', 'number', 'boolean'].flatMap((type) => {
    const members = items.filter((item) => typeof item === type)
    if (members.length > MOST_MEMBERS) return [members]
    return members.reduce<Json[][]>((made, member) => [...made, ...made.map((list) => [...list, member])], [[]])
  })
}

function numbers(tests: readonly ClaimTest[]): readonly Json[] {
  const named = tests
    .flatMap((test) => (test.is === 'at-least' || test.is === 'at-most' ? [test.bound] : hits(test)))
    .filter((value) => typeof value === 'number')
    .sort((one, other) => one - other)
  return named.flatMap((value, at) => [value - 1, value, (value + (named[at + 1] ?? value + 2)) / 2])
}
