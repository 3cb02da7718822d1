/**
 * The decision: a pure function of route, principal, facts and rules. It asks for facts by name when it needs them,
 * refuses with a reason from the closed list, or gives a permit, and nothing else can make one.
 */
import type { RouteDescriptor } from './classify.ts'
import type { Principal } from './principal.ts'
import { refuse, type Code, type Reason, type Refusal } from './reasons.ts'
import type { RouteId } from './routes.ts'

/** What a thread is to a caller. */
export type Relation = 'own' | 'unknown' | 'foreign'

/** Who a grant of the policy speaks of. */
export type Who = 'anonymous' | 'signed-in' | 'operator'

/** One line of the policy for one route. */
export interface Grant {
  readonly who: readonly Who[]
  /** Only users of these issuers; of all, if it is left out. */
  readonly issuers?: readonly string[]
  /** On routes about a thread: which threads. */
  readonly threads: readonly Relation[]
  /** True where the grant holds only before an upstream that scopes users itself. */
  readonly onlyUserScoped: boolean
}

/** What the policy says of one route: no grant, no access. */
export interface RouteRules {
  readonly grants: readonly Grant[]
  /** True where a refusal looks like an unknown route (404). */
  readonly hide: boolean
}

/** A selector of operators. */
export interface OperatorSelector {
  readonly issuer: string
  readonly role?: string
  readonly permission?: string
}

/** The rules that decisions are made by. */
export interface Rules {
  readonly operators: readonly OperatorSelector[]
  readonly routes: Readonly<Record<RouteId, RouteRules>>
}

/** What `unknownThread` says of a run or suggestion on a thread without an owner. */
export type UnknownThread = 'claim' | 'verify' | 'deny'

/** The owner that the store knows for a thread, or `null` for no row. */
export type OwnerRecord = { readonly owner: string; readonly deleted: boolean } | null

/** What is known besides the request; what is left out is asked for when a decision rests on it. */
export interface Facts {
  readonly userScoped: boolean
  readonly unknownThread: UnknownThread
  readonly record?: OwnerRecord
  /** Whether the upstream holds something of a thread that no row names. */
  readonly upstreamHistory?: 'none' | 'some'
}

/** A decision waits for a fact. */
export interface Need {
  readonly outcome: 'needs'
  readonly fact: 'record' | 'upstreamHistory'
}

const PERMITS = new WeakSet<object>()

/** Leave to go on, with what has to be done on the way. Made by decide alone. */
export interface Permit {
  readonly outcome: 'permitted'
  readonly descriptor: RouteDescriptor
  readonly principal: Principal
  /** Whose thread it is, where a row says so; else the principal's. */
  readonly owner: string
  /** Register this thread for the principal before the request is sent, and settle it by what becomes of the run. */
  readonly claim: boolean
  /** Answer as the upstream answers for a new thread, without asking it. */
  readonly answerEmpty: boolean
}

/** True if `value` is a permit that decide made: the forwarder takes nothing else. */
export function isPermit(value: unknown): value is Permit {
  // What is no object is in no WeakSet: has() says false (ECMA-262 §24.4.3.4).
  return PERMITS.has(value as object)
}

/** What a thread is to a caller. A deleted thread stays foreign to others and is unknown to its owner. */
export function relationOf(record: OwnerRecord, principal: Principal): Relation {
  if (record === null) return 'unknown'
  if (record.owner !== principal.id) return 'foreign'
  return record.deleted ? 'unknown' : 'own'
}

/** True if the policy names this principal an operator. Nobody who isn't signed in is one. */
export function isOperator(principal: Principal, selectors: readonly OperatorSelector[]): boolean {
  if (principal.kind !== 'user') return false
  return selectors.some(
    (selector) =>
      selector.issuer === principal.issuer &&
      (selector.role === undefined || principal.roles.includes(selector.role)) &&
      (selector.permission === undefined || principal.permissions.includes(selector.permission)) &&
      (selector.role !== undefined || selector.permission !== undefined),
  )
}

/**
 * Decides a request.
 * @param descriptor what the request is about
 * @param principal who asks
 * @param rules what the policy says
 * @param facts what is known; a fact that is left out is asked for, and only when the decision rests on it
 */
export function decide(descriptor: RouteDescriptor, principal: Principal, rules: Rules, facts: Facts): Permit | Refusal | Need {
  const { route } = descriptor
  const { grants, hide } = rules.routes[route.id]
  const no = (reason: Reason): Refusal => (hide ? refuse(reason, { code: 'not-found' satisfies Code }) : refuse(reason))

  const mine = grants.filter((grant) => speaksOf(grant, principal, rules.operators))
  if (mine.length === 0) return no(whyNobody(grants, principal))
  // Anonymous callers of mode `optional` are many people behind one owner: none of them gets the list of all.
  if (route.id === 'threads/list' && principal.kind === 'anonymous' && !principal.standsForAll) return no('anonymous-not-allowed')
  const usable = mine.filter((grant) => facts.userScoped || !grant.onlyUserScoped)
  if (usable.length === 0) return no('upstream-not-user-scoped')
  if (route.thread === undefined) return permit(descriptor, principal, {})

  if (facts.record === undefined) return { outcome: 'needs', fact: 'record' }
  const relation = relationOf(facts.record, principal)
  // A deleted thread is out of every list, so nobody but its owner finds anything there: operators don't, either.
  const gone = relation === 'foreign' && facts.record?.deleted === true
  if (gone || !usable.some((grant) => grant.threads.includes(relation))) {
    return no(relation === 'foreign' ? 'thread-foreign' : 'thread-unknown')
  }
  if (relation === 'unknown') return decideUnknown(descriptor, principal, facts, no)
  return permit(descriptor, principal, { owner: facts.record?.owner, claim: route.id === 'agent/run' })
}

/** A thread without an owner: design "Unknown threads". */
function decideUnknown(
  descriptor: RouteDescriptor,
  principal: Principal,
  facts: Facts,
  no: (reason: Reason) => Refusal,
): Permit | Refusal | Need {
  switch (descriptor.route.id) {
    case 'agent/connect':
      return permit(descriptor, principal, { answerEmpty: true })
    case 'agent/run':
    case 'agent/suggest': {
      const claim = descriptor.route.id === 'agent/run'
      // The owner of a deleted thread knows that it was theirs: there is nobody else's history to find.
      if (facts.record !== null || facts.unknownThread === 'claim') return permit(descriptor, principal, { claim })
      if (facts.unknownThread === 'deny') return no('thread-unknown')
      if (facts.upstreamHistory === undefined) return { outcome: 'needs', fact: 'upstreamHistory' }
      return facts.upstreamHistory === 'none' ? permit(descriptor, principal, { claim }) : no('thread-has-history')
    }
    default:
      // Whatever a policy says, no other route may create or find a thread that nobody owns.
      return no('thread-unknown')
  }
}

function speaksOf(grant: Grant, principal: Principal, operators: readonly OperatorSelector[]): boolean {
  if (grant.issuers !== undefined && !(principal.kind === 'user' && grant.issuers.includes(principal.issuer))) return false
  return grant.who.some((who) => {
    switch (who) {
      case 'anonymous':
        return principal.kind === 'anonymous'
      case 'signed-in':
        return principal.kind === 'user' || principal.standsForAll
      case 'operator':
        return isOperator(principal, operators)
    }
  })
}

function whyNobody(grants: readonly Grant[], principal: Principal): Reason {
  if (grants.length === 0) return 'no-rule-allows'
  if (principal.kind === 'anonymous' && !principal.standsForAll) return 'anonymous-not-allowed'
  return grants.every((grant) => grant.who.every((who) => who === 'operator')) ? 'operator-only' : 'no-rule-allows'
}

function permit(
  descriptor: RouteDescriptor,
  principal: Principal,
  duties: { readonly owner?: string | undefined; readonly claim?: boolean; readonly answerEmpty?: boolean },
): Permit {
  const made = Object.freeze({
    outcome: 'permitted',
    descriptor,
    principal,
    owner: duties.owner ?? principal.id,
    claim: duties.claim ?? false,
    answerEmpty: duties.answerEmpty ?? false,
  } as const)
  PERMITS.add(made)
  return made
}
