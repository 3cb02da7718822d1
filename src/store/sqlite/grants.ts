/** Stores grants in the SQLite file. */
import { BY_OPERATOR, MAX_GRANTS, MAX_GRANTS_TO_ONE, type Grantee, type Reader, type Right } from '../../core/decide/sharing.ts'
import type { GrantOutcome, GrantStore, StoredGrant, ThreadKey } from '../port.ts'
import { sql, type Connection } from './connection.ts'
import type { SqliteFile } from './file.ts'
import type { Changed, SqliteInvalidations } from './invalidations.ts'

export const GRANT_COLUMNS = 'kind, grantee AS id, access AS "right", granted_by AS grantedBy, granted_at AS grantedAt'

const THREAD = 'scope = :scope AND thread_id = :threadId'
const GRANT = `${THREAD} AND kind = :kind AND grantee = :grantee`

// Only live rows with an owner have grants.
const OWNER = sql<{ user_id: string }>(`SELECT user_id FROM threads WHERE ${THREAD} AND deleted_at IS NULL AND user_id <> ''`)
const OF_THREAD = sql<StoredGrant>(`SELECT ${GRANT_COLUMNS} FROM grants WHERE ${THREAD} ORDER BY granted_at, kind, grantee`)
// Grants of operators and grants of all others are counted separately.
const COUNT = sql<{ grants: number }>(
  `SELECT count(*) AS grants FROM grants WHERE ${THREAD} AND (granted_by = :operator) = (:grantedBy = :operator)`,
)
const COUNT_TO_ONE = sql<{ grants: number }>(
  `SELECT count(*) AS grants FROM (SELECT 1 FROM grants
     WHERE granted_by = :grantedBy AND kind = :kind AND grantee = :grantee LIMIT :limit)`,
)
const ONE = sql<{ access: Right; granted_by: string }>(`SELECT access, granted_by FROM grants WHERE ${GRANT}`)
const PUT = sql(
  `INSERT INTO grants (scope, thread_id, kind, grantee, access, granted_by, granted_at)
   VALUES (:scope, :threadId, :kind, :grantee, :access, :grantedBy, :grantedAt)
   ON CONFLICT DO UPDATE SET access = excluded.access, granted_by = excluded.granted_by, granted_at = excluded.granted_at`,
)
const REMOVE = sql(`DELETE FROM grants WHERE ${GRANT}`)
const REMOVE_ALL = sql(`DELETE FROM grants WHERE ${THREAD}`)
// INDEXED BY: with statistics SQLite would read the threads in their order, until it finds enough of the grantee's.
const TO = `SELECT scope, thread_id AS threadId, ${GRANT_COLUMNS} FROM grants INDEXED BY grants_by_grantee WHERE kind = :kind AND grantee = :grantee`
const TO_FIRST = sql<ThreadKey & StoredGrant>(`${TO} ORDER BY scope, thread_id LIMIT :limit`)
const TO_NEXT = sql<ThreadKey & StoredGrant>(
  `${TO} AND (scope, thread_id) > (:scope, :threadId) ORDER BY scope, thread_id LIMIT :limit`,
)

const RIGHTS = sql<{ thread_id: string; access: Right }>(
  `SELECT thread_id, access FROM json_each(:threadIds) AS asked
     CROSS JOIN grants ON scope = :scope AND thread_id = asked.value AND kind = 'user' AND grantee = :userId
   UNION ALL
   SELECT thread_id, access FROM json_each(:threadIds) AS asked CROSS JOIN json_each(:groups) AS named
     CROSS JOIN grants ON scope = :scope AND thread_id = asked.value AND kind = 'group' AND grantee = named.value`,
)
const GROUP_RIGHTS = sql<{ thread_id: string; grantee: string; access: Right }>(
  `SELECT thread_id, grantee, access FROM json_each(:threadIds) AS asked
     CROSS JOIN grants ON scope = :scope AND thread_id = asked.value AND kind = 'group'`,
)
/** With more groups than this, not each group is looked up on each of many threads. */
const FEW_GROUPS = 16

// Each reads one range of the grantee index, or one range per group, and no more rows than the limit.
const GRANTED_TO_ONE = sql<GrantedRow>(
  `SELECT -1 AS at, thread_id AS threadId, access AS "right" FROM grants
   WHERE kind = :kind AND grantee = :grantee AND scope = :scope AND thread_id > :after ORDER BY thread_id LIMIT :limit`,
)
const GRANTED_TO_GROUPS = sql<GrantedRow>(
  `SELECT named.key AS at, thread_id AS threadId, access AS "right" FROM json_each(:groups) AS named
     CROSS JOIN grants ON kind = 'group' AND grantee = named.value AND scope = :scope
   ORDER BY named.key, thread_id LIMIT :limit`,
)

interface GrantedRow {
  /** Index among the groups of the query; -1 for the grantee that the part began with. */
  readonly at: number
  readonly threadId: string
  readonly right: Right
}

export interface GrantedFrom {
  /** Index of the reader's group; -1 for the user. */
  readonly at: number
  readonly threadId: string
}

export function grantsIn(file: SqliteFile, invalidations: SqliteInvalidations): GrantStore {
  return {
    grants: (key, owner) => file.read((database) => (isGrantable(database, key, owner) ? grantsOf(database, key) : null)),
    grant: (key, owner, grant) => invalidations.write((database) => announced(key, put(database, key, owner, grant))),
    ungrant: (key, owner, grantee) =>
      invalidations.write((database) => {
        if (!isGrantable(database, key, owner)) return announced(key, 'not-owner')
        return announced(key, database.run(REMOVE, { ...key, ...granteeValues(grantee) }) > 0 ? 'done' : 'unchanged')
      }),
    grantedTo: (grantee, after, limit) =>
      file.read((database) => {
        const values = { ...granteeValues(grantee), limit }
        return after === null ? database.all(TO_FIRST, values) : database.all(TO_NEXT, { ...values, ...after })
      }),
  }
}

export function grantsOf(database: Connection, key: ThreadKey): readonly StoredGrant[] {
  return database.all(OF_THREAD, { ...key })
}

/** @returns how many there were */
export function removeGrants(database: Connection, key: ThreadKey): number {
  return database.run(REMOVE_ALL, { ...key })
}

/**
 * The widest right of a reader on a thread. It is looked up by the reader's own keys, never by all grants of the thread.
 * So it takes the same time whatever was granted to others.
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
 * The widest right of a reader on each of several threads; threads without a right are not in the map.
 * For a reader of many groups it reads all group grants, whose number per thread is bounded, not each group on each thread.
 * The time of a list reveals how many threads the upstream gave, and may reveal how many groups they were granted to.
 * @param threadIds a JSON list
 */
export function rightsOn(database: Connection, scope: string, threadIds: string, reader: Reader): ReadonlyMap<string, Right> {
  const { userId, groups } = reader
  const isMany = groups.length > FEW_GROUPS
  const rights = new Map<string, Right>()
  const give = ({ thread_id: threadId, access }: { readonly thread_id: string; readonly access: Right }): void => {
    if (rights.get(threadId) !== 'write') rights.set(threadId, access)
  }
  database.all(RIGHTS, { scope, threadIds, userId, groups: isMany ? '[]' : JSON.stringify(groups) }).forEach(give)
  if (isMany) {
    const theirs = new Set(groups)
    for (const row of database.all(GROUP_RIGHTS, { scope, threadIds })) if (theirs.has(row.grantee)) give(row)
  }
  return rights
}

/** A part of a reader's grants, the user's first, then each group's; `from` is null for the first part, `next` at the end. */
export function grantedIn(
  database: Connection,
  scope: string,
  { userId, groups }: Reader,
  from: GrantedFrom | null,
  limit: number,
): { readonly grants: readonly GrantedRow[]; readonly next: GrantedFrom | null } {
  const at = from?.at ?? -1
  const first = at === -1 ? { kind: 'user', grantee: userId } : { kind: 'group', grantee: groups[at] ?? '' }
  const begun = database.all(GRANTED_TO_ONE, { ...first, scope, after: from?.threadId ?? '', limit })
  const others = groups.slice(at + 1)
  const isFull = begun.length >= limit || others.length === 0
  const grants = isFull
    ? begun
    : [...begun, ...database.all(GRANTED_TO_GROUPS, { scope, groups: JSON.stringify(others), limit: limit - begun.length })]
  const last = grants.length < limit ? undefined : grants.at(-1)
  return { grants, next: last === undefined ? null : { at: at + 1 + last.at, threadId: last.threadId } }
}

function put(database: Connection, key: ThreadKey, owner: string | null, grant: StoredGrant): GrantOutcome {
  if (!isGrantable(database, key, owner)) return 'not-owner'
  const { right: access, grantedBy, grantedAt } = grant
  const values = { ...key, ...granteeValues(grant), grantedBy, operator: BY_OPERATOR }
  const before = database.get(ONE, values)
  if (before?.access === access) return 'unchanged'
  const byOperator = grantedBy === BY_OPERATOR
  const isRoomTaken = before === undefined || (before.granted_by === BY_OPERATOR) !== byOperator
  if (isRoomTaken && countOf(database.get(COUNT, values)) >= MAX_GRANTS) return 'too-many'
  const isOneMore = !byOperator && before?.granted_by !== grantedBy
  if (isOneMore && countOf(database.get(COUNT_TO_ONE, { ...values, limit: MAX_GRANTS_TO_ONE })) >= MAX_GRANTS_TO_ONE)
    return 'too-many'
  database.run(PUT, { ...values, access, grantedAt })
  return 'done'
}

function countOf(row: { readonly grants: number } | undefined): number {
  return row?.grants ?? 0
}

function isGrantable(database: Connection, key: ThreadKey, owner: string | null): boolean {
  const row = database.get(OWNER, { ...key })
  return row !== undefined && (owner === null || row.user_id === owner)
}

function granteeValues({ kind, id }: Grantee) {
  return { kind, grantee: id }
}

function announced(key: ThreadKey, outcome: GrantOutcome): { readonly result: GrantOutcome; readonly changed: Changed } {
  return { result: outcome, changed: outcome === 'done' ? key : 'nothing' }
}
