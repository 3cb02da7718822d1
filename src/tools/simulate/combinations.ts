/** Makes every caller that rules could distinguish. Callers with the same of these combinations get the same decisions. */
import type { CallerConditions, OperatorSelector, Rule } from '../../core/decide/rules.ts'
import { samplesOf, type Sample } from './claim-samples.ts'
import type { Profile } from './profiles.ts'

export interface Distinctions {
  readonly issuers: readonly string[]
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
  readonly claims: readonly { readonly at: string; readonly samples: readonly Sample[] }[]
}

/** @param issuers the configured issuers: those that no rule names count as a single issuer */
export function distinctionsOf(
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

export function countOf({ issuers, roles, permissions, claims }: Distinctions): number {
  return claims.reduce(
    (product, { samples }) => product * samples.length,
    issuers.length * 2 ** (roles.length + permissions.length),
  )
}

/** Gives all combinations one at a time; callers with the least come first. */
export function* combinationsOf({ issuers, roles, permissions, claims }: Distinctions): Generator<Profile> {
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
