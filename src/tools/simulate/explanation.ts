/** An explanation as data for scripts, without any secret value. */
import type { Config } from '../../config/schema.ts'
import { isOperator } from '../../core/decide/rules.ts'
import { CODES } from '../../core/reasons.ts'
import type { Principal } from '../../core/decide/principal.ts'
import type { Target } from '../../core/route/target.ts'
import type { Trace } from '../../core/decide/trace.ts'
import type { Policy } from '../../policy/policy.ts'
import type { Explanation, Question } from './explain.ts'
import { limitsOf } from './limits.ts'
import { notesOn } from './notes.ts'
import { placeOf } from './place.ts'
import { limitText } from './decision-text.ts'

export function canonical({ segments, query }: Target): string {
  const path = segments.map((segment) => `/${encodeURIComponent(segment)}`).join('')
  const search = [...query].map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')
  return `${path === '' ? '/' : path}${search === '' ? '' : `?${search}`}`
}

export function outcomeData(outcome: Trace['decision'] | 'key-set') {
  if (outcome === 'key-set') return { outcome: 'answered' as const, status: 200, code: null, reason: 'key-set', rule: null }
  if (outcome.outcome === 'refused') {
    const { code, reason, rule } = outcome
    return {
      outcome: 'refused' as const,
      status: CODES[code].status,
      code,
      reason,
      rule: rule === undefined ? null : placeOf(rule),
    }
  }
  if (outcome.outcome === 'needs')
    return { outcome: 'needs' as const, status: null, code: null, reason: outcome.fact, rule: null }
  return { outcome: 'permitted' as const, status: null, code: null, reason: 'permitted', rule: placeOf(outcome.rule) }
}

export function principalData(principal: Principal, { rules }: Policy) {
  if (principal.kind === 'anonymous') return { id: principal.id, everybody: principal.standsForAll }
  const { id, issuer, subject, roles, permissions } = principal
  return { id, issuer, subject, roles, permissions, operator: isOperator(principal, rules.operators) }
}

export function triedData({ tried }: Trace) {
  return tried.map(({ rule, verdict, decides }) => ({ ...placeOf(rule), effect: rule.effect, verdict, decides }))
}

export function explanationData(explanation: Explanation, question: Question, config: Config, policy: Policy) {
  const { target, mount, principal, descriptor, facts, trace, outcome, sent, enveloped } = explanation
  const permit = typeof outcome === 'object' && outcome.outcome === 'permitted' ? outcome : null
  return {
    ...outcomeData(outcome),
    request: {
      method: question.method,
      target: question.target,
      canonical: target === null || mount === null ? null : canonical(target),
      enveloped,
    },
    scope: mount?.scope ?? null,
    route: descriptor === null ? null : { id: descriptor.route.id, method: descriptor.route.method, ...descriptor.ids },
    principal:
      principal === null
        ? null
        : { ...principalData(principal, policy), ...(principal.kind === 'user' ? { groups: principal.groups } : {}) },
    facts: facts === null ? null : { ...facts, relation: trace?.relation ?? null },
    policy: { file: policy.file, hash: policy.hash },
    rules: trace === null ? [] : triedData(trace),
    duties:
      permit === null
        ? null
        : { claim: permit.claim, begins: permit.begins, answerEmpty: permit.answerEmpty, observed: permit.observed },
    limits:
      permit === null
        ? null
        : Object.fromEntries(Object.entries(limitsOf(permit, config)).map(([name, limit]) => [name, limitText(limit)])),
    upstream: sent,
    notes: notesOn(explanation, question, policy),
  }
}
