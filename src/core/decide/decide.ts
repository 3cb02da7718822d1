/** Decides a request by a pure function of route, principal, facts and rules. No other code can make a permit. */
import type { RouteDescriptor } from '../route/classify.ts'
import { isAgentId, isThreadId } from '../route/ids.ts'
import type { Principal } from './principal.ts'
import { refuse, type Reason, type Refusal, type RulePlace } from '../reasons.ts'
import { LANGGRAPH_THREAD } from '../route/langgraph-routes.ts'
import { ROUTES, type Route } from '../route/routes.ts'
import { matchRules, speaksOfThread, type Relation, type Rule, type RuleMatch, type Rules } from './rules.ts'
import { suffices, type NeededRight, type Right } from './sharing.ts'

export type UnknownThread = 'claim' | 'verify' | 'deny'

/** Whether refusals that depend on ownership alone are enforced or only reported (docs/contributing/invariants.md, 7). */
export type Enforcement = 'enforce' | 'observe'

/** `seen`: no row; under `observe` the gateway saw this user run the thread (`''`: several users). No other user can claim it. */
export type OwnerRecord = {
  readonly owner: string
  readonly deleted: boolean
  readonly seen?: true
  /** The owner asked for a run, and the upstream has not confirmed it. */
  readonly provisional?: true
  readonly granted?: Right
} | null

/** The decision asks for an absent fact if it depends on that fact. */
export interface Facts {
  readonly userScoped: boolean
  readonly unknownThread: UnknownThread
  readonly enforcement: Enforcement
  readonly record?: OwnerRecord
  readonly upstreamHistory?: 'none' | 'some'
}

export type StandingFacts = Pick<Facts, 'userScoped' | 'unknownThread' | 'enforcement'>

export type Need =
  | { readonly outcome: 'needs'; readonly fact: 'record' }
  | { readonly outcome: 'needs'; readonly fact: 'upstreamHistory'; readonly rule: Rule }

export type Permit = MadePermit

/** A grantee with any right may revoke their own grant. `caller` is omitted if the body does not name the caller. */
export function neededRight({ route, ownerOnly, leaver }: RouteDescriptor, caller?: Principal): NeededRight {
  if (leaver !== undefined && leaver === caller?.id) return 'read'
  return ownerOnly === true ? 'owner' : (route.right ?? 'owner')
}

/**
 * True for a thread that was deleted, was only seen, lost its owner (`''`), or lacks a confirmed run that the route requires.
 * With `unknownThread: claim` any caller may ask for a run on any id: until it is confirmed, the thread may belong to another
 * user.
 */
export function isUnsettled(record: OwnerRecord, { route }: Pick<RouteDescriptor, 'route'>): boolean {
  if (record === null) return false
  return record.deleted || record.seen === true || record.owner === '' || awaitsRun(record, route)
}

export function awaitsRun(record: OwnerRecord, route: Route): boolean {
  return record?.provisional === true && route.beforeConfirmed !== true
}

/** An unsettled thread is foreign to other users and unknown to its own user. Grants count only if the policy enables them. */
export function relationOf(
  record: OwnerRecord,
  principal: Principal,
  descriptor: RouteDescriptor,
  { sharing }: Pick<Rules, 'sharing'>,
): Relation {
  if (record === null) return 'unknown'
  const unsettled = isUnsettled(record, descriptor)
  if (record.owner === principal.id) return unsettled ? 'unknown' : 'own'
  if (unsettled || !sharing || record.granted === undefined || principal.kind === 'anonymous') return 'foreign'
  return suffices(record.granted, neededRight(descriptor, principal)) ? 'shared' : 'foreign'
}

const NOT_OPENED = {
  own: 'no-rule-allows',
  shared: 'thread-foreign',
  unknown: 'thread-unknown',
  foreign: 'thread-foreign',
} as const

function whyNotOpened(relation: Relation, record: OwnerRecord): Reason {
  const isTheirs = relation === 'unknown' && record !== null && !record.deleted && record.seen !== true
  return isTheirs ? 'thread-unconfirmed' : NOT_OPENED[relation]
}

const NOT_FOR_ANONYMOUS: ReadonlySet<string> = new Set([
  'threads/list',
  'threads/grants',
  'langgraph/threads/search',
  'langgraph/threads/count',
])

type OnUnknownThread = Route['unknownThread']

const BEGINNING: ReadonlySet<OnUnknownThread> = new Set<OnUnknownThread>(['claim', 'create', 'try'])

/** What makes the caller of a request the owner of an unowned thread. */
export const CLAIMING: ReadonlySet<OnUnknownThread> = new Set<OnUnknownThread>(['claim', 'create'])

export function decide(descriptor: RouteDescriptor, principal: Principal, rules: Rules, facts: Facts): Permit | Refusal | Need {
  return decideMatched(matchRules(descriptor, principal, rules, facts), descriptor, facts)
}

/** The rule that allows a run says whether it may answer interrupts. This is not about owners, so `observe` enforces it, too. */
export function decideMatched(match: RuleMatch, descriptor: RouteDescriptor, facts: Facts): Permit | Refusal | Need {
  const decision = decideAccess(match, descriptor, facts)
  if (descriptor.answers === undefined || decision.outcome === 'refused' || !('rule' in decision)) return decision
  const { rule } = decision
  if (rule.passes.interrupts === 'pass') return decision
  return refusedBy(match.rules, descriptor.route, 'interrupt-answer-not-allowed', rule)
}

/** A denying rule wins over allow rules. A rule that cannot be evaluated denies. Without an allow rule, access is denied. */
function decideAccess(match: RuleMatch, descriptor: RouteDescriptor, facts: Facts): Permit | Refusal | Need {
  const { route, ids } = descriptor
  const { principal, rules, failed, denying, allowing } = match
  if (match.route !== route || match.agentId !== ids.agentId || match.userScoped !== facts.userScoped) {
    throw new Error('the rules were matched with another request')
  }
  if (failed !== undefined) return refusedBy(rules, route, 'rule-failed', failed)
  const always = denying.find(({ threads }) => threads === null)
  if (always !== undefined) return refusedBy(rules, route, 'denied-by-rule', always)
  const [first] = allowing
  if (first === undefined) return refusedBy(rules, route, whyNobody(match))
  // In mode `optional` all anonymous callers share one owner: none of them may list or give away what belongs to all.
  if (NOT_FOR_ANONYMOUS.has(route.id) && principal.kind === 'anonymous' && !principal.standsForAll) {
    return refusedBy(rules, route, 'anonymous-not-allowed')
  }
  if (route.thread === undefined) return new MadePermit(MAKING, descriptor, principal, first, {})

  if (facts.record === undefined) return { outcome: 'needs', fact: 'record' }
  const relation = relationOf(facts.record, principal, descriptor, rules)
  const denied = denying.find((one) => speaksOfThread(one, relation))
  // Lists omit deleted threads, so only the owner, and no operator, can find a deleted or unsettled thread.
  const gone = relation === 'foreign' && isUnsettled(facts.record, descriptor)
  const rule = gone ? undefined : allowing.find((one) => speaksOfThread(one, relation))
  // The gateway always enforces what it answers itself: `observe` lets through only what the upstream would have let through.
  const observing = facts.enforcement === 'observe' && route.own !== true
  if (denied !== undefined || rule === undefined) {
    const reason = denied !== undefined ? 'denied-by-rule' : whyNotOpened(relation, facts.record)
    if (!observing) return refusedBy(rules, route, reason, denied)
    const isBegun = relation === 'unknown' && BEGINNING.has(route.unknownThread)
    const duties = { owner: facts.record?.owner, begins: isBegun, observed: reason }
    return new MadePermit(MAKING, descriptor, principal, rule ?? first, duties)
  }
  if (relation !== 'unknown') {
    // Under `observe` the owner may be only presumed, so the run must not create a row.
    const claim = CLAIMING.has(route.unknownThread) && !observing
    const isUnsettled = facts.record?.provisional === true && !claim
    return new MadePermit(MAKING, descriptor, principal, rule, { owner: facts.record?.owner, claim, isUnsettled })
  }
  const decided = decideUnknown(match, descriptor, rule, facts)
  if (!observing || decided.outcome === 'needs') return decided
  return new MadePermit(MAKING, descriptor, principal, rule, {
    begins: BEGINNING.has(route.unknownThread),
    observed: decided.outcome === 'refused' ? decided.reason : null,
  })
}

/** Decides for an unowned thread: docs/explanation/ownership.md. */
function decideUnknown(
  { principal, rules }: RuleMatch,
  descriptor: RouteDescriptor,
  rule: Rule,
  facts: Facts,
): Permit | Refusal | Need {
  const { route } = descriptor
  const { unknownThread } = route
  if (unknownThread === undefined) return refusedBy(rules, route, whyNotOpened('unknown', facts.record ?? null))
  if (unknownThread === 'empty') return new MadePermit(MAKING, descriptor, principal, rule, { answerEmpty: true })
  const claim = CLAIMING.has(unknownThread)
  const begin = { begins: true, claim, isUnsettled: !claim }
  // The owner of a deleted thread knows that it was theirs: no other user's history can be found there.
  const known = facts.record !== null && facts.record?.seen !== true
  if (known || facts.unknownThread === 'claim') return new MadePermit(MAKING, descriptor, principal, rule, begin)
  if (facts.unknownThread === 'deny') return refusedBy(rules, route, 'thread-unknown')
  if (descriptor.isNamedHere === true) return new MadePermit(MAKING, descriptor, principal, rule, begin)
  if (facts.upstreamHistory === undefined) return { outcome: 'needs', fact: 'upstreamHistory', rule }
  if (facts.upstreamHistory !== 'none') return refusedBy(rules, route, 'thread-has-history')
  return new MadePermit(MAKING, descriptor, principal, rule, begin)
}

/** The most bytes of a body, before it is known which rule allows the request. */
export function mostBody({ allowing }: RuleMatch, configured: number): number {
  let most = 0
  for (const { limits } of allowing) most = Math.max(most, limits.body ?? configured)
  return most
}

/** The most bytes on any route that the caller may use: only an envelope's content names its route. */
export function mostBodyOfAny(
  principal: Principal,
  rules: Rules,
  facts: StandingFacts,
  configured: (route: Route) => number,
): number {
  let most = 0
  for (const route of ROUTES) {
    const anyAgent = rules.routes[route.id].rules.map((rule) => ({ ...rule, agents: null }))
    const about = { outcome: 'classified', route, ids: {}, query: [] } as const
    const routes = { ...rules.routes, [route.id]: { ...rules.routes[route.id], rules: anyAgent } }
    most = Math.max(most, mostBody(matchRules(about, principal, { ...rules, routes }, facts), configured(route)))
  }
  return most
}

/** @param agentId as the upstream calls it */
export function mayUseAgent(agentId: string, principal: Principal, rules: Rules, facts: StandingFacts): boolean {
  if (!isAgentId(agentId)) return false
  return ROUTES.filter(({ id }) => id === 'agent/run' || id === 'agent/connect').some(
    (route) =>
      decide({ outcome: 'classified', route, ids: { agentId }, query: [] }, principal, rules, facts).outcome !== 'refused',
  )
}

const MESSAGES = ROUTES.find(({ id }) => id === 'threads/messages') as Route

/** Whether a list that a caller asks for has a thread. */
export type IsListed = (threadId: string, record: OwnerRecord) => boolean

/**
 * Lists have the threads whose messages the caller may read, even under `observe`. Matches the rules once for all threads.
 * @param list the route of the list: a thread of a LangGraph server is read by another route
 */
export function listingFor(
  principal: Principal,
  rules: Rules,
  facts: StandingFacts,
  list: Pick<Route, 'api'> = MESSAGES,
): IsListed {
  const route = list.api === 'langgraph' ? LANGGRAPH_THREAD : MESSAGES
  const about = { outcome: 'classified', route, query: [] } as const
  const match = matchRules({ ...about, ids: {} }, principal, rules, facts)
  const enforced = { ...facts, enforcement: 'enforce' } as const
  // Beside the record, a decision depends on nothing of the thread: for threads with equal records it is made once.
  let last: { readonly record: OwnerRecord; readonly isPermitted: boolean } | null = null
  return (threadId, record) => {
    if (!isThreadId(threadId)) return false
    if (last === null || !isSameRecord(last.record, record)) {
      const decision = decideMatched(match, { ...about, ids: { threadId } }, { ...enforced, record })
      last = { record, isPermitted: decision.outcome === 'permitted' }
    }
    return last.isPermitted
  }
}

/** All of a record: the type check fails for a new field that is not here. */
const FIELDS_OF_RECORD = Object.keys({
  owner: true,
  deleted: true,
  seen: true,
  provisional: true,
  granted: true,
} satisfies Record<keyof NonNullable<OwnerRecord>, true>) as readonly (keyof NonNullable<OwnerRecord>)[]

function isSameRecord(one: OwnerRecord, other: OwnerRecord): boolean {
  if (one === other) return true
  if (one === null || other === null) return false
  return FIELDS_OF_RECORD.every((field) => one[field] === other[field])
}

/** True for a caller, such as an operator, whose list has threads of other users without a grant. */
export function listsForeign(isListed: IsListed): boolean {
  // If any foreign thread is open to a caller, a settled live one is. Every user id has a colon, so no user is this owner.
  return isListed('another', { owner: 'somebody-else', deleted: false })
}

function whyNobody({ principal, tried, verdicts }: RuleMatch): Reason {
  const allowing = tried.filter(({ effect }) => effect === 'allow')
  const missed = verdicts.filter((_verdict, at) => tried[at]?.effect === 'allow')
  if (allowing.length === 0) return 'no-rule-allows'
  if (missed.includes('upstream')) return 'upstream-not-user-scoped'
  if (principal.kind === 'anonymous' && !principal.standsForAll) return 'anonymous-not-allowed'
  if (missed.includes('agent')) return 'agent-not-allowed'
  return allowing.every((rule) => rule.who.every((who) => who === 'operator')) ? 'operator-only' : 'no-rule-allows'
}

function refusedBy({ routes }: Rules, { id }: Route, reason: Reason, rule?: Rule): Refusal {
  // Every rule refuses in the same way if the refusal depends on the thread's owner.
  const isOwners = reason === 'denied-by-rule' && rule?.threads !== null
  const code = routes[id].hide || rule?.hides === true ? 'not-found' : isOwners ? 'not-owner' : null
  return refuse(reason, { ...(code === null ? {} : { code }), ...(rule === undefined ? {} : { rule: placeOf(rule) }) })
}

function placeOf({ name, file, line }: Rule): RulePlace {
  return line === undefined ? { name, file } : { name, file, line }
}

interface Duties {
  readonly owner?: string | undefined
  readonly begins?: boolean
  readonly claim?: boolean
  readonly answerEmpty?: boolean
  readonly isUnsettled?: boolean
  readonly observed?: Reason | null
}

/** Not exported, so that no other module can make a permit. */
const MAKING = Symbol('making a permit')

/** A permit, known by a private name: no copy has it, and no object that looks like a permit (ECMA-262 §13.10.1). */
class MadePermit {
  readonly outcome = 'permitted'
  readonly descriptor: RouteDescriptor
  readonly principal: Principal
  /** Decides which fields are forwarded and which limits apply. */
  readonly rule: Rule
  /** The owner of the thread if a row names one, otherwise the principal. */
  readonly owner: string
  /** The thread is unowned, or its owner had deleted it. */
  readonly begins: boolean
  /** Register a run before the request is sent, and settle it by the result of the run. */
  readonly claim: boolean
  /** Answer as the upstream does for a new thread, without asking it. */
  readonly answerEmpty: boolean
  /** No owner is settled, and the request settles none. A later claim by another user sends no invalidation. */
  readonly isUnsettled: boolean
  /** Under `observe`: the reason for which enforcement would have refused the request. */
  readonly observed: Reason | null
  readonly #making = MAKING

  constructor(making: typeof MAKING, descriptor: RouteDescriptor, principal: Principal, rule: Rule, duties: Duties) {
    if (making !== MAKING) throw new Error('decide alone makes permits')
    this.descriptor = descriptor
    this.principal = principal
    this.rule = rule
    this.owner = duties.owner ?? principal.id
    this.begins = duties.begins ?? false
    this.claim = duties.claim ?? false
    this.answerEmpty = duties.answerEmpty ?? false
    this.isUnsettled = duties.isUnsettled ?? false
    this.observed = duties.observed ?? null
    Object.freeze(this)
  }

  static readonly is = (value: unknown): value is Permit => typeof value === 'object' && value !== null && #making in value
}

export const isPermit = MadePermit.is
