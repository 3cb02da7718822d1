/** Whom a rule can ever speak of, given the configuration, and whether others say everything before it has a say. */
import type { CallerConditions } from '../core/decide/conditions.ts'
import { ALL_ROUTES, type RouteId } from '../core/route/routes.ts'
import { speaksOfThread, type Rule, type Rules } from '../core/decide/rules.ts'
import type { PolicySurroundings } from './faults.ts'
import { exclude, implies } from './implication.ts'

/** A kind of caller who can come. */
interface Caller {
  /** `anonymous` is also everybody in mode `off`. */
  readonly kind: 'anonymous' | 'signed-in' | 'operator'
  /** What is so of all of them. */
  readonly known: CallerConditions
}

/** Why a rule never speaks of anybody. */
export type Silence = 'nobody-anonymous' | 'mode-off' | 'no-operators' | 'conditions' | 'unless'

export interface Reach {
  /** Null if the rule speaks of somebody. */
  silenceOf(rule: Rule): Silence | null
  /** Selectors of operators, by their place, of whose users no rule for operators speaks, while one speaks of others. */
  idleSelectors(rules: readonly Rule[]): readonly number[]
  /**
   * The first of `others` that together speak of everybody and everything that a rule speaks of on a route.
   * @returns null if they don't
   */
  coveredBy(rule: Rule, route: RouteId, others: readonly Rule[]): Rule | null
}

const RELATIONS = ['own', 'shared', 'unknown', 'foreign'] as const

/** Tells what rules can reach under a configuration. */
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

  /** Those whom the conditions of a rule leave. */
  const left = remembered((rule) =>
    spokenOf(rule).filter(({ kind, known }) => {
      // Without a token nothing is met, and so no exception, either.
      if (kind === 'anonymous') return isEmpty(rule.when)
      const given = [known, rule.when]
      return !exclude(given) && (rule.unless === null || !implies(given, rule.unless))
    }),
  )

  /** True if a rule speaks of all of these callers of whom another one does. */
  const speaksOf = (other: Rule, { kind, known }: Caller, { when, unless }: Rule): boolean => {
    const named = spokenOf(other).some((one) => one.kind === kind || (one.kind === 'signed-in' && kind === 'operator'))
    if (kind === 'anonymous') return named && isEmpty(other.when)
    const given = [known, when]
    if (!named || !implies(given, other.when)) return false
    // It speaks of all of these if none of them is excepted: they can't be, or this rule excepts those as well.
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
        // What stays with the owner is never shared.
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

/** Asks once for each rule. */
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
