/** Makes the callers of a comparison from the rules that are compared. */
import type { Config } from '../../config/schema.ts'
import { ANONYMOUS, EVERYBODY, type Part, type Principal } from '../../core/decide/principal.ts'
import { isRefusal } from '../../core/reasons.ts'
import type { OperatorSelector, Rule, CallerConditions } from '../../core/decide/rules.ts'
import { makeUser } from './made-up-user.ts'
import {
  almost,
  ANYBODY,
  couples,
  meeting,
  merged,
  selected,
  attributesFor,
  type Profile,
  samplesOf,
  type Sample,
} from './profiles.ts'

interface SampleCaller {
  readonly label: string
  readonly principal: Principal
  /** True if role or permissions have a form that the gateway cannot read. */
  readonly isOdd: boolean
}

export interface SampleCallers {
  readonly callers: readonly SampleCaller[]
  readonly cut: boolean
}

/** The most combinations that are examined: many rules would make the comparison too slow. */
const MOST_EXAMINED = 200_000

/** Plain callers come first. If there are more than `most`, keeps those who meet a rule, two rules, or almost a rule. */
export function callersFor(
  rules: readonly Rule[],
  selectors: readonly OperatorSelector[],
  config: Config,
  most: number,
): SampleCallers {
  const { mode, issuers } = config.authentication
  if (mode === 'off') return { callers: [{ label: 'everybody', principal: EVERYBODY, isOdd: false }], cut: false }
  const keys = Object.keys(issuers)
  const distinctions = distinctionsOf(rules, selectors, keys)
  const odd = unreadables(distinctions)
  const cut = countOf(distinctions) > most
  const callers = new Map<string, SampleCaller>()
  if (mode === 'optional') callers.set('', { label: 'anonymous', principal: ANONYMOUS, isOdd: false })
  let examined = 0
  const add = (profile: Profile): boolean => {
    examined += 1
    for (const issuer of profile.issuer === null ? keys : [profile.issuer]) {
      const pointers = issuers[issuer]?.claims
      for (const parts of pointers === undefined ? [] : odd) {
        const unread = parts.map((part) => [pointers?.[part] ?? '', {}] as const)
        const whole = { ...profile, claims: [...profile.claims, ...unread] }
        const principal = makeUser(issuer, 'somebody', whole, config)
        if (isRefusal(principal)) continue
        const same = JSON.stringify(principal)
        if (!callers.has(same)) callers.set(same, { label: labelOf(issuer, whole), principal, isOdd: parts.length > 0 })
      }
    }
    return callers.size < most && examined < MOST_EXAMINED
  }
  for (const profile of cut ? likely(rules, selectors) : combinationsOf(distinctions)) if (!add(profile)) break
  return { callers: [...callers.values()].slice(0, most), cut }
}

/** An upper bound of the callers that these rules distinguish. */
export function combinationCount(
  rules: readonly Rule[],
  selectors: readonly OperatorSelector[],
  { authentication: { issuers } }: Config,
): number {
  return countOf(distinctionsOf(rules, selectors, Object.keys(issuers)))
}

function unreadables({ roles, permissions }: ReturnType<typeof distinctionsOf>): readonly (readonly Part[])[] {
  const role = roles.length === 0 ? [[]] : [[], ['role' as const]]
  return permissions.length === 0 ? role : role.flatMap((parts) => [parts, [...parts, 'permissions' as const]])
}

function* likely(rules: readonly Rule[], selectors: readonly OperatorSelector[]): Generator<Profile> {
  const operators = selectors.map(selected)
  const parts = rules.flatMap(({ when, unless }) => [...attributesFor(when), ...(unless === null ? [] : attributesFor(unless))])
  const full = rules.map((rule) => meeting(rule, operators))
  yield ANYBODY
  yield* operators
  yield* parts
  yield* full.flat()
  yield { ...[...parts, ...operators].reduce(merged, ANYBODY), issuer: null }
  for (const rule of rules) yield* almost(rule, operators)
  for (const [at, some] of full.entries()) {
    for (const others of full.slice(at + 1)) yield* couples(some, others)
  }
}

function labelOf(issuer: string, { roles, permissions, claims }: Profile): string {
  const last = new Map(claims.map(([at, value]) => [at, JSON.stringify(value)]))
  return [
    `a user of ${issuer}`,
    ...(roles.length === 0 ? [] : [`role ${roles.join(' and ')}`]),
    ...(permissions.length === 0 ? [] : [`permission ${permissions.join(' and ')}`]),
    ...Array.from(last, ([at, value]) => `${at} ${value}`),
  ].join(', ')
}

interface Distinctions {
  readonly issuers: readonly string[]
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
  readonly claims: readonly { readonly at: string; readonly samples: readonly Sample[] }[]
}

/** @param issuers the configured issuers: those that no rule names count as a single issuer */
function distinctionsOf(
  rules: readonly Rule[],
  selectors: readonly OperatorSelector[],
  issuers: readonly string[],
): Distinctions {
  const conditions = rules.flatMap(({ when, unless }): CallerConditions[] => (unless === null ? [when] : [when, unless]))
  const operators = rules.some(({ who }) => who.includes('operator')) ? selectors : []
  const unique = (names: readonly (string | undefined)[]): readonly string[] => [
    ...new Set(names.filter((name) => name !== undefined)),
  ]
  const named = unique([...conditions.flatMap((one) => one.issuers ?? []), ...operators.map(({ issuer }) => issuer)])
  const tests = conditions.flatMap((one) => one.claims ?? [])
  return {
    issuers: unique([issuers.find((key) => !named.includes(key)), ...named]).filter((key) => issuers.includes(key)),
    roles: unique([...conditions.flatMap((one) => one.roles ?? []), ...operators.map(({ role }) => role)]),
    permissions: unique([
      ...conditions.flatMap(({ permissions }) => [...(permissions?.any ?? []), ...(permissions?.all ?? [])]),
      ...operators.map(({ permission }) => permission),
    ]),
    claims: unique(tests.map(({ at }) => at)).map((at) => ({ at, samples: samplesOf(tests.filter((test) => test.at === at)) })),
  }
}

/** With the forms that cannot be read, and the anonymous caller. */
function countOf(distinctions: Distinctions): number {
  const { issuers, roles, permissions, claims } = distinctions
  const readable = claims.reduce(
    (product, { samples }) => product * samples.length,
    issuers.length * 2 ** (roles.length + permissions.length),
  )
  return readable * unreadables(distinctions).length + 1
}

/** Callers with the same of these combinations get the same decisions. One at a time; callers with the least come first. */
function* combinationsOf({ issuers, roles, permissions, claims }: Distinctions): Generator<Profile> {
  for (const chosen of valuesOf(claims)) {
    for (const permitted of subsetsOf(permissions)) {
      for (const having of subsetsOf(roles)) {
        for (const issuer of issuers) yield { issuer, roles: having, permissions: permitted, claims: chosen }
      }
    }
  }
}

function* subsetsOf([first, ...rest]: readonly string[]): Generator<readonly string[]> {
  if (first === undefined) {
    yield []
    return
  }
  for (const subset of subsetsOf(rest)) {
    yield subset
    yield [first, ...subset]
  }
}

function* valuesOf([first, ...rest]: Distinctions['claims']): Generator<Profile['claims']> {
  if (first === undefined) {
    yield []
    return
  }
  for (const values of valuesOf(rest)) {
    for (const sample of first.samples) yield sample === undefined ? values : [[first.at, sample], ...values]
  }
}
