/** Makes callers for rules: those who meet a rule, all but one part of it, or two rules at once. */
import { type CallerConditions, type OperatorSelector, type Rule, holdsOf, type ClaimTest } from '../../core/decide/rules.ts'
import { NO_ATTRIBUTES, type Attributes } from './made-up-user.ts'
import type { Json } from '../../core/json/read.ts'

export interface Profile extends Attributes {
  readonly issuer: string | null
}

export const ANYBODY: Profile = { ...NO_ATTRIBUTES, issuer: null }

export function selected({ issuer, role, permission }: OperatorSelector): Profile {
  return {
    issuer,
    roles: role === undefined ? [] : [role],
    permissions: permission === undefined ? [] : [permission],
    claims: [],
  }
}

export function meeting({ who, when, unless }: Rule, operators: readonly Profile[]): readonly Profile[] {
  const kinds = who.includes('signed-in') || !who.includes('operator') ? [ANYBODY] : operators
  const all = couples(kinds, attributesFor(when))
  return unless === null ? all : [...all, ...couples(all, attributesFor(unless))]
}

export function almost(rule: Rule, operators: readonly Profile[]): readonly Profile[] {
  const { when, unless } = rule
  const lesser = [
    ...lacking(when).map((less) => ({ ...rule, when: less, unless: null })),
    ...lacking(unless ?? {}).map((less) => ({ ...rule, unless: less })),
  ]
  const wrong = (when.claims ?? []).flatMap((test) => {
    const others = { ...when, claims: (when.claims ?? []).filter((one) => one !== test) }
    const values = samplesOf([test]).filter((sample) => sample !== undefined && outcomeOf(test, sample) !== true)
    const claims = values.map((value): Profile => ({ ...ANYBODY, claims: [[test.at, value ?? null]] }))
    return couples(meeting({ ...rule, when: others, unless: null }, operators), claims)
  })
  return [...lesser.flatMap((less) => meeting(less, operators)), ...wrong]
}

function lacking(conditions: CallerConditions): readonly CallerConditions[] {
  const { claims, permissions } = conditions
  const without = (['issuers', 'roles', 'permissions'] as const)
    .filter((part) => conditions[part] !== undefined)
    .map((part): CallerConditions => Object.fromEntries(Object.entries(conditions).filter(([name]) => name !== part)))
  const fewer = (permissions?.all ?? []).map((one) => ({
    ...conditions,
    permissions: { ...permissions, all: (permissions?.all ?? []).filter((other) => other !== one) },
  }))
  return [
    ...without,
    ...fewer,
    ...(claims ?? []).map((test) => ({ ...conditions, claims: claims?.filter((one) => one !== test) ?? [] })),
  ]
}

/** Pairs from both lists, where one issuer can have both. */
export function couples(some: readonly Profile[], others: readonly Profile[]): readonly Profile[] {
  return some.flatMap((one) =>
    others
      .filter(({ issuer }) => one.issuer === null || issuer === null || one.issuer === issuer)
      .map((other) => merged(one, other)),
  )
}

export function merged(one: Profile, other: Profile): Profile {
  return {
    issuer: one.issuer ?? other.issuer,
    roles: [...new Set([...one.roles, ...other.roles])],
    permissions: [...new Set([...one.permissions, ...other.permissions])],
    claims: [...one.claims, ...other.claims],
  }
}

/** Callers who meet conditions: one caller, and another for each further way to meet a part of them. */
export function attributesFor({ issuers, roles, permissions, claims }: CallerConditions): readonly Profile[] {
  const all = permissions?.all ?? []
  const base: Profile = {
    issuer: issuers?.[0] ?? null,
    roles: roles?.slice(0, 1) ?? [],
    permissions: [...(permissions?.any?.slice(0, 1) ?? []), ...all],
    claims: (claims ?? []).flatMap((test) =>
      hits(test)
        .slice(0, 1)
        .map((value) => [test.at, value] as const),
    ),
  }
  return [
    base,
    ...(issuers ?? []).slice(1).map((issuer) => ({ ...base, issuer })),
    ...(roles ?? []).slice(1).map((role) => ({ ...base, roles: [role] })),
    ...(permissions?.any ?? []).slice(1).map((one) => ({ ...base, permissions: [one, ...all] })),
    ...(claims ?? []).flatMap((test) =>
      hits(test)
        .slice(1)
        .map((value) => ({ ...base, claims: [...base.claims, [test.at, value] as const] })),
    ),
  ]
}

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
function hits(test: ClaimTest): readonly Json[] {
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
