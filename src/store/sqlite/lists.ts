/** Lists threads from the SQLite file, in steps of a bounded number of rows: SQLite blocks the whole process. */
import type { Reader } from '../../core/decide/sharing.ts'
import type { ListedThread, ListWindow } from '../port/lists.ts'
import { sql, type Sql } from '../sql/statement.ts'
import type { Connection } from './connection.ts'
import type { SqliteFile } from './file.ts'
import { grantedIn, type GrantedFrom } from './grants.ts'
import type { Steps } from '../steps.ts'

interface Row extends Omit<ListedThread, 'archived' | 'provisional' | 'granted'> {
  readonly archived: number
  readonly provisional: number
}

/** The most rows or grants of one step: the names of that many threads have up to 300 KB. */
const AT_ONCE = 100

const NAMED = `there.thread_id AS threadId, user_id AS owner, provisional, agent_id AS agentId, name, archived,
  created_at AS createdAt, last_used_at AS updatedAt`

interface Key {
  readonly threadId: string
  readonly usedAt: number
}

/** Two parts, used exactly at the previous page's end and used earlier: each reads at most one page of one index range. */
function keysOf(whose: string, { agentId, includeArchived }: ListWindow): Sql<Key> {
  const agent = agentId === null ? '' : 'AND agent_id = :agentId'
  const parts = (includeArchived ? [0, 1] : [0]).flatMap((archived) =>
    ['last_used_at = :usedAt AND thread_id > :afterId', 'last_used_at < :usedAt'].map(
      (range) => `SELECT * FROM (SELECT thread_id AS threadId, last_used_at AS usedAt FROM threads
        WHERE ${whose} ${agent} AND archived = ${archived} AND deleted_at IS NULL AND ${range}
        ORDER BY last_used_at DESC, thread_id LIMIT :limit)`,
    ),
  )
  return sql(`${parts.join(' UNION ALL ')} ORDER BY usedAt DESC, threadId LIMIT :limit`)
}

const OF_EVERYBODY = 'scope = :scope'
const OF_READER = "user_id = :userId AND user_id <> '' AND scope = :scope"

/** Threads that still belong on the page, each found by its key; the user is null on the page of all users. */
const OF_PAGE = sql<Row>(
  `SELECT ${NAMED} FROM json_each(:threadIds) AS asked
     CROSS JOIN threads AS there ON there.scope = :scope AND there.thread_id = asked.value
   WHERE (:userId IS NULL OR user_id = :userId) AND deleted_at IS NULL AND (:agentId IS NULL OR agent_id = :agentId)
     AND (:includeArchived = 1 OR archived = 0)`,
)

/** Threads of any owner that are in the window and not after the end of the page, each found by its key. */
const AMONG = sql<Row>(
  `SELECT ${NAMED} FROM json_each(:threadIds) AS asked
     CROSS JOIN threads AS there ON there.scope = :scope AND there.thread_id = asked.value
   WHERE deleted_at IS NULL AND (:agentId IS NULL OR agent_id = :agentId)
     AND (:includeArchived = 1 OR archived = 0) AND last_used_at >= :floor
     AND last_used_at <= :usedAt AND (last_used_at < :usedAt OR there.thread_id > :afterId)`,
)

/** A page with the threads of the grants read so far, and where to continue; null before the first and after the last. */
interface Sharing {
  readonly page: readonly ListedThread[]
  readonly next: GrantedFrom | null
}

export async function listedIn(
  file: SqliteFile,
  steps: Steps,
  scope: string,
  reader: Reader | 'everybody',
  window: ListWindow,
): Promise<readonly ListedThread[]> {
  const { agentId, includeArchived, after, limit } = window
  const values = {
    scope,
    agentId,
    includeArchived: includeArchived ? 1 : 0,
    usedAt: after?.updatedAt ?? Number.MAX_SAFE_INTEGER,
    afterId: after?.threadId ?? '',
    limit,
  }
  const step = <T>(work: (database: Connection) => T): Promise<T> => steps.take(() => file.read(work))
  /** A thread used meanwhile keeps its position. */
  const rowsOf = async (keys: readonly Key[], userId: string | null): Promise<readonly ListedThread[]> => {
    const threadIds = JSON.stringify(keys.map(({ threadId }) => threadId))
    const rows = await step((database) => database.all(OF_PAGE, { ...values, userId, threadIds }))
    const known = new Map(rows.map((row) => [row.threadId, shown(row)]))
    return keys.flatMap(({ threadId, usedAt }) => {
      const thread = known.get(threadId)
      return thread === undefined ? [] : [{ ...thread, updatedAt: usedAt }]
    })
  }
  /** Full unless there are no more threads, even if some are removed meanwhile. */
  const pageOf = async (whose: string, userId: string | null): Promise<readonly ListedThread[]> => {
    const page = new Map<string, ListedThread>()
    for (let from = {}; ;) {
      const left = limit - page.size
      const place = { ...values, ...from, limit: left, userId }
      const keys = await step((database) => database.all(keysOf(whose, window), place))
      for (let at = 0; at < keys.length; at += AT_ONCE) {
        for (const thread of await rowsOf(keys.slice(at, at + AT_ONCE), userId)) page.set(thread.threadId, thread)
      }
      const last = keys.at(-1)
      if (last === undefined || keys.length < left || page.size === limit) return [...page.values()]
      from = { usedAt: last.usedAt, afterId: last.threadId }
    }
  }
  if (reader === 'everybody') return pageOf(OF_EVERYBODY, null)
  const { userId } = reader
  const share = (database: Connection, { page, next: from }: Sharing): Sharing => {
    const { grants, next } = grantedIn(database, scope, reader, from, AT_ONCE)
    if (grants.length === 0) return { page, next }
    const rights = new Map(page.flatMap(({ threadId, granted }) => (granted === null ? [] : [[threadId, granted] as const])))
    for (const { threadId, right } of grants) if (rights.get(threadId) !== 'write') rights.set(threadId, right)
    const floor = page.length < limit ? 0 : (page.at(-1)?.updatedAt ?? 0)
    const threadIds = JSON.stringify(grants.map(({ threadId }) => threadId))
    const all = new Map(page.map((thread) => [thread.threadId, thread]))
    for (const row of database.all(AMONG, { ...values, userId, floor, threadIds })) all.set(row.threadId, shown(row))
    const sorted = [...all.values()].sort(inOrder).slice(0, limit)
    return { page: sorted.map((thread) => ({ ...thread, granted: rights.get(thread.threadId) ?? null })), next }
  }
  let sharing: Sharing = { page: await pageOf(OF_READER, userId), next: null }
  do {
    const before = sharing
    sharing = await step((database) => share(database, before))
  } while (sharing.next !== null)
  return sharing.page
}

/** Last used first, then by id, byte for byte. */
function inOrder(one: ListedThread, other: ListedThread): number {
  return other.updatedAt - one.updatedAt || Buffer.compare(Buffer.from(one.threadId), Buffer.from(other.threadId))
}

function shown({ archived, provisional, ...row }: Row): ListedThread {
  return { ...row, archived: archived === 1, provisional: provisional === 1, granted: null }
}
