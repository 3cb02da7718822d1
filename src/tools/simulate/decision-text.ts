/** Describes decisions for the operator at a terminal. */
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
import { isOperator, type Relation, type RuleLimits, type Rate, type Rules } from '../../core/decide/rules.ts'
import type { TriedRule, TriedVerdict } from '../../core/decide/trace.ts'

const VERDICTS: Readonly<Record<TriedVerdict, string>> = {
  applies: 'applies',
  failed: 'cannot be evaluated: a claim has another type than it is compared with',
  method: 'speaks of other methods',
  who: 'speaks of other callers',
  issuer: 'speaks of other issuers',
  role: 'wants a role that the caller does not have',
  permission: 'wants permissions that the caller does not have',
  claim: 'wants a claim that the caller does not have',
  agent: 'speaks of other agents',
  unless: 'excepts this caller',
  upstream: 'wants upstream.userScoped to be true',
  thread: 'speaks of other threads',
  deleted: 'opens threads of others, but this one was deleted by its owner',
  unsettled: 'opens threads of others, but it is not settled whose this one is',
}

export function triedText(one: TriedRule): string {
  return `${triedVerdict(one)}${one.decides ? ' and decides' : ''}`
}

/** For a request that only observe mode permits: the deciding rule would refuse it. */
export function observedText(one: TriedRule): string {
  return `${triedVerdict(one)}${one.decides ? '; lets it through in observe mode' : ''}`
}

function triedVerdict({ rule, verdict }: TriedRule): string {
  return `${rule.effect} ${placeText(rule)}: ${VERDICTS[verdict]}`
}

export function permitText(permit: Permit, facts: Facts, rules: Rules): string {
  const { observed, descriptor, principal, rule } = permit
  // Decides again instead of using the reason: a rule may hide its refusal.
  const enforced = observed === null ? null : decide(descriptor, principal, rules, { ...facts, enforcement: 'enforce' })
  if (enforced?.outcome !== 'refused') return `permitted by ${placeText(rule)}`
  const { code, reason } = enforced
  return `permitted in observe mode alone: enforcing refuses ${CODES[code].status} ${code} (${reason})`
}

export function needText({ fact }: Need): string {
  return fact === 'record' ? 'whose the thread is' : 'what the upstream holds of the thread'
}

/** `403 not-owner (thread-foreign): This conversation is not yours.` */
export function refusalText({ code, reason }: Refusal): string {
  return `${CODES[code].status} ${code} (${reason}): ${CODES[code].text}`
}

export function principalText(principal: Principal, { operators }: Pick<Rules, 'operators'>): string {
  if (principal.kind === 'anonymous') {
    return principal.standsForAll
      ? 'everybody: authentication.mode is off'
      : 'anonymous: no credential, authentication.mode is optional'
  }
  const { id, roles, permissions, groups } = principal
  const named = groups.length === 0 ? '' : `; groups: ${listText(groups)}`
  return `${id}; roles: ${listText(roles)}; permissions: ${listText(permissions)}${named}; ${isOperator(principal, operators) ? 'an operator' : 'no operator'}`
}

export function listText(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ')
}

export function recordText(record: OwnerRecord, relation: Relation): string {
  if (record === null) return 'belongs to nobody: unknown'
  if (record.seen === true) return `has no owner, and was seen in use under observe: ${relation}`
  if (record.deleted) return `belongs to ${record.owner}, who deleted it: ${relation}`
  if (record.provisional === true) return `belongs to ${record.owner}, and no run of it is confirmed: ${relation}`
  return `belongs to ${record.owner}${record.granted === undefined ? '' : `, granted to the caller for ${GRANTED[record.granted]}`}: ${relation}`
}

export const GRANTED = { read: 'reading', write: 'writing' } as const

/** Why a grant makes no difference; null if it does, or if there is none. */
export function idleGrant(
  { record }: Pick<Facts, 'record'>,
  descriptor: RouteDescriptor,
  principal: Principal,
  rules: Rules,
): string | null {
  if (record?.granted === undefined || relationOf(record, principal, descriptor, rules) !== 'foreign' || record.deleted)
    return null
  if (principal.kind === 'anonymous') return 'the grant does not count: nothing can be granted to anonymous callers'
  if (!rules.sharing) return 'the grant does not count: the policy does not say sharing: true'
  const needed = neededRight(descriptor, principal)
  return needed === 'owner'
    ? 'the grant is not enough: this stays with the owner'
    : `the grant is not enough: this has to be granted for ${GRANTED[needed]}`
}

const UNITS = [
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1000, 's'],
] as const

function rateText(rate: Rate): string {
  return `${rate.amount}/${UNITS.find(([per]) => per === rate.per)?.[1] ?? `${rate.per}ms`}`
}

/** A limit of any kind as in a file; bodies in bytes. */
export function limitText(limit: RuleLimits[keyof RuleLimits]): string {
  if (limit === undefined) return 'as configured'
  return typeof limit === 'object' ? rateText(limit) : String(limit)
}

/** `staff-only (policies/default.yaml:12)` */
export function placeText({ name, file, line }: RulePlace): string {
  return `${name} (${file}${line === undefined ? '' : `:${line}`})`
}

export function placeOf({ name, file, line }: RulePlace): RulePlace {
  return line === undefined ? { name, file } : { name, file, line }
}
