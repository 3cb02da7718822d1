/** Describes decisions for the operator at a terminal. */
import type { Rate, Rates, StreamLimit, StreamLimits, TokenBudget, TokenBudgets } from '../../core/decide/limits.ts'
import { sizeText } from '../../document/quantities.ts'
import type { RouteDescriptor } from '../../core/route/classify.ts'
import {
  decide,
  neededRight,
  relationOf,
  type Facts,
  type Need,
  type OwnerRecord,
  type Permit,
} from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { CODES, type Refusal, type RulePlace } from '../../core/reasons.ts'
import { isOperator, type Relation, type Rule, type Rules } from '../../core/decide/rules.ts'
import type { Trace, TriedRule, TriedVerdict } from '../../core/decide/trace.ts'

const VERDICTS: Readonly<Record<Exclude<TriedVerdict, 'thread'>, string>> = {
  applies: 'matches',
  failed: 'cannot be evaluated: a claim has another type than the value that the rule compares it with',
  method: 'does not match: rule covers other methods',
  who: 'does not match: rule covers other callers',
  issuer: 'does not match: rule covers other issuers',
  role: 'does not match: caller does not have the role',
  permission: 'does not match: caller does not have the permissions',
  claim: 'does not match: caller does not have the claim',
  agent: 'does not match: rule covers other agents',
  unless: 'does not match: unless exempts the caller',
  upstream: 'does not match: upstream.userScoped is not true',
  deleted: 'does not match: rule covers foreign threads, and the owner deleted this one',
  unsettled: 'does not match: rule covers foreign threads, and the owner of this one is not confirmed',
}

type RelationOf = Pick<Trace, 'relation'>

export function triedText(one: TriedRule, trace: RelationOf): string {
  return `${triedVerdict(one, trace)}${one.decides ? ', and decides' : ''}`
}

/** For a request that only observe mode permits: the deciding rule would refuse it. */
export function observedText(one: TriedRule, trace: RelationOf): string {
  return `${triedVerdict(one, trace)}${one.decides ? '; permits in observe mode' : ''}`
}

function triedVerdict({ rule, verdict }: TriedRule, { relation }: RelationOf): string {
  const text = verdict === 'thread' ? threadVerdict(rule.threads, relation) : VERDICTS[verdict]
  return `${rule.effect} ${ruleText(rule)}: ${text}`
}

function threadVerdict(threads: Rule['threads'], relation: Relation | null): string {
  const covered = threads === null ? 'no threads' : threads.map(relationText).join(', ')
  return `does not match: thread is ${relation === null ? 'not known' : relationText(relation)}, rule covers ${covered}`
}

/** A thread without an owner is `unknown` in policies and in data. */
export function relationText(relation: Relation): string {
  return relation === 'unknown' ? 'unowned' : relation
}

export function permitText(permit: Permit, facts: Facts, rules: Rules): string {
  const { observed, descriptor, principal, rule } = permit
  // Decides again instead of using the reason: a rule may hide its refusal.
  const enforced = observed === null ? null : decide(descriptor, principal, rules, { ...facts, enforcement: 'enforce' })
  if (enforced?.outcome !== 'refused') return `permitted by ${ruleText(rule)}`
  const { code, reason } = enforced
  return `permitted only in observe mode: enforcement: enforce refuses with ${CODES[code].status} ${code} (${reason})`
}

export function needText({ fact }: Need): string {
  return fact === 'record' ? 'the owner of the thread' : 'the history of the thread in the upstream'
}

/** `403 not-owner (thread-foreign): This conversation is not yours.` */
export function refusalText({ code, reason }: Refusal): string {
  return `${CODES[code].status} ${code} (${reason}): ${CODES[code].text}`
}

export function principalText(principal: Principal, { operators }: Pick<Rules, 'operators'>): string {
  if (principal.kind === 'anonymous') {
    return principal.standsForAll
      ? 'all callers are one user: authentication.mode is off'
      : 'anonymous: no credential, authentication.mode is optional'
  }
  const { id, roles, permissions, groups } = principal
  const named = groups.length === 0 ? '' : `; groups: ${listText(groups)}`
  return `${id}; roles: ${listText(roles)}; permissions: ${listText(permissions)}${named}; ${isOperator(principal, operators) ? 'operator' : 'not an operator'}`
}

export function listText(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ')
}

export function recordText(record: NonNullable<OwnerRecord>, relation: Relation, idle: IdleGrant | null): string {
  if (record.seen === true) return `has no owner, and was used under enforcement: observe: ${relationText(relation)}`
  if (record.deleted) return `belongs to ${record.owner}, who deleted it: ${relationText(relation)}`
  if (record.provisional === true) return `belongs to ${record.owner}, with an unconfirmed claim: ${relationText(relation)}`
  if (record.granted === undefined) return `belongs to ${record.owner}: ${relationText(relation)}`
  const shared = `shared with the caller for ${GRANTED[record.granted]}`
  return idle === null
    ? `belongs to ${record.owner}, ${shared}: ${relationText(relation)}`
    : `belongs to ${record.owner}: ${relationText(relation)}. It is ${shared}; ${idle.why}`
}

/** The ids are the caller's text, so they are left out. */
export function answersText({ answers }: Pick<RouteDescriptor, 'answers'>): string | null {
  return answers === undefined ? null : `the body answers interrupts: ${listText(answers.map(({ answer }) => answer))}`
}

export const GRANTED = { read: 'reading', write: 'writing' } as const

const ACTS: Readonly<Record<string, string>> = {
  'agent/run': 'running an agent',
  'agent/stop': 'stopping a run',
  'langgraph/runs/create': 'running a graph',
  'langgraph/runs/cancel': 'stopping a run',
}

interface IdleGrant {
  readonly effect: 'has no effect' | 'is not enough'
  readonly why: string
}

export function idleText({ effect, why }: IdleGrant): string {
  return `the grant ${effect}: ${why}`
}

/** Why a grant makes no difference; null if it does, or if there is none. */
export function idleGrant(
  { record }: Pick<Facts, 'record'>,
  descriptor: RouteDescriptor,
  principal: Principal,
  rules: Rules,
): IdleGrant | null {
  if (record?.granted === undefined || relationOf(record, principal, descriptor, rules) !== 'foreign' || record.deleted)
    return null
  if (principal.kind === 'anonymous') return { effect: 'has no effect', why: 'anonymous callers cannot have grants' }
  if (!rules.sharing) return { effect: 'has no effect', why: 'the policy does not set sharing: true' }
  const needed = neededRight(descriptor, principal)
  const why =
    needed === 'owner'
      ? 'only the owner may do this'
      : `${ACTS[descriptor.route.id] ?? 'this'} needs a grant for ${GRANTED[needed]}`
  return { effect: 'is not enough', why }
}

const UNITS = [
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1000, 's'],
] as const

function timeText(milliseconds: number): string {
  const days = milliseconds / 86_400_000
  if (Number.isInteger(days)) return `${days}d`
  const [unit, name] = UNITS.find(([per]) => milliseconds % per === 0) ?? [1, 'ms']
  return `${milliseconds / unit}${name}`
}

function amountText(limit: Rate | StreamLimit | TokenBudget): string {
  if ('most' in limit) return String(limit.most)
  if ('amount' in limit) return `${limit.amount}/${UNITS.find(([per]) => per === limit.per)?.[1] ?? `${limit.per}ms`}`
  return `${limit.limit} in ${timeText(limit.window)}${limit.onExceeded === 'end' ? ' (ends runs)' : ''}`
}

function sharedText({ by }: Rate | StreamLimit | TokenBudget): string {
  if (by === undefined) return ''
  if (by.kind === 'claim') return ` per ${by.at}`
  return by.groups === null ? ' per group' : ` per group of ${by.groups.join(', ')}`
}

export type Limit = Rates | StreamLimits | TokenBudgets | number | undefined

/** A limit as in a file. */
export function limitText(name: string, limit: Limit): string {
  if (limit === undefined) return 'as configured'
  if (typeof limit !== 'object') return name === 'body' && typeof limit === 'number' ? sizeText(limit) : String(limit)
  return limit.length === 0 ? 'off' : limit.map((one) => `${amountText(one)}${sharedText(one)}`).join(' and ')
}

/** `"staff-only" (line 12)`, where the output names the policy once. */
export function ruleText({ name, line }: RulePlace): string {
  return `"${name}"${line === undefined ? '' : ` (line ${line})`}`
}

export function placeOf({ name, file, line }: RulePlace): RulePlace {
  return line === undefined ? { name, file } : { name, file, line }
}
