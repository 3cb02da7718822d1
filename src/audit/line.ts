/** The record of one decision. Each field is named here: no token, header, query or other part of a body may get in. */
import type { RouteDescriptor } from '../core/route/classify.ts'
import { takeClaims, type ClaimValues } from '../core/decide/claim-values.ts'
import {
  awaitsRun,
  neededRight,
  type Enforcement,
  type Facts,
  type OwnerRecord,
  type UnknownThread,
} from '../core/decide/decide.ts'
import type { Principal } from '../core/decide/principal.ts'
import { CODES, type Reason, type Refusal, type RulePlace } from '../core/reasons.ts'
import type { InterruptAnswer } from '../core/route/interrupt-answers.ts'
import type { Transport } from '../core/route/transport.ts'
import { makeIsoTime } from '../observe/iso-time.ts'

export interface AuditedDecision {
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly request: AuditedRequest
  readonly facts: Facts
  readonly decision: AuditedOutcome
  readonly configuration: AuditedConfiguration
}

export interface AuditedRequest {
  readonly id: string
  /** The caller's address, as far as the trusted proxies report it. */
  readonly client: string | undefined
  readonly transport: Transport
  /** The scope of the upstream in the ownership table: its key, or `''`. */
  readonly scope: string
  /** Undefined before authentication, and where that failed. */
  readonly principal: Principal | undefined
  /** Where the credential was sent; null without one, and where authentication failed. */
  readonly credential: 'header' | 'cookie' | null
  /** Null where no route was found. */
  readonly descriptor: RouteDescriptor | null
  /** Milliseconds from the head of the request to the decision; null for an unreadable request. */
  readonly latency: number | null
}

export interface AuditedOutcome {
  readonly outcome: Refusal | 'permitted'
  readonly rule: RulePlace | undefined
  /** Under `observe`: why enforcing would have refused it. */
  readonly observed: Reason | null
  /** Under `observe`: how many threads of a list enforcing would have hidden. */
  readonly hidden: number
}

export interface AuditedConfiguration {
  /** The hash of the policy. */
  readonly policy: string
  readonly claimPointers: readonly string[]
  readonly generation: number
}

/** A provisional row and a grant are shown only where they could have counted. */
// oxfmt-ignore
export type RecordWord =
  | 'own' | 'own-deleted' | 'own-seen' | 'none' | 'foreign' | 'foreign-deleted' | 'foreign-seen' | 'foreign-withheld'
  | 'own-provisional' | 'foreign-provisional' | 'shared-read' | 'shared-write'

export type AuditedPrincipal =
  | {
      readonly id: string
      readonly roles: readonly string[]
      /** `role` or `permissions`, where the claim exists in an unreadable form. */
      readonly unreadable?: readonly string[]
      readonly permissions: readonly string[]
      readonly claims: ClaimValues
    }
  /** `everybody` is true in mode `off`, which has only this user. */
  | { readonly id: 'anonymous'; readonly everybody: boolean }

/** One line, in the order in which it is written. Absent values are null. */
export interface AuditLine {
  readonly audit: 1
  /** ISO 8601, UTC. */
  readonly time: string
  readonly requestId: string
  readonly client: string | null
  readonly principal: AuditedPrincipal | null
  readonly credential: 'header' | 'cookie' | null
  /** `none` where no route was found. */
  readonly route: string
  readonly method: string | null
  readonly agent: string | null
  readonly thread: string | null
  /** What the request answers; null if it answers no interrupt, or its body was not read. */
  readonly interrupts: readonly InterruptAnswer[] | null
  readonly transport: Transport
  readonly scope: string
  readonly facts: {
    /** Null where the store was not asked. */
    readonly record: RecordWord | null
    readonly userScoped: boolean
    readonly unknownThread: UnknownThread
    readonly enforcement: Enforcement
    /** Null where the upstream was not asked. */
    readonly upstreamHistory: 'none' | 'some' | null
  }
  readonly decision: 'permitted' | 'refused'
  readonly reason: Reason | 'permitted'
  /** The caller's answer: code and status; both null for a permit, which the upstream answers. */
  readonly code: string | null
  readonly status: number | null
  readonly rule: { readonly name: string; readonly line: number | null; readonly file: string } | null
  readonly observed: Reason | null
  readonly hidden: number
  readonly policy: string
  readonly generation: number
  readonly latencyMs: number | null
}

export function auditLine({ time, request, facts, decision, configuration }: AuditedDecision): AuditLine {
  const { principal, descriptor, latency } = request
  const { outcome, rule } = decision
  const refusal = outcome === 'permitted' ? null : outcome
  return {
    audit: 1,
    time: new Date(time).toISOString(),
    requestId: request.id,
    client: isAddress(request.client) ? request.client : null,
    principal: principal === undefined ? null : principalOf(principal, configuration.claimPointers),
    credential: request.credential,
    route: descriptor?.route.id ?? 'none',
    method: descriptor?.route.method ?? null,
    agent: descriptor?.ids.agentId ?? null,
    thread: descriptor?.ids.threadId ?? null,
    interrupts: descriptor?.answers?.map(interruptOf) ?? null,
    transport: request.transport,
    scope: request.scope,
    facts: {
      record: recordWord(facts.record, principal, descriptor),
      userScoped: facts.userScoped,
      unknownThread: facts.unknownThread,
      enforcement: facts.enforcement,
      upstreamHistory: facts.upstreamHistory ?? null,
    },
    decision: refusal === null ? 'permitted' : 'refused',
    reason: refusal?.reason ?? 'permitted',
    code: refusal?.code ?? null,
    status: refusal === null ? null : CODES[refusal.code].status,
    rule: rule === undefined ? null : ruleOf(rule),
    observed: decision.observed,
    hidden: decision.hidden,
    policy: configuration.policy,
    generation: configuration.generation,
    latencyMs: latency === null ? null : Math.round(latency * 1000) / 1000,
  }
}

/**
 * Writes the text of `auditLine`, with a line end, in half the time of JSON.stringify: the texts of callers and rules are kept for
 * as long as those exist, and terms of the gateway need no escapes.
 */
export function makeAuditText(): (decided: AuditedDecision) => string {
  const callerText = makeCallerText()
  const ruleText = makeRuleText()
  const isoTime = makeIsoTime()
  return ({ time, request, facts, decision, configuration }) => {
    const { principal, descriptor, latency } = request
    const { outcome, rule } = decision
    const refusal = outcome === 'permitted' ? null : outcome
    return (
      `{"audit":1,"time":"${isoTime(time)}","requestId":${quoted(request.id)}` +
      `,"client":${isAddress(request.client) ? word(request.client) : 'null'}` +
      `,"principal":${principal === undefined ? 'null' : callerText(principal, configuration.claimPointers)}` +
      `,"credential":${word(request.credential)}` +
      `,"route":${word(descriptor?.route.id ?? 'none')},"method":${word(descriptor?.route.method)}` +
      `,"agent":${quoted(descriptor?.ids.agentId)},"thread":${quoted(descriptor?.ids.threadId)}` +
      `,"interrupts":${descriptor?.answers === undefined ? 'null' : JSON.stringify(descriptor.answers.map(interruptOf))}` +
      `,"transport":${word(request.transport)},"scope":${quoted(request.scope)}` +
      `,"facts":{"record":${word(recordWord(facts.record, principal, descriptor))},"userScoped":${facts.userScoped},"unknownThread":${word(facts.unknownThread)}` +
      `,"enforcement":${word(facts.enforcement)},"upstreamHistory":${word(facts.upstreamHistory)}}` +
      `,"decision":${refusal === null ? '"permitted"' : '"refused"'},"reason":${word(refusal?.reason ?? 'permitted')}` +
      `,"code":${word(refusal?.code)},"status":${refusal === null ? 'null' : CODES[refusal.code].status}` +
      `,"rule":${rule === undefined ? 'null' : ruleText(rule)},"observed":${word(decision.observed)},"hidden":${decision.hidden}` +
      `,"policy":${word(configuration.policy)},"generation":${configuration.generation}` +
      `,"latencyMs":${latency === null ? 'null' : Math.round(latency * 1000) / 1000}}\n`
    )
  }
}

function makeCallerText(): (caller: Principal, pointers: readonly string[]) => string {
  const kept = new WeakMap<Principal, { readonly pointers: readonly string[]; readonly text: string }>()
  return (caller, pointers) => {
    const known = kept.get(caller)
    if (known?.pointers === pointers) return known.text
    const text = JSON.stringify(principalOf(caller, pointers))
    kept.set(caller, { pointers, text })
    return text
  }
}

function makeRuleText(): (rule: RulePlace) => string {
  const kept = new WeakMap<RulePlace, string>()
  return (rule) => {
    const known = kept.get(rule)
    if (known !== undefined) return known
    const text = JSON.stringify(ruleOf(rule))
    kept.set(rule, text)
    return text
  }
}

/** @param text a term of the gateway, a hash or an address: no character of it needs an escape */
function word(text: string | null | undefined): string {
  return text === null || text === undefined ? 'null' : `"${text}"`
}

function quoted(text: string | undefined): string {
  return text === undefined ? 'null' : JSON.stringify(text)
}

function interruptOf({ id, answer, content }: InterruptAnswer): InterruptAnswer {
  return { id, answer, ...(content === undefined ? {} : { content }) }
}

/** A trusted proxy that passes on its callers' header could put any text in place of an address. */
function isAddress(client: string | undefined): client is string {
  return client !== undefined && /^[0-9A-Fa-f:.[\]]{2,64}(?:%[0-9A-Za-z]{1,16})?$/.test(client)
}

function principalOf(principal: Principal, pointers: readonly string[]): AuditedPrincipal {
  if (principal.kind === 'anonymous') return { id: principal.id, everybody: principal.standsForAll }
  const { id, roles, permissions, claims, unreadable } = principal
  return { id, roles, permissions, ...(unreadable === undefined ? {} : { unreadable }), claims: takeClaims(claims, pointers) }
}

/** @returns null where the store was not asked, or there is no authenticated user */
function recordWord(
  record: OwnerRecord | undefined,
  principal: Principal | undefined,
  descriptor: RouteDescriptor | null,
): RecordWord | null {
  if (record === undefined || principal === undefined) return null
  if (record === null) return 'none'
  const whose = record.owner === principal.id ? 'own' : 'foreign'
  if (record.seen === true) return `${whose}-seen`
  if (record.deleted) return `${whose}-deleted`
  if (record.owner === '') return 'foreign-withheld'
  if (descriptor !== null && awaitsRun(record, descriptor.route)) return `${whose}-provisional`
  const mayCount = whose === 'foreign' && descriptor !== null && neededRight(descriptor, principal) !== 'owner'
  return mayCount && record.granted !== undefined ? `shared-${record.granted}` : whose
}

function ruleOf({ name, line, file }: RulePlace): NonNullable<AuditLine['rule']> {
  return { name, line: line ?? null, file: baseName(file) }
}

function baseName(file: string): string {
  return file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1)
}
