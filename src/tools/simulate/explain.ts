/**
 * Follows one request step by step as the gate does (src/http/pipeline/gate.ts), without a network or a store.
 * Each step is the same function that the gate calls.
 */
import type { Config } from '../../config/schema.ts'
import { mountsOf, standingFacts, type Mount } from '../../config/mounts.ts'
import { configuredBody } from '../../core/route/bodies.ts'
import { classifyAt, type RouteDescriptor } from '../../core/route/classify.ts'
import {
  mostBody,
  mostBodyOfAny,
  type Facts,
  type OwnerRecord,
  type Permit,
  type StandingFacts,
} from '../../core/decide/decide.ts'
import { headerFault, headerLines } from '../../core/wire/headers.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { isRefusal, refuse, type Refusal } from '../../core/reasons.ts'
import { QUERY_NAMES, type Route } from '../../core/route/routes.ts'
import { findMount, KEY_SET_TARGET, readTarget, type Target } from '../../core/route/target.ts'
import { traceOf, type Trace } from '../../core/decide/trace.ts'
import { hasOperation } from '../../core/route/transport.ts'
import type { Policy } from '../../policy/policy.ts'
import { readBody, readEnvelope } from './body.ts'
import { callerOf, type Presented } from './caller.ts'
import { assumed, sentFor, type IdentityHeaders, type Sent } from './sending.ts'

export interface Question {
  /** In capitals. */
  readonly method: string
  /** As in the request line. */
  readonly target: string
  readonly presented: Presented
  /** JSON; empty for none. */
  readonly body: Uint8Array
  readonly record: OwnerRecord
  /** What the upstream would answer for a thread without a row, where the gateway asks it. */
  readonly upstreamHistory: 'none' | 'some'
}

/** The gateway's result for the request; a part that it does not reach is null. */
export interface Explanation {
  readonly target: Target | null
  /** The upstream of the request; null outside all public paths. */
  readonly mount: Mount | null
  /** True for a request in an envelope on the base path. */
  readonly enveloped: boolean
  readonly principal: Principal | null
  readonly descriptor: RouteDescriptor | null
  readonly facts: Facts | null
  readonly trace: Trace | null
  /** `key-set`: the gateway answers any caller with its public keys. */
  readonly outcome: Permit | Refusal | 'key-set'
  readonly sent: Sent | null
  readonly notes: readonly string[]
}

export interface Surroundings {
  readonly config: Config
  readonly policy: Policy
  readonly identity: IdentityHeaders
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export async function explain(question: Question, surroundings: Surroundings): Promise<Explanation> {
  const { config } = surroundings
  const { method } = question
  const far = {
    target: null,
    mount: null,
    enveloped: false,
    principal: null,
    descriptor: null,
    facts: null,
    trace: null,
    sent: null,
    notes: [],
  }
  const target = readTarget(question.target, QUERY_NAMES)
  if (target.outcome === 'refused') return { ...far, outcome: target }
  const found = findMount(mountsOf(config), target)
  const seen = { ...far, target, mount: found?.mount ?? null }
  const fault = headerFault(headerLines(['host', 'gateway', ...authorizationOf(question.presented)]))
  if (fault !== null) return { ...seen, outcome: fault }
  if (question.target === KEY_SET_TARGET && method === 'GET' && config.identity.assertion !== undefined) {
    return { ...seen, outcome: 'key-set' }
  }
  const caller = await callerOf(question.presented, config, surroundings.clock)
  const { principal } = caller
  if (isRefusal(principal)) return { ...seen, outcome: principal, notes: caller.notes }
  const known = { ...seen, principal, notes: caller.notes }
  if (found === null) return { ...known, outcome: refuse('route-unknown') }
  const { mount, segments } = found
  if (mount.agentId === null && segments.length === 0) {
    if (method !== 'POST') return { ...known, outcome: refuse('route-unknown') }
    if (target.query.size > 0) return { ...known, outcome: refuse('query-beside-envelope') }
    return { ...known, enveloped: true, ...decided(mount, null, principal, question, surroundings) }
  }
  const descriptor = classifyAt(mount, method, segments, target.query)
  if (descriptor.outcome === 'refused') return { ...known, outcome: descriptor }
  return { ...known, ...decided(mount, descriptor, principal, question, surroundings) }
}

/** The Authorization header of the question, as raw header lines; claims represent a token that has them. */
function authorizationOf(presented: Presented): readonly string[] {
  return presented.kind === 'nothing'
    ? []
    : ['authorization', `Bearer ${presented.kind === 'token' ? presented.token : 'claims'}`]
}

type Decided = Pick<Explanation, 'descriptor' | 'facts' | 'trace' | 'outcome' | 'sent'>

function decided(
  mount: Mount,
  asked: RouteDescriptor | null,
  principal: Principal,
  question: Question,
  surroundings: Surroundings,
): Decided {
  const { config, policy } = surroundings
  const threadAccess = standingFacts(mount, config)
  const bounds = bodyBounds(principal, policy, threadAccess, config)
  let early: Decided = { descriptor: null, facts: null, trace: null, outcome: refuse('route-unknown'), sent: null }
  const admit = (descriptor: RouteDescriptor): Refusal | null => {
    early = { ...early, descriptor }
    if (!hasOperation(assumed(mount), descriptor.route)) return refuse('upstream-lacks-route')
    const trace = traceOf(descriptor, principal, policy.rules, threadAccess)
    early = { ...early, facts: threadAccess, trace }
    return isRefusal(trace.decision) ? trace.decision : null
  }
  const refusal = asked === null ? null : admit(asked)
  if (refusal !== null) return { ...early, outcome: refusal }
  const body =
    asked === null
      ? readEnvelope(question.body, bounds.ofAny(), { admit, mostOf: bounds.of })
      : readBody(question.body, asked, bounds.of(asked))
  if (body.outcome === 'refused') return { ...early, outcome: body }
  const { descriptor } = body
  const { record, upstreamHistory } = question
  const facts: Facts = descriptor.route.thread === undefined ? threadAccess : { ...threadAccess, record, upstreamHistory }
  const trace = traceOf(descriptor, principal, policy.rules, facts)
  const { decision } = trace
  if (decision.outcome === 'needs') throw new Error('a decision without a fact that was given')
  if (decision.outcome === 'refused') return { descriptor, facts, trace, outcome: decision, sent: null }
  const sent = sentFor(decision, body, question.presented.kind !== 'nothing', mount, surroundings)
  if (sent?.outcome === 'refused') return { descriptor, facts, trace, outcome: sent, sent: null }
  return { descriptor, facts, trace, outcome: decision, sent: decision.answerEmpty ? null : sent }
}

function bodyBounds(principal: Principal, { rules }: Policy, facts: StandingFacts, { limits }: Config) {
  const configured = (route: Route): number => configuredBody(limits, route)
  return {
    of: (descriptor: RouteDescriptor) => mostBody(descriptor, principal, rules, facts, configured(descriptor.route)),
    ofAny: () => Math.max(limits.body, mostBodyOfAny(principal, rules, facts, configured)),
  }
}
