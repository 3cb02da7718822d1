/** Reads grants in the SQLite file, for decisions and lists. */
import { widest, type Reader, type Right } from '../../core/decide/sharing.ts'
import type { ThreadKey } from '../port/thread.ts'
import { sql } from '../sql/statement.ts'
import type { Connection } from './connection.ts'

const ONE = sql<{ access: Right }>(
  'SELECT access FROM grants WHERE scope = :scope AND thread_id = :threadId AND kind = :kind AND grantee = :grantee',
)
const REMOVE_ALL = sql('DELETE FROM grants WHERE scope = :scope AND thread_id = :threadId')

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

// Each reads one range of the grantee index per grantee, and no more rows than the limit.
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
  /** Index among the query's groups; -1 for the grantee that the part began with. */
  readonly at: number
  readonly threadId: string
  readonly right: Right
}

export interface GrantedFrom {
  /** Index of the reader's group; -1 for the user. */
  readonly at: number
  readonly threadId: string
}

export function removeGrants(database: Connection, key: ThreadKey): number {
  return database.run(REMOVE_ALL, { ...key })
}

/** Looks up the reader's own keys, never all grants of the thread: the time must not reveal grants to others. */
export function rightOn(database: Connection, key: ThreadKey, { userId, groups }: Reader): Right | null {
  let right = database.get(ONE, { ...key, kind: 'user', grantee: userId })?.access ?? null
  for (const grantee of groups) {
    const access = database.get(ONE, { ...key, kind: 'group', grantee })?.access
    right = widest(right, access ?? null)
  }
  return right
}

/**
 * For a reader of many groups it reads all group grants, a bounded number per thread, not each group on each thread. The time
 * reveals how many threads the upstream gave, and may reveal how many groups have grants. `threadIds` is a JSON list.
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

/** The user's grants first, then each group's; `from` is null for the first part, `next` at the end. */
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
