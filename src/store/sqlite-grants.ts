/** Grants in the SQLite file. */
import { MAX_GRANTS, type Grantee, type Reader, type Right } from '../core/sharing.ts'
import type { GrantOutcome, GrantStore, StoredGrant, ThreadKey } from './port.ts'
import { sql, type Connection } from './sqlite-connection.ts'
import type { SqliteFile } from './sqlite-file.ts'
import type { Changed, SqliteNews } from './sqlite-news.ts'

/** What a grant is, as columns of `grants`. */
export const GRANT_COLUMNS = 'kind, grantee AS id, access AS "right", granted_by AS grantedBy, granted_at AS grantedAt'

const THREAD = 'scope = :scope AND thread_id = :threadId'
const GRANT = `${THREAD} AND kind = :kind AND grantee = :grantee`

// Only live rows with an owner have grants.
const OWNER = sql<{ user_id: string }>(`SELECT user_id FROM threads WHERE ${THREAD} AND deleted_at IS NULL AND user_id <> ''`)
const OF_THREAD = sql<StoredGrant>(`SELECT ${GRANT_COLUMNS} FROM grants WHERE ${THREAD} ORDER BY granted_at, kind, grantee`)
const COUNT = sql<{ grants: number }>(`SELECT count(*) AS grants FROM grants WHERE ${THREAD}`)
const ONE = sql<{ access: Right }>(`SELECT access FROM grants WHERE ${GRANT}`)
const PUT = sql(
  `INSERT INTO grants (scope, thread_id, kind, grantee, access, granted_by, granted_at)
   VALUES (:scope, :threadId, :kind, :grantee, :access, :grantedBy, :grantedAt)
   ON CONFLICT DO UPDATE SET access = excluded.access, granted_by = excluded.granted_by, granted_at = excluded.granted_at`,
)
const REMOVE = sql(`DELETE FROM grants WHERE ${GRANT}`)
const REMOVE_ALL = sql(`DELETE FROM grants WHERE ${THREAD}`)
const TO = `SELECT scope, thread_id AS threadId, ${GRANT_COLUMNS} FROM grants WHERE kind = :kind AND grantee = :grantee`
const TO_FIRST = sql<ThreadKey & StoredGrant>(`${TO} ORDER BY scope, thread_id LIMIT :limit`)
const TO_NEXT = sql<ThreadKey & StoredGrant>(
  `${TO} AND (scope, thread_id) > (:scope, :threadId) ORDER BY scope, thread_id LIMIT :limit`,
)

const RIGHTS = sql<{ thread_id: string; access: Right }>(
  `SELECT thread_id, max(access) AS access FROM (
     SELECT thread_id, access FROM json_each(:threadIds) AS asked
       CROSS JOIN grants ON scope = :scope AND thread_id = asked.value AND kind = 'user' AND grantee = :userId
     UNION ALL
     SELECT thread_id, access FROM json_each(:threadIds) AS asked CROSS JOIN json_each(:groups) AS named
       CROSS JOIN grants ON scope = :scope AND thread_id = asked.value AND kind = 'group' AND grantee = named.value)
   GROUP BY thread_id`,
)

/** Makes the part of the store that holds grants. */
export function grantsIn(file: SqliteFile, news: SqliteNews): GrantStore {
  return {
    grants: (key, owner) => file.read((database) => (isGrantable(database, key, owner) ? grantsOf(database, key) : null)),
    grant: (key, owner, grant) => news.write((database) => told(key, put(database, key, owner, grant))),
    ungrant: (key, owner, grantee) =>
      news.write((database) => {
        if (!isGrantable(database, key, owner)) return told(key, 'not-owner')
        return told(key, database.run(REMOVE, { ...key, ...granteeValues(grantee) }) > 0 ? 'done' : 'unchanged')
      }),
    grantedTo: (grantee, after, limit) =>
      file.read((database) => {
        const values = { ...granteeValues(grantee), limit }
        return after === null ? database.all(TO_FIRST, values) : database.all(TO_NEXT, { ...values, ...after })
      }),
  }
}

/** All grants of a thread, the oldest first. */
export function grantsOf(database: Connection, key: ThreadKey): readonly StoredGrant[] {
  return database.all(OF_THREAD, { ...key })
}

/** Takes all grants of a thread away. @returns how many there were */
export function removeGrants(database: Connection, key: ThreadKey): number {
  return database.run(REMOVE_ALL, { ...key })
}

/**
 * The widest right that was granted to a reader on a thread. It is looked up by each of the reader's own keys, and never by
 * all grants of the thread: it takes the same time whatever was granted to others.
 */
export function rightOn(database: Connection, key: ThreadKey, { userId, groups }: Reader): Right | null {
  let widest = database.get(ONE, { ...key, kind: 'user', grantee: userId })?.access ?? null
  for (const grantee of groups) {
    const access = database.get(ONE, { ...key, kind: 'group', grantee })?.access
    if (access !== undefined && widest !== 'write') widest = access
  }
  return widest
}

/**
 * The widest right that was granted to a reader on each of several threads; those without one are not in the map.
 * @param threadIds a JSON list
 */
export function rightsOn(database: Connection, scope: string, threadIds: string, reader: Reader): ReadonlyMap<string, Right> {
  const values = { scope, threadIds, userId: reader.userId, groups: JSON.stringify(reader.groups) }
  return new Map(database.all(RIGHTS, values).map(({ thread_id: id, access }) => [id, access]))
}

function put(database: Connection, key: ThreadKey, owner: string | null, grant: StoredGrant): GrantOutcome {
  if (!isGrantable(database, key, owner)) return 'not-owner'
  const values = { ...key, ...granteeValues(grant) }
  const before = database.get(ONE, values)
  if (before?.access === grant.right) return 'unchanged'
  if (before === undefined && (database.get(COUNT, values)?.grants ?? 0) >= MAX_GRANTS) return 'too-many'
  const { right: access, grantedBy, grantedAt } = grant
  database.run(PUT, { ...values, access, grantedBy, grantedAt })
  return 'done'
}

function isGrantable(database: Connection, key: ThreadKey, owner: string | null): boolean {
  const row = database.get(OWNER, { ...key })
  return row !== undefined && (owner === null || row.user_id === owner)
}

function granteeValues({ kind, id }: Grantee) {
  return { kind, grantee: id }
}

function told(key: ThreadKey, outcome: GrantOutcome): { readonly result: GrantOutcome; readonly changed: Changed } {
  return { result: outcome, changed: outcome === 'done' ? key : 'nothing' }
}
