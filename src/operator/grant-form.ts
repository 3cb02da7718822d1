/** Reads grants from requests, and shows threads and grants in answers, alike for owners and for operators. */
import { z } from 'zod'
import type { JsonObject } from '../core/json/read.ts'
import { isGranteeId, type Grant, type Grantee } from '../core/decide/sharing.ts'
import type { StoredGrant } from '../store/port/grants.ts'
import type { WholeThread } from '../store/port/administration.ts'
import { NOBODY, type ThreadKey } from '../store/port/thread.ts'

/** The problem of a form, for its author; it quotes nothing of the form. */
interface FormFault {
  readonly fault: string
}

export const GRANT_FORM =
  'Write {"user": "issuer:subject", "right": "read"} or {"group": "issuer:group", "right": "write"}; without "right" to remove the grant.'
const USER = 'user must be a user id: issuer:subject.'
const GROUP = 'group must be the name of a group: issuer:group.'

export const granteeKeys = {
  user: z.string(USER).refine(isGranteeId, USER).optional().describe('User id, `issuer:subject`.'),
  group: z.string(GROUP).refine(isGranteeId, GROUP).optional().describe('Group, `issuer:group`.'),
}
export const rightKey = z.enum(['read', 'write'], 'right must be read or write.')

type GranteeKeys = { readonly user?: string | undefined; readonly group?: string | undefined }

const isOne = ({ user, group }: GranteeKeys): boolean => (user === undefined) !== (group === undefined)
const EITHER = { oneOf: [{ required: ['user'] }, { required: ['group'] }] }

export const granteeForm = z.strictObject(granteeKeys, GRANT_FORM).refine(isOne, GRANT_FORM).meta({ override: EITHER })
export const grantForm = z
  .strictObject({ ...granteeKeys, right: rightKey }, GRANT_FORM)
  .refine(isOne, GRANT_FORM)
  .meta({ override: EITHER })

/**
 * Reads a grant strictly: a caller may rely on an unknown key.
 * @param issuers the issuer keys of the configuration: a grant to a user of another issuer would have no effect
 * @param owner the thread's owner, who cannot get a grant
 */
export function readGrant(form: JsonObject, issuers: readonly string[], owner: string): Grant | FormFault {
  const read = readForm(grantForm, form)
  return 'fault' in read ? read : grantOf(read, issuers, owner)
}

export function grantOf(
  { right, ...keys }: z.output<typeof grantForm>,
  issuers: readonly string[],
  owner: string,
): Grant | FormFault {
  const grantee = granteeOf(keys)
  if (!issuers.includes(grantee.id.slice(0, grantee.id.indexOf(':')))) {
    return { fault: `The configuration has no issuer with this id. It has: ${issuers.join(', ')}.` }
  }
  if (grantee.kind === 'user' && grantee.id === owner) return { fault: 'The user owns the thread: an owner needs no grant.' }
  return { ...grantee, right }
}

/**
 * Reads the grantee of a grant to remove. Any issuer is accepted: a grant must stay removable when its issuer is no longer
 * configured.
 */
export function readGrantee(form: JsonObject): Grantee | FormFault {
  const read = readForm(granteeForm, form)
  return 'fault' in read ? read : granteeOf(read)
}

/** @param keys exactly one of them is given */
export function granteeOf({ user, group = '' }: GranteeKeys): Grantee {
  return user === undefined ? { kind: 'group', id: group } : { kind: 'user', id: user }
}

function readForm<Form extends z.ZodType<object>>(form: Form, value: JsonObject): z.output<Form> | FormFault {
  const read = form.safeParse(value)
  return read.success ? read.data : { fault: read.error.issues[0]?.message ?? GRANT_FORM }
}

/** `grantedBy` is the granting user's id, or `operator`; the time is in RFC 3339 format. */
export function shownGrant({ kind, id, right, grantedBy, grantedAt }: StoredGrant) {
  const grantee = kind === 'user' ? { user: id } : { group: id }
  return { ...grantee, right, grantedBy, grantedAt: new Date(grantedAt).toISOString() }
}

/** A grantee as one word for a log line: `user:issuer:subject` or `group:issuer:group`. */
export function granteeWord({ kind, id }: Grantee): string {
  return `${kind}:${id}`
}

export function isTo({ kind, id }: Grantee): (grant: Grantee) => boolean {
  return (grant) => grant.kind === kind && grant.id === id
}

/** A thread for the admin API. Times are in RFC 3339 format, null where there is no row; `runners` ran it under `observe`, earliest first. */
export function shownThread(key: ThreadKey, { row, grants, runners }: WholeThread) {
  return { ...shownRow(key, row), grants: grants.map(shownGrant), runners }
}

/** @param row null for a thread that was only seen under `observe` */
export function shownRow({ scope, threadId }: ThreadKey, row: WholeThread['row']) {
  return {
    thread: threadId,
    scope,
    state: stateOf(row),
    owner: row === null || row.owner === NOBODY ? null : row.owner,
    // Rows that no request has made have no agent.
    agent: row === null || row.agentId === '' ? null : row.agentId,
    name: row?.name ?? null,
    archived: row?.archived ?? false,
    createdAt: timeOf(row?.createdAt),
    lastUsedAt: timeOf(row?.lastUsedAt),
    deletedAt: timeOf(row?.deletedAt),
  }
}

function stateOf(row: WholeThread['row']): 'live' | 'new' | 'deleted' | 'withheld' | 'seen' {
  // It was only seen under `observe`.
  if (row === null) return 'seen'
  if (row.deletedAt !== null) return 'deleted'
  if (row.owner === NOBODY) return 'withheld'
  return row.provisional ? 'new' : 'live'
}

function timeOf(time: number | null | undefined): string | null {
  return time === null || time === undefined ? null : new Date(time).toISOString()
}
