/**
 * The decision: a pure function of route, principal, facts and rules. It asks for facts by name when it needs them,
 * refuses with a reason from the closed list, or gives a permit, and nothing else can make one.
 */
import type { RouteDescriptor } from '../route/classify.ts'
import { isAgentId, isThreadId } from '../route/ids.ts'
import type { Principal } from './principal.ts'
import { refuse, type Reason, type Refusal, type RulePlace } from '../reasons.ts'
import { ROUTES, type Route } from '../route/routes.ts'
import { speaksOfThread, verdictOn, type Relation, type Rule, type Rules, type Verdict } from './rules.ts'
import { suffices, type NeededRight, type Right } from './sharing.ts'
import { largest } from '../json/extremes.ts'

/** What `unknownThread` says of a run or suggestion on a thread without an owner. */
export type UnknownThread = 'claim' | 'verify' | 'deny'

/** Whether what rests on ownership alone is refused, or only said (docs/contributing/invariants.md, 7). */
export type Enforcement = 'enforce' | 'observe'

/**
 * The owner that the store knows for a thread, or `null` for no row. `seen` is no row either: under `observe` this user was
 * seen to run the thread, and several if the owner is `''`. That makes nobody an owner, and it is not for others to claim.
 */
export type OwnerRecord = {
  readonly owner: string
  readonly deleted: boolean
  readonly seen?: true
  /** No run of the thread is confirmed: the owner asked for it, and the upstream has not said that it is theirs. */
  readonly provisional?: true
  /** What the owner, or an operator, granted to this caller. */
  readonly granted?: Right
} | null

/** What is known besides the request; what is left out is asked for when a decision rests on it. */
export interface Facts {
  readonly userScoped: boolean
  readonly unknownThread: UnknownThread
  readonly enforcement: Enforcement
  readonly record?: OwnerRecord
  /** Whether the upstream holds something of a thread that no row names. */
  readonly upstreamHistory?: 'none' | 'some'
}

/** What is known of a gateway, whatever the request. */
export type StandingFacts = Pick<Facts, 'userScoped' | 'unknownThread' | 'enforcement'>

/** A decision waits for a fact. */
export type Need =
  | { readonly outcome: 'needs'; readonly fact: 'record' }
  /** With the rule that would allow it. */
  | { readonly outcome: 'needs'; readonly fact: 'upstreamHistory'; readonly rule: Rule }

/** Leave to go on, with what has to be done on the way. Made by decide alone. */
export type Permit = MadePermit

/** True if `value` is a permit that decide made: the forwarder takes nothing else. */
export function isPermit(value: unknown): value is Permit {
  return MadePermit.is(value)
}

/**
 * What a request wants of a thread that is not the caller's. To take back the grant that names the caller, and no other, any
 * right will do: whoever was let in may leave.
 * @param caller left out for somebody whom the body does not name
 */
export function neededRight({ route, ownerOnly, leaver }: RouteDescriptor, caller?: Principal): NeededRight {
  if (leaver !== undefined && leaver === caller?.id) return 'read'
  return ownerOnly === true ? 'owner' : (route.right ?? 'owner')
}

/**
 * True for a thread that is no live one of somebody's: it was deleted, was only seen, or has an owner no more (`''`). On routes
 * that want a confirmed run one that has none, too: with `unknownThread: claim` anybody may ask for a run on any id, and until
 * the upstream has taken it the thread may be another's, from before the gateway. To read it then, to change, delete or annotate
 * it, or to let others in, whose run would confirm the row, would rest on nothing but having asked.
 */
export function isUnsettled(record: OwnerRecord, { route }: Pick<RouteDescriptor, 'route'>): boolean {
  if (record === null) return false
  return record.deleted || record.seen === true || record.owner === '' || awaitsRun(record, route)
}

/** True where a route is closed on a thread because no run of it is confirmed. */
export function awaitsRun(record: OwnerRecord, route: Route): boolean {
  return record?.provisional === true && route.beforeConfirmed !== true
}

/**
 * What a thread is to a caller who asks for this of it. A thread that is not settled is foreign to others and unknown to its
 * user. A grant counts where the policy lets grants count, and where it is enough for the route.
 */
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

/** Why a request is refused whose thread no rule opens. */
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

/** Routes that are closed to anonymous callers, whatever a policy says. */
const NOT_FOR_ANONYMOUS: ReadonlySet<string> = new Set(['threads/list', 'threads/grants'])

/** Routes on which a thread may begin. */
const BEGINNING: ReadonlySet<string> = new Set(['agent/run', 'agent/suggest'])

/**
 * Decides a request. A rule that denies wins over all that allow, a rule that can't be evaluated denies, and what no rule
 * allows is denied.
 * @param descriptor what the request is about
 * @param principal who asks
 * @param rules what the policy says
 * @param facts what is known; a fact that is left out is asked for, and only when the decision rests on it
 */
export function decide(descriptor: RouteDescriptor, principal: Principal, rules: Rules, facts: Facts): Permit | Refusal | Need {
  const { route } = descriptor
  const { rules: tried, hide } = rules.routes[route.id]
  const no = (reason: Reason, rule?: Rule): Refusal =>
    refuse(reason, {
      ...(hide || rule?.hides === true
        ? { code: 'not-found' as const }
        : // What rests on a thread's owner is told in one way, by whatever rule.
          reason === 'denied-by-rule' && rule?.threads !== null
          ? { code: 'not-owner' as const }
          : {}),
      ...(rule === undefined ? {} : { rule: placeOf(rule) }),
    })
  const verdicts = tried.map((rule) => verdictOn(rule, descriptor, principal, rules.operators, facts.userScoped))
  const failed = tried.find((_rule, at) => verdicts[at] === 'failed')
  if (failed !== undefined) return no('rule-failed', failed)
  const applying = tried.filter((_rule, at) => verdicts[at] === 'applies')
  const denying = applying.filter(({ effect }) => effect === 'deny')
  const always = denying.find(({ threads }) => threads === null)
  if (always !== undefined) return no('denied-by-rule', always)
  const allowing = applying.filter(({ effect }) => effect === 'allow')
  const [first] = allowing
  if (first === undefined) return no(whyNobody(tried, verdicts, principal))
  // Anonymous callers of mode `optional` are many people behind one owner: none of them gets the list of all, or gives it away.
  if (NOT_FOR_ANONYMOUS.has(route.id) && principal.kind === 'anonymous' && !principal.standsForAll) {
    return no('anonymous-not-allowed')
  }
  if (route.thread === undefined) return permit(descriptor, principal, first, {})

  if (facts.record === undefined) return { outcome: 'needs', fact: 'record' }
  const relation = relationOf(facts.record, principal, descriptor, rules)
  const denied = denying.find((one) => speaksOfThread(one, relation))
  // A deleted thread is out of every list, so nobody but its owner finds anything there: operators don't, either. Nor where
  // an owner is not settled: a run would settle it. Nor where the owner was taken away.
  const gone = relation === 'foreign' && isUnsettled(facts.record, descriptor)
  const rule = gone ? undefined : allowing.find((one) => speaksOfThread(one, relation))
  // What the gateway answers itself is enforced always: only what the upstream would have let through is let through.
  const observing = facts.enforcement === 'observe' && route.own !== true
  if (denied !== undefined || rule === undefined) {
    const reason = denied !== undefined ? 'denied-by-rule' : whyNotOpened(relation, facts.record)
    if (!observing) return no(reason, denied)
    const begins = relation === 'unknown' && BEGINNING.has(route.id)
    return permit(descriptor, principal, rule ?? first, { owner: facts.record?.owner, begins, observed: reason })
  }
  if (relation !== 'unknown') {
    // Under `observe` the owner may be one that is only presumed: no row may come of it.
    const claim = route.id === 'agent/run' && !observing
    const isUnsettled = facts.record?.provisional === true && !claim
    return permit(descriptor, principal, rule, { owner: facts.record?.owner, claim, isUnsettled })
  }
  const decided = decideUnknown(descriptor, principal, rule, facts, no)
  if (!observing || decided.outcome === 'needs') return decided
  // Under `observe` a run makes no owner, and nothing is answered in place of the upstream.
  return permit(descriptor, principal, rule, {
    begins: BEGINNING.has(route.id),
    observed: decided.outcome === 'refused' ? decided.reason : null,
  })
}

/** A thread without an owner: docs/how-it-works.md, "Ownership". */
function decideUnknown(
  descriptor: RouteDescriptor,
  principal: Principal,
  rule: Rule,
  facts: Facts,
  no: (reason: Reason) => Refusal,
): Permit | Refusal | Need {
  switch (descriptor.route.id) {
    case 'agent/connect':
      return permit(descriptor, principal, rule, { answerEmpty: true })
    case 'agent/run':
    case 'agent/suggest': {
      const claim = descriptor.route.id === 'agent/run'
      const begin = { begins: true, claim, isUnsettled: !claim }
      // The owner of a deleted thread knows that it was theirs: there is nobody else's history to find.
      const known = facts.record !== null && facts.record?.seen !== true
      if (known || facts.unknownThread === 'claim') return permit(descriptor, principal, rule, begin)
      if (facts.unknownThread === 'deny') return no('thread-unknown')
      if (facts.upstreamHistory === undefined) return { outcome: 'needs', fact: 'upstreamHistory', rule }
      return facts.upstreamHistory === 'none' ? permit(descriptor, principal, rule, begin) : no('thread-has-history')
    }
    default:
      // Whatever a policy says, no other route may create or find a thread that nobody owns.
      return no(whyNotOpened('unknown', facts.record ?? null))
  }
}

/**
 * The most bytes that the body of a request may have, before it is known which of the rules that could allow it does.
 * @param configured the limit of the configuration for this route
 */
export function mostBody(
  descriptor: RouteDescriptor,
  principal: Principal,
  rules: Rules,
  facts: StandingFacts,
  configured: number,
): number {
  return mostOf(rules.routes[descriptor.route.id].rules, descriptor, principal, rules, facts, configured)
}

/**
 * The most bytes of a body on any route that a caller may use, whatever the agent: as much as is read of an envelope,
 * which tells its route only when it was read.
 */
export function mostBodyOfAny(
  principal: Principal,
  rules: Rules,
  facts: StandingFacts,
  configured: (route: Route) => number,
): number {
  const limits = ROUTES.map((route) => {
    const anyAgent = rules.routes[route.id].rules.map((rule) => ({ ...rule, agents: null }))
    const about = { outcome: 'classified', route, ids: {}, query: [] } as const
    return mostOf(anyAgent, about, principal, rules, facts, configured(route))
  })
  return Math.max(0, largest(limits))
}

function mostOf(
  tried: readonly Rule[],
  descriptor: RouteDescriptor,
  principal: Principal,
  { operators }: Rules,
  { userScoped }: StandingFacts,
  configured: number,
): number {
  const allowing = tried.filter(
    (rule) => rule.effect === 'allow' && verdictOn(rule, descriptor, principal, operators, userScoped) === 'applies',
  )
  return Math.max(0, largest(allowing.map(({ limits }) => limits.body ?? configured)))
}

/**
 * True for an agent that a caller may use: run, or connect to. The list of /info holds no other.
 * @param agentId as the upstream calls it
 */
export function mayUseAgent(agentId: string, principal: Principal, rules: Rules, facts: StandingFacts): boolean {
  if (!isAgentId(agentId)) return false
  return ROUTES.filter(({ id }) => id === 'agent/run' || id === 'agent/connect').some(
    (route) =>
      decide({ outcome: 'classified', route, ids: { agentId }, query: [] }, principal, rules, facts).outcome !== 'refused',
  )
}

const MESSAGES = ROUTES.find(({ id }) => id === 'threads/messages') as Route

/**
 * True for a thread that stands in a caller's list: its messages are the caller's to read, also while nothing is enforced.
 * @param threadId as the upstream calls it
 */
export function isListed(
  threadId: string,
  record: OwnerRecord,
  principal: Principal,
  rules: Rules,
  facts: StandingFacts,
): boolean {
  if (!isThreadId(threadId)) return false
  const descriptor = { outcome: 'classified', route: MESSAGES, ids: { threadId }, query: [] } as const
  return decide(descriptor, principal, rules, { ...facts, enforcement: 'enforce', record }).outcome === 'permitted'
}

/**
 * True for a caller in whose list threads stand that neither are theirs nor were granted to them: those of others, for
 * operators. No list holds a thread that nobody owns.
 */
export function listsForeign(principal: Principal, rules: Rules, facts: StandingFacts): boolean {
  // Of the threads that are foreign to a caller, none is open that a settled live one is not. No user id is without a colon.
  return isListed('another', { owner: 'somebody-else', deleted: false }, principal, rules, facts)
}

function whyNobody(tried: readonly Rule[], verdicts: readonly Verdict[], principal: Principal): Reason {
  const allowing = tried.filter(({ effect }) => effect === 'allow')
  const missed = verdicts.filter((_verdict, at) => tried[at]?.effect === 'allow')
  if (allowing.length === 0) return 'no-rule-allows'
  if (missed.includes('upstream')) return 'upstream-not-user-scoped'
  if (principal.kind === 'anonymous' && !principal.standsForAll) return 'anonymous-not-allowed'
  if (missed.includes('agent')) return 'agent-not-allowed'
  return allowing.every((rule) => rule.who.every((who) => who === 'operator')) ? 'operator-only' : 'no-rule-allows'
}

function placeOf({ name, file, line }: Rule): RulePlace {
  return line === undefined ? { name, file } : { name, file, line }
}

/** What has to be done on the way; what is left out has not. */
interface Duties {
  readonly owner?: string | undefined
  readonly begins?: boolean
  readonly claim?: boolean
  readonly answerEmpty?: boolean
  readonly isUnsettled?: boolean
  readonly observed?: Reason | null
}

/** Nobody else has it. */
const MAKING = Symbol('making a permit')

/**
 * A permit. It is known by a private name: no copy has it, and no object that looks like one (ECMA-262 §13.10.1).
 */
class MadePermit {
  readonly outcome = 'permitted'
  readonly descriptor: RouteDescriptor
  readonly principal: Principal
  /** The rule that allows it, which says what passes and which limits apply. */
  readonly rule: Rule
  /** Whose thread it is, where a row says so; else the principal's. */
  readonly owner: string
  /** True for a run or suggestion that begins a thread: it has no owner, or its owner had deleted it. */
  readonly begins: boolean
  /** Register a run of its owner's thread before the request is sent, and settle it by what becomes of the run. */
  readonly claim: boolean
  /** Answer as the upstream answers for a new thread, without asking it. */
  readonly answerEmpty: boolean
  /**
   * True where no owner is settled and the request settles none: the thread is nobody's, or no run of it is confirmed. It may
   * become somebody else's, which sends no invalidation, because nobody else knew anything of the thread.
   */
  readonly isUnsettled: boolean
  /** Under `observe`: why enforcing would have refused it. */
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

  static is(value: unknown): value is Permit {
    return typeof value === 'object' && value !== null && #making in value
  }
}

function permit(descriptor: RouteDescriptor, principal: Principal, rule: Rule, duties: Duties): Permit {
  return new MadePermit(MAKING, descriptor, principal, rule, duties)
}
