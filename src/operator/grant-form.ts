/** Reads grants from requests, and shows threads and grants in answers, alike for owners and for operators. */
import type { Json, JsonObject } from '../core/json/read.ts'
import { isGranteeId, type Grant, type Grantee } from '../core/decide/sharing.ts'
import type { StoredGrant } from '../store/port/grants.ts'
import type { WholeThread } from '../store/port/administration.ts'
import { NOBODY } from '../store/port/thread.ts'

/** The problem of a form, for its author; it quotes nothing of the form. */
interface FormFault {
  readonly fault: string
}

const FORM =
  'Write {"user": "issuer:subject", "right": "read"} or {"group": "issuer:group", "right": "write"}; without "right" to remove the grant.'

/**
 * Reads a grant strictly: a caller may rely on an unknown key.
 * @param issuers the issuer keys of the configuration: a grant to a user of another issuer would have no effect
 * @param owner the thread's owner, who cannot get a grant
 */
export function readGrant({ right, ...rest }: JsonObject, issuers: readonly string[], owner: string): Grant | FormFault {
  const grantee = readGrantee(rest)
  if ('fault' in grantee) return grantee
  if (right !== 'read' && right !== 'write') return { fault: 'right must be read or write.' }
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
export function readGrantee({ user, group, ...others }: JsonObject): Grantee | FormFault {
  if (Object.keys(others).length > 0 || (user === undefined) === (group === undefined)) return { fault: FORM }
  return user === undefined ? granteeOf('group', group) : granteeOf('user', user)
}

function granteeOf(kind: Grantee['kind'], id: Json | undefined): Grantee | FormFault {
  if (typeof id === 'string' && isGranteeId(id)) return { kind, id }
  return {
    fault: kind === 'user' ? 'user must be a user id: issuer:subject.' : 'group must be the name of a group: issuer:group.',
  }
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
export function shownThread(threadId: string, { row, grants, runners }: WholeThread) {
  return {
    thread: threadId,
    state: stateOf(row),
    owner: row === null || row.owner === NOBODY ? null : row.owner,
    // Rows that no request has made have no agent.
    agent: row === null || row.agentId === '' ? null : row.agentId,
    name: row?.name ?? null,
    archived: row?.archived ?? false,
    createdAt: timeOf(row?.createdAt),
    lastUsedAt: timeOf(row?.lastUsedAt),
    deletedAt: timeOf(row?.deletedAt),
    grants: grants.map(shownGrant),
    runners,
  }
}

function stateOf(row: WholeThread['row']) {
  // It was only seen under `observe`.
  if (row === null) return 'seen'
  if (row.deletedAt !== null) return 'deleted'
  if (row.owner === NOBODY) return 'withheld'
  return row.provisional ? 'new' : 'live'
}

function timeOf(time: number | null | undefined): string | null {
  return time === null || time === undefined ? null : new Date(time).toISOString()
}
