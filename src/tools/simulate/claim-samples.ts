/** Values of claims that comparisons tell apart. */
import { holdsOf, type ClaimTest } from '../../core/decide/conditions.ts'
import type { Json } from '../../core/json/read.ts'

/** A value, or nothing there. */
export type Sample = Json | undefined

/** One of every type that a claim can have. */
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

/**
 * Values of one claim, one for each way in which comparisons can come out together; where nothing is there comes first.
 * @param tests comparisons of the same claim
 */
export function samplesOf(tests: readonly ClaimTest[]): readonly Sample[] {
  const found = new Map<string, Sample>()
  for (const sample of [undefined, ...tests.flatMap(hits), ...lists(tests), ...numbers(tests), ...STRANGE]) {
    const outcomes = tests.map((test) => outcomeOf(test, sample)).join()
    if (!found.has(outcomes)) found.set(outcomes, sample)
  }
  return [...found.values()]
}

/** Values that meet a comparison; none where it is met by nothing being there. */
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

/** True, false or `failed`: what a comparison makes of a value. */
export function outcomeOf(test: ClaimTest, sample: Sample): boolean | 'failed' {
  const claims = sample === undefined ? {} : { claim: sample }
  const nobody = {
    kind: 'user',
    id: '',
    issuer: '',
    subject: '',
    name: undefined,
    roles: [],
    permissions: [],
    groups: [],
  } as const
  const user = { ...nobody, claims }
  return holdsOf({ claims: [{ ...test, at: '/claim' }] }, user)
}

/** Up to so many members a list is made with every choice of them. */
const MOST_MEMBERS = 6

/** Lists with some of the members that are looked for, of one type each. */
function lists(tests: readonly ClaimTest[]): readonly Json[] {
  const items = [...new Set(tests.flatMap((test) => (test.is === 'containing' ? [test.item] : [])))]
  return ['string', 'number', 'boolean'].flatMap((type) => {
    const members = items.filter((item) => typeof item === type)
    if (members.length > MOST_MEMBERS) return [members]
    return members.reduce<Json[][]>((made, member) => [...made, ...made.map((list) => [...list, member])], [[]])
  })
}

/** Numbers around those that are compared with. */
function numbers(tests: readonly ClaimTest[]): readonly Json[] {
  const named = tests
    .flatMap((test) => (test.is === 'at-least' || test.is === 'at-most' ? [test.bound] : hits(test)))
    .filter((value) => typeof value === 'number')
    .sort((one, other) => one - other)
  return named.flatMap((value, at) => [value - 1, value, (value + (named[at + 1] ?? value + 2)) / 2])
}
