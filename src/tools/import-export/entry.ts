/** Reads a line of a source: the owner of a thread, and further facts about the thread. */
import { isAgentId, isThreadId } from '../../core/route/ids.ts'
import { timeOf } from '../../operator/revocation-form.ts'
import type { ThreadRow } from '../../store/port/administration.ts'
import { NOBODY, type ThreadKey } from '../../store/port/thread.ts'
import { userIdFault, type KnownUsers, scopeFault } from './users.ts'

/** The word for a row whose owner was removed. A user id has a colon, or is `anonymous`. */
export const NOBODY_WORD = 'nobody'

export const COLUMNS = ['thread', 'user', 'agent', 'name', 'archived', 'created', 'used', 'deleted', 'scope'] as const

export type Column = (typeof COLUMNS)[number]

/** The facts about a thread besides its owner. Times are milliseconds since the epoch. */
export type ThreadFacts = Omit<ThreadRow, keyof ThreadKey | 'owner' | 'provisional'>

export interface Row extends ThreadKey {
  readonly kind: 'row'
  /** 1-based. */
  readonly line: number
  /** A user id, or NOBODY. */
  readonly owner: string
  readonly facts: ThreadFacts
}

/** An invalid line, with the thread and owner that it names, if they can be read. */
export interface Fault {
  readonly kind: 'fault'
  readonly line: number
  readonly reason: string
  readonly scope: string
  readonly threadId: string | null
  /** The id of the line if it is none for the gateway; otherwise null. */
  readonly refusedId: string | null
  readonly owner: string | null
}

export type Entry = Row | Fault

export interface Reading {
  readonly users: KnownUsers
  readonly scopes: readonly string[]
  /** The scope of lines that name none; null if each line has to name it. */
  readonly scope: string | null
  /** Milliseconds since the epoch: the time of lines that name none. */
  readonly now: number
}

/** Lists show names, so a longer text is not a name. In UTF-16 units, as the runtime counts. */
const MOST_NAME = 1000

/** @param fields by column; undefined, null and `''` mean no value */
export function readEntry(
  line: number,
  fields: Readonly<Partial<Record<Column, unknown>>>,
  { users, scopes, scope: usual, now }: Reading,
): Entry {
  const said = (column: Column): unknown => (fields[column] === '' ? undefined : (fields[column] ?? undefined))
  const threadId = said('thread')
  const user = said('user')
  const scope = said('scope') ?? usual
  const wrongScope = scopeWrong(scope, scopes)
  const fault = (reason: string): Fault => ({
    kind: 'fault',
    line,
    reason,
    scope: typeof scope === 'string' ? scope : '',
    threadId: wrongScope === null && isThreadId(threadId) ? threadId : null,
    refusedId: typeof threadId === 'string' && !isThreadId(threadId) ? threadId : null,
    owner: typeof user === 'string' ? user : null,
  })
  if (!isThreadId(threadId)) return fault(threadId === undefined ? 'it has no thread' : refusedIdText(threadId))
  if (typeof user !== 'string') return fault(user === undefined ? 'it has no user' : `${quoted(user)} is not a user id`)
  if (typeof scope !== 'string' || wrongScope !== null) return fault(wrongScope ?? '')
  const wrong = user === NOBODY_WORD ? null : userIdFault(user, users)
  if (wrong !== null) return fault(`the user ${quoted(user)} is not valid: ${wrong}`)
  const facts = readFacts(said, now)
  if (typeof facts === 'string') return fault(facts)
  return { kind: 'row', line, scope, threadId, owner: user === NOBODY_WORD ? NOBODY : user, facts }
}

export function refusedIdText(id: unknown): string {
  return `${quoted(id, 60)} is not a thread id: the thread cannot be reached through the gateway`
}

function scopeWrong(scope: unknown, scopes: readonly string[]): string | null {
  if (scope === null) return `it has no scope: write the key of its upstream to scope, or use --scope KEY (${scopes.join(', ')})`
  if (typeof scope !== 'string') return `${quoted(scope)} is not a key of an upstream`
  const wrong = scopeFault(scope, scopes)
  return wrong === null ? null : `the scope ${quoted(scope)} is not valid: ${wrong}`
}

function readFacts(said: (column: Column) => unknown, now: number): ThreadFacts | string {
  const agentId = said('agent') ?? ''
  if (agentId !== '' && !isAgentId(agentId)) return `${quoted(agentId)} is not an agent id`
  const name = said('name') ?? null
  if (name !== null && !isThreadName(name)) return `its name must be a text of at most ${MOST_NAME} characters`
  const archived = said('archived') ?? false
  const isArchived = archived === true || archived === 'true'
  if (!isArchived && archived !== false && archived !== 'false') return `archived must be true or false, not ${quoted(archived)}`
  const times: Partial<Record<Column, number>> = {}
  for (const column of ['created', 'used', 'deleted'] as const) {
    const text = said(column)
    if (text === undefined) continue
    const time = typeof text === 'string' ? timeOf(text) : null
    if (time === null) return `${column} must be a time with its zone, 2026-01-31T12:00:00Z, not ${quoted(text)}`
    times[column] = time
  }
  return {
    agentId,
    name,
    archived: isArchived,
    createdAt: times.created ?? times.used ?? now,
    lastUsedAt: times.used ?? times.created ?? now,
    deletedAt: times.deleted ?? null,
  }
}

/** True for a name that every store can keep: PostgreSQL text has no NUL. */
export function isThreadName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MOST_NAME && value.isWellFormed() && !value.includes('\0')
}

function quoted(value: unknown, most = 100): string {
  const text = JSON.stringify(value)
  return text.length <= most ? text : `${text.slice(0, most)}…`
}
