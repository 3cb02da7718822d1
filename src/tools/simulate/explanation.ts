/** An explanation as data for scripts, without any secret value, with its limits and notes. */
import type { Config } from '../../config/schema.ts'
import { isOperator } from '../../core/decide/rules.ts'
import { CODES, isRefusal } from '../../core/reasons.ts'
import type { Principal } from '../../core/decide/principal.ts'
import type { Target } from '../../core/route/target.ts'
import type { Trace } from '../../core/decide/trace.ts'
import type { Policy } from '../../policy/compile.ts'
import type { Explanation, Question } from './explain.ts'
import { isUnnamed, langGraphNotes } from './langgraph-notes.ts'
import { answersText, placeOf, limitText, idleGrant, idleText, type Limit } from './decision-text.ts'
import { configuredBody } from '../../core/route/bodies.ts'
import type { Permit } from '../../core/decide/decide.ts'

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
        : Object.fromEntries(Object.entries(limitsOf(permit, config)).map(([name, limit]) => [name, limitText(name, limit)])),
    upstream: sent,
    notes: notesOn(explanation, question, policy),
  }
}

/** The body in bytes. */
type LimitsOf = Readonly<Record<string, Limit>>

/** Those of its rule come before those of the configuration, except for requests: they count against both. */
export function limitsOf({ descriptor: { route }, rule, begins }: Permit, { limits }: Config): LimitsOf {
  const own = rule.limits
  return {
    requests: limits.requests,
    ...(own.requests === undefined ? {} : { 'requests of the rule': own.requests }),
    ...(route.unknownThread === 'claim' ? { runs: own.runs ?? limits.runs } : {}),
    ...(begins || route.copiesThread === true ? { newThreads: own.newThreads ?? limits.newThreads } : {}),
    ...(route.id === 'threads/grants' && route.method === 'POST' ? { grants: limits.grants } : {}),
    ...(route.streams === true ? { streams: own.streams ?? limits.streams } : {}),
    ...(route.unknownThread === 'claim' || route.unknownThread === 'try' ? { tokens: own.tokens ?? limits.tokens } : {}),
    ...(route.body.kind === 'none' ? {} : { body: own.body ?? configuredBody(limits, route) }),
  }
}

/** The command does not open the store. */
const ASSUMED_UNOWNED = 'no --owner given: assumed unowned. `threadwarden threads owner ID` prints the owner'

export function notesOn(explanation: Explanation, question: Question, policy: Policy): readonly string[] {
  const { outcome, trace, facts, target, mount, descriptor, principal, enveloped } = explanation
  const permit = typeof outcome === 'object' && outcome.outcome === 'permitted' ? outcome : null
  const notes = [...explanation.notes]
  const say = (when: boolean, note: string): void => {
    if (when) notes.push(note)
  }
  const idle =
    descriptor === null || principal === null || facts === null ? null : idleGrant(facts, descriptor, principal, policy.rules)
  if (idle !== null) notes.push(idleText(idle))
  const { id, own } = descriptor?.route ?? {}
  const answers = descriptor === null ? null : answersText(descriptor)
  if (answers !== null) notes.push(answers)
  const unknown = trace?.relation === 'unknown' && facts?.record === null
  const applies = trace?.tried.some(({ rule, verdict }) => rule.effect === 'allow' && verdict === 'applies') === true
  say(unknown && applies && permit === null && facts.unknownThread === 'deny', 'ownership.unknownThread is deny')
  const isCreated = descriptor?.route.unknownThread === 'create'
  say(unknown && facts.unknownThread === 'verify' && applies && !isCreated, verifyNote(question, mount))
  say(
    !isUnnamed(explanation, question) &&
      !explanation.isFromStore &&
      trace !== null &&
      trace.relation !== null &&
      facts?.record === null,
    ASSUMED_UNOWNED,
  )
  say(question.body.length === 0 && isOfBody(outcome), 'no --body was given')
  say(permit?.answerEmpty === true, 'nothing is sent: the gateway answers as the upstream answers for a new thread')
  say(
    permit?.rule.passes.messages.history === 'verify' && id === 'agent/run',
    'messages.history is verify: the gateway also compares earlier messages with the upstream',
  )
  say(
    permit?.claim === true && trace?.relation === 'unknown',
    `the ${isCreated ? 'request' : 'run'} claims the thread for ${permit?.owner ?? ''}`,
  )
  say(permit !== null && own === true, 'nothing is sent: the gateway answers itself')
  say(permit?.claim === true && trace?.relation === 'shared', `the thread stays with its owner, ${permit?.owner ?? ''}`)
  say(permit !== null && id === 'threads/list', 'the list contains the threads whose messages the caller may read')
  say(permit !== null && id === 'info' && policy.rules.nameAgents, 'the answer names only the agents that the caller may use')
  say(permit !== null && target?.query.has('cursor') === true, 'the cursor is not checked')
  say(question.presented.kind === 'token' && explanation.principal?.kind === 'user', 'revocations are not checked')
  say(
    permit !== null && mount?.transport === 'auto',
    `${mount?.place.join('.')}.transport is auto: the request is shown as for a multi-route runtime`,
  )
  say((target?.droppedQueryNames ?? 0) > 0, `dropped from the query: ${target?.droppedQueryNames ?? 0}`)
  for (const note of langGraphNotes(explanation, question)) notes.push(note)
  say(id === 'transcribe' && !enveloped, 'explain reads a body as JSON, and no multipart recording')
  return notes
}

function isOfBody(outcome: Explanation['outcome']): boolean {
  return isRefusal(outcome) && (outcome.code === 'body-malformed' || outcome.code === 'media-type-unsupported')
}

function verifyNote({ upstreamHistory }: Question, mount: Explanation['mount']): string {
  const isThere = upstreamHistory === 'some'
  const history = isThere ? 'it has a history of the thread' : 'it has no history of the thread'
  const thread = isThere ? 'it has the thread' : 'it does not have the thread'
  const assumed = mount?.api === 'langgraph' ? thread : history
  return `ownership.unknownThread is verify: the gateway asks the upstream first. Assumed here: ${assumed} (--history)`
}
