/** Reads an audit line back into the inputs of its decision, so that the decision can be made again. */
import type { RecordWord } from './line.ts'
import type { RouteDescriptor } from '../core/route/classify.ts'
import { claimsFrom } from '../core/decide/claim-values.ts'
import type { Facts, OwnerRecord } from '../core/decide/decide.ts'
import { isAgentId, isScope, isThreadId } from '../core/route/ids.ts'
import type { InterruptAnswer } from '../core/route/interrupt-answers.ts'
import { isObject, type Json, type JsonObject } from '../core/json/read.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../core/decide/principal.ts'
import { ALL_ROUTES } from '../core/route/all-routes.ts'

export interface Replay {
  /** Null where no route was found: then the policy was not asked. */
  readonly descriptor: RouteDescriptor | null
  /** The scope of the thread's upstream: its key, or `''`, also for lines from before there were several upstreams. */
  readonly scope: string
  /** Null before authentication, and where that failed. */
  readonly principal: Principal | null
  readonly facts: Facts
  readonly decided: { readonly outcome: 'permitted' | 'refused'; readonly reason: string; readonly rule?: string }
  readonly policy: string
}

export interface Unreadable {
  readonly fault: string
}

/** Replaces another user's id: every user id has a colon, except `anonymous`. */
const SOMEBODY_ELSE = 'somebody-else'

export function readAuditLine(value: Json): Replay | Unreadable {
  if (!isObject(value) || value['audit'] !== 1) return { fault: 'is no line of the audit: its "audit" is not 1' }
  const descriptor = descriptorOf(value)
  if (descriptor !== null && 'fault' in descriptor) return descriptor
  const principal = principalOf(value['principal'])
  if (principal !== null && 'fault' in principal) return principal
  const facts = factsOf(value['facts'], principal)
  if ('fault' in facts) return facts
  const { decision, reason, rule, policy, scope = '' } = value
  if (typeof scope !== 'string' || !isScope(scope)) return { fault: 'names no upstream: its "scope" is no key of one' }
  if ((decision !== 'permitted' && decision !== 'refused') || typeof reason !== 'string' || typeof policy !== 'string') {
    return { fault: 'lacks the decision, the reason or the policy' }
  }
  const name = isObject(rule) ? rule['name'] : undefined
  return {
    descriptor: descriptor === null ? null : leaving(descriptor, principal, facts),
    scope,
    principal,
    facts,
    decided: { outcome: decision, reason, ...(typeof name === 'string' ? { rule: name } : {}) },
    policy,
  }
}

function descriptorOf({ route, method, agent, thread, interrupts = null }: JsonObject): RouteDescriptor | Unreadable | null {
  if (route === 'none') return null
  const found = ALL_ROUTES.find((row) => row.id === route && row.method === method)
  if (found === undefined) return { fault: 'names a route or method that there is not' }
  if (agent !== null && !isAgentId(agent)) return { fault: 'names no agent id' }
  if (thread !== null && !isThreadId(thread)) return { fault: 'names no thread id' }
  const ids = { ...(agent === null ? {} : { agentId: agent }), ...(thread === null ? {} : { threadId: thread }) }
  const descriptor = { outcome: 'classified', route: found, ids, query: [] } as const
  // Lines of older versions do not have the field.
  if (interrupts === null) return descriptor
  const answers = answersOf(interrupts)
  return answers === null
    ? { fault: 'does not say what it answers: its "interrupts" is no list of answers' }
    : { ...descriptor, answers }
}

const ANSWERS: ReadonlySet<Json | undefined> = new Set<InterruptAnswer['answer']>([
  'approved',
  'refused',
  'cancelled',
  'answered',
])

function answersOf(value: Json): readonly InterruptAnswer[] | null {
  if (!Array.isArray(value) || value.length === 0) return null
  const isAnswer = (one: Json): boolean =>
    isObject(one) && ANSWERS.has(one['answer']) && (one['id'] === null || typeof one['id'] === 'string')
  return value.every(isAnswer) ? value : null
}

/** Where grants are removed, a line says that something was granted only if the caller removed their own grant. */
function leaving(descriptor: RouteDescriptor, principal: Principal | null, { record }: Facts): RouteDescriptor {
  const leaves = descriptor.route.leave === true && record?.granted !== undefined
  return leaves && principal !== null ? { ...descriptor, leaver: principal.id } : descriptor
}

function principalOf(value: Json | undefined): Principal | Unreadable | null {
  if (value === null) return null
  const fault = { fault: 'does not say who asked: principal' }
  if (!isObject(value) || typeof value['id'] !== 'string') return fault
  const { id, everybody, roles, permissions, claims, unreadable = [] } = value
  if (id === 'anonymous') return everybody === true ? EVERYBODY : ANONYMOUS
  const colon = id.indexOf(':')
  if (colon < 1 || !isStrings(roles) || !isStrings(permissions) || !isStrings(unreadable) || !isObject(claims)) return fault
  const rebuilt = claimsFrom(claims)
  if (rebuilt === null) return { fault: 'has a claim that is named by no JSON pointer' }
  const subject = id.slice(colon + 1)
  const parts = (['role', 'permissions'] as const).filter((part) => unreadable.includes(part))
  const user = {
    kind: 'user',
    id,
    issuer: id.slice(0, colon),
    subject,
    name: undefined,
    roles,
    permissions,
    // The grants to the caller are part of what the line says about the thread.
    groups: [],
    claims: rebuilt,
  } as const
  return parts.length === 0 ? user : { ...user, unreadable: parts }
}

function factsOf(value: Json | undefined, principal: Principal | null): Facts | Unreadable {
  const fault = { fault: 'lacks the facts of the decision' }
  if (!isObject(value)) return fault
  const { userScoped, unknownThread, enforcement, upstreamHistory, record } = value
  if (typeof userScoped !== 'boolean') return fault
  if (unknownThread !== 'claim' && unknownThread !== 'verify' && unknownThread !== 'deny') return fault
  if (enforcement !== 'enforce' && enforcement !== 'observe') return fault
  if (upstreamHistory !== null && upstreamHistory !== 'none' && upstreamHistory !== 'some') return fault
  if (record !== null && !isRecordWord(record)) return fault
  const known = record === null ? undefined : RECORDS[record](principal?.id ?? '')
  return {
    userScoped,
    unknownThread,
    enforcement,
    ...(known === undefined ? {} : { record: known }),
    ...(upstreamHistory === null ? {} : { upstreamHistory }),
  }
}

const RECORDS: Readonly<Record<RecordWord, (id: string) => OwnerRecord>> = {
  own: (owner) => ({ owner, deleted: false }),
  'own-deleted': (owner) => ({ owner, deleted: true }),
  'own-seen': (owner) => ({ owner, deleted: false, seen: true }),
  none: () => null,
  foreign: () => ({ owner: SOMEBODY_ELSE, deleted: false }),
  'foreign-deleted': () => ({ owner: SOMEBODY_ELSE, deleted: true }),
  'foreign-seen': () => ({ owner: SOMEBODY_ELSE, deleted: false, seen: true }),
  'foreign-withheld': () => ({ owner: '', deleted: false }),
  'own-provisional': (owner) => ({ owner, deleted: false, provisional: true }),
  'foreign-provisional': () => ({ owner: SOMEBODY_ELSE, deleted: false, provisional: true }),
  'shared-read': () => ({ owner: SOMEBODY_ELSE, deleted: false, granted: 'read' }),
  'shared-write': () => ({ owner: SOMEBODY_ELSE, deleted: false, granted: 'write' }),
}

function isRecordWord(value: Json | undefined): value is RecordWord {
  return typeof value === 'string' && Object.hasOwn(RECORDS, value)
}

function isStrings(value: Json | undefined): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
