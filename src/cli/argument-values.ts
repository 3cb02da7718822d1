/** Reads threads, users, groups and times from the command line. */
import { granteeFault, isUserId, userIdFault, type KnownUsers } from '../tools/import-export/users.ts'
import type { Config } from '../config/schema.ts'
import { isThreadId } from '../core/route/ids.ts'
import { isGranteeId, type Grantee } from '../core/decide/sharing.ts'
import { timeOf } from '../operator/revocation-form.ts'
import { UsageError } from './command.ts'

/** @throws UsageError for no argument, several, or an invalid thread id */
export function threadNamed([threadId, ...more]: readonly string[]): string {
  if (threadId === undefined || more.length > 0) throw new UsageError('name one thread by its id')
  return threadIdOf(threadId)
}

/** @throws UsageError for an invalid thread id */
export function threadIdOf(text: string | undefined): string {
  if (text === undefined) throw new UsageError('--thread ID is missing')
  if (!isThreadId(text)) throw new UsageError(`${JSON.stringify(text)} is not a thread id`)
  return text
}

/** @throws UsageError for no argument, several, or an invalid user id */
export function userNamed([user, ...more]: readonly string[]): string {
  if (user === undefined || more.length > 0) throw new UsageError('name one user: issuer:subject')
  return userOf('USER', user)
}

/**
 * The user may already own something: the configuration may no longer have their issuer.
 * @throws UsageError for an invalid user id
 */
export function userOf(option: string, text: string): string {
  if (!isUserId(text)) throw new UsageError(`${option} must be a user id: issuer:subject, or anonymous`)
  return text
}

export function knownUsersIn({ authentication }: Config): KnownUsers {
  return { issuers: Object.keys(authentication.issuers), anonymous: authentication.mode !== 'required' }
}

/** @throws UsageError for an id that no user can have */
export function requireOwner(option: string, user: string, config: Config): void {
  const fault = userIdFault(user, knownUsersIn(config))
  if (fault !== null) throw new UsageError(`${option} ${user}: ${fault}`)
}

/** @throws UsageError for neither, both, or an invalid id */
export function granteeOf({ user, group }: { readonly user?: string; readonly group?: string }): Grantee {
  if ((user === undefined) === (group === undefined)) throw new UsageError('name either --user USER or --group GROUP')
  const kind = user === undefined ? 'group' : 'user'
  const id = user ?? group ?? ''
  if (!isGranteeId(id)) throw new UsageError(`--${kind} must be written issuer:name`)
  return { kind, id }
}

/**
 * @param id `issuer:name`
 * @throws UsageError for an issuer that the configuration does not have
 */
export function requireIssuer(argument: string, id: string, { authentication }: Config): void {
  const fault = granteeFault(id, Object.keys(authentication.issuers))
  if (fault !== null) throw new UsageError(`${argument}: ${fault}`)
}

const AGE_UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/**
 * @returns milliseconds since the epoch
 * @throws UsageError for an invalid or a future time
 */
export function pastTimeOf(option: string, text: string, now: number): number {
  const [, amount = '', unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? []
  const time = amount === '' ? timeOf(text) : now - Number(amount) * (AGE_UNITS[unit] ?? Number.NaN)
  if (time === null) throw new UsageError(`${option} must be a time with its zone (2026-01-31T12:00:00Z) or an age (90d, 12h)`)
  if (time > now) throw new UsageError(`${option} ${text} is in the future`)
  return time
}

/** @throws UsageError for an invalid number */
export function countOf(option: string, text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`${option} must be a whole number, 1 or more`)
  return Number(text)
}
