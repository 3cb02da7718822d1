/**
 * Lists of threads from the SQLite file, for runtimes that have none of their own. SQLite works while everything else in the
 * process waits, so a list is read in steps: none looks at more than a bounded number of rows, whatever the table holds.
 */
import type { Reader } from '../core/sharing.ts'
import type { ListedThread, ListWindow } from './port.ts'
import { sql, type Connection, type Sql } from './sqlite-connection.ts'
import type { SqliteFile } from './sqlite-file.ts'
import { grantedIn, type GrantedFrom } from './sqlite-grants.ts'
import type { Steps } from './steps.ts'

interface Row extends Omit<ListedThread, 'archived' | 'provisional' | 'granted'> {
  readonly archived: number
  readonly provisional: number
}

/** How many grants one step looks at. */
const GRANTS_AT_ONCE = 500

const NAMED = `there.thread_id AS threadId, user_id AS owner, provisional, agent_id AS agentId, name, archived,
  created_at AS createdAt, last_used_at AS updatedAt`

/**
 * A page of the threads of `whose`. Each part is one range of an index in the order of the list, of which no more is read than
 * the page is long: what was used at the very time at which the page before ended, and what was used before. The rows
 * themselves are looked up only of what is on the page.
 */
function pageOf(whose: string, { agentId, includeArchived }: ListWindow): Sql<Row> {
  const agent = agentId === null ? '' : 'AND agent_id = :agentId'
  const parts = (includeArchived ? [0, 1] : [0]).flatMap((archived) =>
    ['last_used_at = :usedAt AND thread_id > :afterId', 'last_used_at < :usedAt'].map(
      (range) => `SELECT * FROM (SELECT thread_id, last_used_at AS usedAt FROM threads
        WHERE ${whose} ${agent} AND archived = ${archived} AND deleted_at IS NULL AND ${range}
        ORDER BY last_used_at DESC, thread_id LIMIT :limit)`,
    ),
  )
  return sql(`WITH page AS (${parts.join(' UNION ALL ')} ORDER BY usedAt DESC, thread_id LIMIT :limit)
    SELECT ${NAMED} FROM page CROSS JOIN threads AS there ON there.scope = :scope AND there.thread_id = page.thread_id
    ORDER BY usedAt DESC, there.thread_id`)
}

const OF_EVERYBODY = 'scope = :scope'
const OF_READER = "user_id = :userId AND user_id <> '' AND scope = :scope"

/** Of some threads those of others that are in the window, and not behind what is on the page already; each by its key. */
const AMONG = sql<Row>(
  `SELECT ${NAMED} FROM json_each(:threadIds) AS asked
     CROSS JOIN threads AS there ON there.scope = :scope AND there.thread_id = asked.value
   WHERE user_id <> :userId AND deleted_at IS NULL AND (:agentId IS NULL OR agent_id = :agentId)
     AND (:includeArchived = 1 OR archived = 0) AND last_used_at >= :floor
     AND last_used_at <= :usedAt AND (last_used_at < :usedAt OR there.thread_id > :afterId)`,
)

/** Reads a page of a list (port.ts). */
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
  if (reader === 'everybody') {
    const rows = await step((database) => database.all(pageOf(OF_EVERYBODY, window), values))
    return rows.map(shown)
  }
  const { userId } = reader
  const ofReader = { ...values, userId }
  /** Takes the next grants in. @returns the page with the threads that they are about, and where to go on, null at the end */
  const share = (database: Connection, page: readonly ListedThread[], from: GrantedFrom | null) => {
    const { grants, next } = grantedIn(database, scope, reader, from, GRANTS_AT_ONCE)
    if (grants.length === 0) return { page, next }
    const rights = new Map(page.flatMap(({ threadId, granted }) => (granted === null ? [] : [[threadId, granted] as const])))
    for (const { threadId, right } of grants) if (rights.get(threadId) !== 'write') rights.set(threadId, right)
    const floor = page.length < limit ? 0 : (page.at(-1)?.updatedAt ?? 0)
    const threadIds = JSON.stringify(grants.map(({ threadId }) => threadId))
    const all = new Map(page.map((thread) => [thread.threadId, thread]))
    for (const row of database.all(AMONG, { ...ofReader, floor, threadIds })) all.set(row.threadId, shown(row))
    const sorted = [...all.values()].sort(inOrder).slice(0, limit)
    return { page: sorted.map((thread) => ({ ...thread, granted: rights.get(thread.threadId) ?? null })), next }
  }
  let { page, next } = await step((database) =>
    share(database, database.all(pageOf(OF_READER, window), ofReader).map(shown), null),
  )
  while (next !== null) {
    const [before, from] = [page, next]
    ;({ page, next } = await step((database) => share(database, before, from)))
  }
  return page
}

/** The last used first, and those used at the same time by their ids, byte for byte. */
function inOrder(one: ListedThread, other: ListedThread): number {
  return other.updatedAt - one.updatedAt || Buffer.compare(Buffer.from(one.threadId), Buffer.from(other.threadId))
}

function shown({ archived, provisional, ...row }: Row): ListedThread {
  return { ...row, archived: archived === 1, provisional: provisional === 1, granted: null }
}
