/** What a line of a source says: whose a thread is, and what is known of it besides. */
import { isAgentId, isThreadId } from '../core/ids.ts'
import { timeOf } from '../http/revocation-form.ts'
import { NOBODY, type ThreadKey, type ThreadRow } from '../store/port.ts'
import { personFault, type People } from './people.ts'

/** The word for a row whose owner was taken away. A user id has a colon, or is `anonymous`. */
export const NOBODY_WORD = 'nobody'

/** What a file may say of a thread. */
export const COLUMNS = ['thread', 'user', 'agent', 'name', 'archived', 'created', 'used', 'deleted'] as const

/** One of them. */
export type Column = (typeof COLUMNS)[number]

/** What is known of a thread besides its owner. Times are milliseconds since the epoch. */
export type ThreadFacts = Omit<ThreadRow, keyof ThreadKey | 'owner' | 'provisional'>

/** A line that says whose a thread is. */
export interface Row {
  readonly kind: 'row'
  /** 1-based. */
  readonly line: number
  readonly threadId: string
  /** A user id, or NOBODY. */
  readonly owner: string
  readonly facts: ThreadFacts
}

/** A line that can't be taken, with what it says of whose a thread is as far as that can be told. */
export interface Fault {
  readonly kind: 'fault'
  readonly line: number
  readonly reason: string
  readonly threadId: string | null
  readonly owner: string | null
}

/** A line of a source. */
export type Entry = Row | Fault

/** By what lines are read. */
export interface Reading {
  readonly people: People
  /** Milliseconds since the epoch: the time of what says none. */
  readonly now: number
}

/** Names are shown in lists: longer ones are no names. In UTF-16 units, as the runtime counts. */
const MOST_NAME = 1000

/**
 * Reads what stands in a line.
 * @param fields by column; undefined, null and `''` say nothing
 */
export function readEntry(line: number, fields: Readonly<Partial<Record<Column, unknown>>>, { people, now }: Reading): Entry {
  const said = (column: Column): unknown => (fields[column] === '' ? undefined : (fields[column] ?? undefined))
  const threadId = said('thread')
  const user = said('user')
  const fault = (reason: string): Fault => ({
    kind: 'fault',
    line,
    reason,
    threadId: isThreadId(threadId) ? threadId : null,
    owner: typeof user === 'string' ? user : null,
  })
  if (!isThreadId(threadId)) return fault(threadId === undefined ? 'it names no thread' : `${quoted(threadId)} is no thread id`)
  if (typeof user !== 'string') return fault(user === undefined ? 'it names no user' : `${quoted(user)} is no user id`)
  const wrong = user === NOBODY_WORD ? null : personFault(user, people)
  if (wrong !== null) return fault(`the user ${quoted(user)} cannot be: ${wrong}`)
  const facts = readFacts(said, now)
  if (typeof facts === 'string') return fault(facts)
  return { kind: 'row', line, threadId, owner: user === NOBODY_WORD ? NOBODY : user, facts }
}

function readFacts(said: (column: Column) => unknown, now: number): ThreadFacts | string {
  const agentId = said('agent') ?? ''
  if (agentId !== '' && !isAgentId(agentId)) return `${quoted(agentId)} is no agent id`
  const name = said('name') ?? null
  if (name !== null && !isThreadName(name)) return `its name is no text of up to ${MOST_NAME} characters`
  const archived = said('archived') ?? false
  const isArchived = archived === true || archived === 'true'
  if (!isArchived && archived !== false && archived !== 'false') return `archived is true or false, and not ${quoted(archived)}`
  const times: Partial<Record<Column, number>> = {}
  for (const column of ['created', 'used', 'deleted'] as const) {
    const text = said(column)
    if (text === undefined) continue
    const time = typeof text === 'string' ? timeOf(text) : null
    if (time === null) return `${column} is a time with its zone, 2026-01-31T12:00:00Z, and not ${quoted(text)}`
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

/** True for a name that every store can keep: PostgreSQL has no NUL in a text. */
export function isThreadName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MOST_NAME && value.isWellFormed() && !value.includes('\0')
}

/** A value of a line, for a message; what is long is cut. */
function quoted(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length <= 100 ? text : `${text.slice(0, 100)}…`
}
