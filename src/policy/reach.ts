/** Decides which callers a rule can apply to under the configuration, and whether earlier rules already cover it. */
import {
  speaksOfThread,
  type CallerConditions,
  type Rule,
  type Rules,
  type ClaimTest,
  type Scalar,
} from '../core/decide/rules.ts'
import { ALL_ROUTES } from '../core/route/all-routes.ts'
import type { RouteId } from '../core/route/routes.ts'
import type { PolicySurroundings } from './faults.ts'

interface Caller {
  /** `anonymous` also covers all callers in mode `off`. */
  readonly kind: 'anonymous' | 'signed-in' | 'operator'
  readonly known: CallerConditions
}

export type Silence = 'nobody-anonymous' | 'mode-off' | 'no-operators' | 'conditions' | 'unless'

export interface Reach {
  /** Null if the rule applies to some caller. */
  silenceOf(rule: Rule): Silence | null
  /** Indexes of operator selectors whose users no rule for operators applies to, while such a rule applies to others. */
  idleSelectors(rules: readonly Rule[]): readonly number[]
  /** The first of `others` that together cover all callers and objects of a rule on a route; null if they do not. */
  coveredBy(rule: Rule, route: RouteId, others: readonly Rule[]): Rule | null
}

const RELATIONS = ['own', 'shared', 'unknown', 'foreign'] as const

export function makeReach(
  { operators, sharing }: Pick<Rules, 'operators' | 'sharing'>,
  { issuers, mode = 'required' }: PolicySurroundings,
): Reach {
  const selected = operators.map(({ issuer, role, permission }): Caller => ({
    kind: 'operator',
    known: {
      issuers: [issuer],
      ...(role === undefined ? {} : { roles: [role] }),
      ...(permission === undefined ? {} : { permissions: { all: [permission] } }),
    },
  }))
  const everybody: Caller = { kind: 'anonymous', known: {} }
  const callers = {
    anonymous: mode === 'required' ? [] : [everybody],
    'signed-in': mode === 'off' ? [everybody] : [{ kind: 'signed-in', known: { issuers } } satisfies Caller],
    operator: mode === 'off' ? [] : selected,
  }

  const spokenOf = remembered((rule) => [...new Set(rule.who.flatMap((who): readonly Caller[] => callers[who]))])

  const left = remembered((rule) =>
    spokenOf(rule).filter(({ kind, known }) => {
      // Without a token a caller meets no condition, and so no exception, either.
      if (kind === 'anonymous') return isEmpty(rule.when)
      const given = [known, rule.when]
      return !exclude(given) && (rule.unless === null || !implies(given, rule.unless))
    }),
  )

  /** True if `other` applies to all of these callers that the rule selects. */
  const speaksOf = (other: Rule, { kind, known }: Caller, { when, unless }: Rule): boolean => {
    const named = spokenOf(other).some((one) => one.kind === kind || (one.kind === 'signed-in' && kind === 'operator'))
    if (kind === 'anonymous') return named && isEmpty(other.when)
    const given = [known, when]
    if (!named || !implies(given, other.when)) return false
    // `other` applies to all of them if it excepts none: none can meet its exception, or the rule excepts the same callers.
    return other.unless === null || exclude([...given, other.unless]) || (unless !== null && implies([other.unless], unless))
  }

  return {
    silenceOf(rule) {
      if (left(rule).length > 0) return null
      if (spokenOf(rule).length > 0) {
        if (mode === 'off') return 'mode-off'
        return rule.unless !== null && !spokenOf(rule).every(({ known }) => exclude([known, rule.when])) ? 'unless' : 'conditions'
      }
      if (!rule.who.includes('operator')) return 'nobody-anonymous'
      return mode === 'off' ? 'mode-off' : 'no-operators'
    },
    idleSelectors(rules) {
      const spoken = new Set(rules.flatMap(left))
      const idle = selected.map((selector) => !spoken.has(selector))
      return idle.includes(false) ? idle.flatMap((is, at) => (is ? [at] : [])) : []
    },
    coveredBy(rule, route, others) {
      const about = others.filter(
        ({ agents, onlyUserScoped }) =>
          (agents === null || (rule.agents !== null && [...rule.agents].every((agent) => agents.has(agent)))) &&
          (!onlyUserScoped || rule.onlyUserScoped),
      )
      const rows = ALL_ROUTES.filter(({ id, method }) => id === route && rule.methods?.includes(method) !== false)
      const cells = rows.flatMap(({ method, thread, right }) => {
        // A right that stays with the owner is never shared.
        const canBe = RELATIONS.filter((relation) => relation !== 'shared' || (sharing && right !== 'owner'))
        const relations = thread === undefined ? [null] : canBe.filter((relation) => speaksOfThread(rule, relation))
        return left(rule).flatMap((caller) =>
          relations.map((relation) =>
            about.find(
              (other) =>
                other.methods?.includes(method) !== false &&
                (relation === null || speaksOfThread(other, relation)) &&
                speaksOf(other, caller, rule),
            ),
          ),
        )
      })
      return cells.length > 0 && cells.every((one) => one !== undefined) ? (cells[0] ?? null) : null
    },
  }
}

function remembered(ask: (rule: Rule) => readonly Caller[]): (rule: Rule) => readonly Caller[] {
  const answers = new WeakMap<Rule, readonly Caller[]>()
  return (rule) => {
    const known = answers.get(rule) ?? ask(rule)
    answers.set(rule, known)
    return known
  }
}

function isEmpty(conditions: CallerConditions): boolean {
  return Object.values(conditions).every((part) => part === undefined)
}

/** True if each caller who meets all of `given` is sure to meet the other. Anything uncertain counts as not implied. */
export function implies(given: readonly CallerConditions[], { issuers, roles, permissions, claims }: CallerConditions): boolean {
  const among = (one: readonly string[] | undefined, wider: readonly string[]): boolean =>
    one !== undefined && one.every((item) => wider.includes(item))
  const held = given.flatMap(({ permissions: known }) => [...(known?.all ?? []), ...(known?.any?.length === 1 ? known.any : [])])
  return (
    (issuers === undefined || given.some((one) => among(one.issuers, issuers))) &&
    (roles === undefined || given.some((one) => among(one.roles, roles))) &&
    (permissions?.all === undefined || among(permissions.all, held)) &&
    (permissions?.any === undefined ||
      permissions.any.some((one) => held.includes(one)) ||
      given.some((one) => among(one.permissions?.any, permissions.any ?? []))) &&
    (claims ?? []).every((wanted) => given.some((one) => one.claims?.some((known) => testImplies(known, wanted))))
  )
}

/** True if no signed-in user can meet all of `given` at once. */
export function exclude(given: readonly CallerConditions[]): boolean {
  const issuers = given.flatMap((one) => (one.issuers === undefined ? [] : [one.issuers]))
  if (issuers.length > 0 && !issuers[0]?.some((issuer) => issuers.every((list) => list.includes(issuer)))) return true
  const claims = given.flatMap((one) => one.claims ?? [])
  return claims.some((one) => claims.some((other) => one.at === other.at && testsExclude(one, other)))
}

/** The values that a test accepts; null if they cannot be listed. */
function valuesOf(test: ClaimTest): readonly Scalar[] | null {
  return test.is === 'equal' ? [test.to] : test.is === 'in' ? test.list : null
}

function testImplies(known: ClaimTest, wanted: ClaimTest): boolean {
  if (known.at !== wanted.at) return false
  if (wanted.is === 'present') return known.is === 'present' ? known.wanted === wanted.wanted : wanted.wanted
  const [few, many] = [valuesOf(known), valuesOf(wanted)]
  if (few !== null && many !== null) return few.every((value) => many.includes(value))
  if (known.is === 'at-least' && wanted.is === 'at-least') return known.bound >= wanted.bound
  if (known.is === 'at-most' && wanted.is === 'at-most') return known.bound <= wanted.bound
  return known.is === 'containing' && wanted.is === 'containing' && known.item === wanted.item
}

function testsExclude(one: ClaimTest, other: ClaimTest): boolean {
  if (one.is === 'present') return !one.wanted && !(other.is === 'present' && !other.wanted)
  const [some, others] = [valuesOf(one), valuesOf(other)]
  if (some !== null && others !== null) return !some.some((value) => others.includes(value))
  return one.is === 'at-least' && other.is === 'at-most' && one.bound > other.bound
}
