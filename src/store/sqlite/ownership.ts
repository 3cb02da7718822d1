/** Thread ownership in the SQLite file, as requests need it. */
import { randomBytes, randomUUID } from 'node:crypto'
import { widest, type Reader, type Right } from '../../core/decide/sharing.ts'
import type { AccessStore, RowFacts, ThreadAccess } from '../port/access.ts'
import { LONGEST_RUN, type Claim, type ClaimResult, type ClaimStore, type OwnerChanges, type RunOutcome } from '../port/claims.ts'
import type { StoreState } from '../port/state.ts'
import { NOBODY, type ThreadKey } from '../port/thread.ts'
import { sql } from '../sql/statement.ts'
import type { Steps } from '../steps.ts'
import type { Connection } from './connection.ts'
import type { SqliteFile } from './file.ts'
import { grantedIn, removeGrants, rightOn, rightsOn, type GrantedFrom } from './grants.ts'
import type { Changed, SqliteInvalidations } from './invalidations.ts'
import { runnersOf, runnersOfSeveral } from './observations.ts'
import type { SqliteAccess } from './access.ts'

const MINUTE = 60_000
/** A time of use older than this is always written, even if that has to wait: deletions rely on it. */
const HOUR = 60 * MINUTE

/** Grants of one step: their threads are found one by one. */
const AT_ONCE = 500

const WHERE = 'WHERE scope = :scope AND thread_id = :threadId'
// NOBODY is no user: no user may change unowned rows.
const MINE = `${WHERE} AND user_id = :userId AND user_id <> ''`

/** The new `runs_by` when this process sends a run: this process if it sent all runs, otherwise `*`. */
const SENT_BY = "CASE runs_by WHEN :self THEN :self ELSE '*' END"

interface Owned {
  readonly thread_id: string
  readonly user_id: string
  readonly deleted_at: number | null
  readonly provisional: number
}

interface Row extends Omit<Owned, 'thread_id'> {
  readonly last_used_at: number
  readonly incarnation: number
  readonly deletion: string | null
  readonly runs_by: string
}

// Finds the row or the next one, so that the time reveals nothing.
// The scope is a subquery: SQLite plans a range beside a bound value again at each use, to consult its statistics.
const NEAREST = sql<Owned>(
  `SELECT thread_id, user_id, deleted_at, provisional FROM threads
   WHERE scope = (SELECT :scope) AND thread_id >= :threadId ORDER BY thread_id LIMIT 1`,
)
const SEVERAL = sql<Owned>(
  `SELECT thread_id, user_id, deleted_at, provisional FROM threads
   WHERE scope = :scope AND thread_id IN (SELECT value FROM json_each(:threadIds))`,
)
// These read an index alone.
const OF_OWNER = "WHERE user_id = :userId AND user_id <> '' AND scope = :scope"
const IS_SETTLED = 'deleted_at IS NULL AND provisional = 0'
const SETTLED_OF_OWNER = sql<string | null>(
  `SELECT CASE WHEN ${IS_SETTLED} THEN thread_id END FROM threads ${OF_OWNER} LIMIT :limit`,
)
const OTHERS_OF_OWNER = sql<Owned>(
  `SELECT thread_id, user_id, deleted_at, provisional FROM threads ${OF_OWNER} AND NOT (${IS_SETTLED}) LIMIT :limit`,
)
const ROW = sql<Row>(
  `SELECT user_id, deleted_at, provisional, last_used_at, incarnation, deletion, runs_by FROM threads ${WHERE}`,
)
const INSERT = sql(
  `INSERT INTO threads (scope, thread_id, user_id, agent_id, created_at, last_used_at, provisional, open_runs, runs_by)
   VALUES (:scope, :threadId, :userId, :agentId, :now, :now, 1, 1, :self)`,
)
const REVIVE = sql(
  `UPDATE threads SET provisional = 1, open_runs = 1, incarnation = incarnation + 1, agent_id = :agentId, last_used_at = :now, deletion = NULL,
     runs_by = ${SENT_BY} ${MINE}`,
)
const REGISTER = sql(`UPDATE threads SET open_runs = open_runs + 1, runs_by = ${SENT_BY} ${MINE} AND provisional = 1`)
const CONTINUE = sql(
  `UPDATE threads SET last_used_at = CASE WHEN :now - last_used_at >= ${MINUTE} THEN :now ELSE last_used_at END, deletion = NULL, runs_by = ${SENT_BY}
   ${MINE} AND provisional = 0 AND deleted_at IS NULL`,
)
const IS_USED_AGAIN = `deleted_at IS NULL AND :now - last_used_at >= ${HOUR}`
const UNNOTED_WRITE = sql<{ there: 1 }>(
  `SELECT 1 AS there FROM threads ${WHERE}
   AND (upstream_deleted = 1 OR runs_by NOT IN (:self, '*') OR (deletion IS NOT NULL AND runs_by <> '*') OR (${IS_USED_AGAIN}))`,
)
const NOTE_WRITE = sql(
  `UPDATE threads SET upstream_deleted = 0, runs_by = CASE WHEN deletion IS NULL THEN ${SENT_BY} ELSE '*' END,
     last_used_at = CASE WHEN ${IS_USED_AGAIN} THEN :now ELSE last_used_at END ${WHERE}`,
)
const TOUCH = sql(`UPDATE threads SET last_used_at = :now ${MINE} AND deleted_at IS NULL`)
// A run that may have started settles only a tombstone, which was confirmed before.
const SETTLE = sql(
  `UPDATE threads SET provisional = 0, open_runs = 0, deleted_at = NULL, upstream_deleted = 0 ${MINE} AND provisional = 1 AND incarnation = :incarnation
     AND (:confirmed = 1 OR deleted_at IS NOT NULL)`,
)
const LEAVE = sql<{ open_runs: number; deleted_at: number | null }>(
  `UPDATE threads SET open_runs = open_runs - 1 ${MINE} AND provisional = 1 AND incarnation = :incarnation RETURNING open_runs, deleted_at`,
)
const REMOVE = sql(`DELETE FROM threads ${MINE}`)
const BACK_TO_GRAVE = sql(`UPDATE threads SET provisional = 0 ${MINE}`)
const RENAME = sql(`UPDATE threads SET name = :name ${MINE} AND deleted_at IS NULL`)
const ARCHIVE = sql(`UPDATE threads SET archived = :archived ${MINE} AND deleted_at IS NULL`)
const BURY = sql(
  `UPDATE threads SET deleted_at = :now, upstream_deleted = :upstreamDeleted, deletion = NULL, provisional = 0, open_runs = 0 ${MINE}`,
)
const BEGIN_DELETION = sql<{ deletion: string }>(
  `UPDATE threads SET deletion = coalesce(deletion, :deletion) ${MINE} AND deleted_at IS NULL AND provisional = 0 RETURNING deletion`,
)
const END_DELETION = sql(
  `UPDATE threads SET deleted_at = :now, deletion = NULL, upstream_deleted = :upstreamDeleted = 1 AND (runs_by = :self OR last_used_at < :idleSince)
   ${MINE} AND deletion = :deletion AND deleted_at IS NULL`,
)
const ANY = sql<{ there: 1 }>('SELECT 1 AS there FROM threads WHERE scope = :scope LIMIT 1')
const KEEP_SECRET = sql("INSERT INTO secrets (name, value) VALUES ('cursor', :value) ON CONFLICT DO NOTHING")
const SECRET = sql<{ value: Buffer }>("SELECT value FROM secrets WHERE name = 'cursor'")

type Ownership = AccessStore & ClaimStore & OwnerChanges & Pick<StoreState, 'isEmpty' | 'secret'>

export function ownershipIn(
  file: SqliteFile,
  steps: Steps,
  invalidations: SqliteInvalidations,
  remembered: SqliteAccess,
): Ownership {
  const self = randomUUID()
  const touch = (key: ThreadKey, { userId, now }: Claim): void => {
    if (file.note((database) => database.run(TOUCH, { ...key, userId, now }))) remembered.noteUse(key, now)
  }
  const lookUp = (key: ThreadKey, reader: Reader): Promise<ThreadAccess> =>
    file.read((database) => {
      const threadAccess = accessOf(database, key, reader)
      remembered.keep(database, key, threadAccess, reader)
      return threadAccess
    })
  return {
    accessTo(key, reader) {
      const turn = remembered.turn()
      if (turn !== null) return turn.then(() => remembered.find(key, reader) ?? lookUp(key, reader))
      return remembered.find(key, reader) ?? lookUp(key, reader)
    },
    accessToSeveral: (scope, threadIds, reader) => file.read((database) => accessOfSeveral(database, scope, threadIds, reader)),
    async accessOfReader(scope, reader, most) {
      const byThread = new Map<string, ThreadAccess>()
      let count = 0
      const granted = (database: Connection, from: GrantedFrom | null): GrantedFrom | null => {
        const { grants, next } = grantedIn(database, scope, reader, from, AT_ONCE)
        count += grants.length
        if (grants.length > 0) addGranted(database, scope, grants, byThread)
        return next
      }
      let next = await file.read((database) => {
        const values = { scope, userId: reader.userId, limit: most + 1 }
        const ids = database.column(SETTLED_OF_OWNER, values)
        count = ids.length
        if (count > most) return null
        const settled = settledOf(reader.userId)
        for (const threadId of ids) if (threadId !== null) byThread.set(threadId, settled)
        const others = ids.includes(null) ? database.all(OTHERS_OF_OWNER, values) : []
        for (const row of others) byThread.set(row.thread_id, { row: factsOf(row, null), runners: [] })
        return granted(database, null)
      })
      while (next !== null && count <= most) {
        const from = next
        next = await steps.take(() => file.read((database) => granted(database, from)))
      }
      return count > most ? null : byThread
    },
    async claim(key, claim) {
      const { userId, now } = claim
      // Only a settled live row is cached, and it is current. Then the row could add only when it was used.
      const last = remembered.find(key, { userId, groups: [] })?.row?.owner === userId ? remembered.usedAt(key) : undefined
      if (last !== undefined && now - last < HOUR) {
        if (now - last >= MINUTE) touch(key, claim)
        return { outcome: 'own', registration: null }
      }
      const row = await file.ask((database) => database.get(ROW, { ...key }))
      // The common case needs no lock: the user's settled live row, which already records all of this run.
      const isSettled = row?.user_id === userId && userId !== NOBODY && row.provisional === 0 && row.deleted_at === null
      const isNoted = isSettled && row.deletion === null && (row.runs_by === self || row.runs_by === '*')
      if (!isNoted || now - row.last_used_at >= HOUR) return file.write((database) => register(database, key, claim, self))
      if (now - row.last_used_at >= MINUTE) touch(key, claim)
      else remembered.noteUse(key, row.last_used_at)
      return { outcome: 'own', registration: null }
    },
    async noteWrite(key, now) {
      const values = { ...key, now, self }
      const unnoted = await file.ask((database) => database.get(UNNOTED_WRITE, values))
      if (unnoted !== undefined) await file.write((database) => database.run(NOTE_WRITE, values))
    },
    settle: (key, userId, registration, outcome) =>
      invalidations.write((database) => settle(database, key, userId, registration, outcome)),
    rename: (key, userId, name) => file.write((database) => database.run(RENAME, { ...key, userId, name }) > 0),
    archive: (key, userId, { archived }) =>
      file.write((database) => database.run(ARCHIVE, { ...key, userId, archived: archived ? 1 : 0 }) > 0),
    bury: (key, userId, now, upstream) =>
      invalidations.write((database) => {
        const buried = database.run(BURY, { ...key, userId, now, upstreamDeleted: upstream === 'deleted' ? 1 : 0 }) > 0
        if (buried) removeGrants(database, key)
        return { result: undefined, changed: buried ? key : 'nothing' }
      }),
    beginDeletion: (key, userId) =>
      invalidations.write((database) => {
        const begun = database.get(BEGIN_DELETION, { ...key, userId, deletion: randomUUID() })
        // The cached access no longer says all that a run has to know.
        return { result: begun?.deletion ?? null, changed: begun === undefined ? 'nothing' : key }
      }),
    endDeletion: (key, userId, deletion, now, upstream) =>
      invalidations.write((database) => {
        const idleSince = now - LONGEST_RUN - 2 * HOUR
        const values = { ...key, userId, deletion, now, upstreamDeleted: upstream === 'deleted' ? 1 : 0, self, idleSince }
        const buried = database.run(END_DELETION, values) > 0
        if (buried) removeGrants(database, key)
        return { result: buried, changed: buried ? key : 'nothing' }
      }),
    isEmpty: (scope) => file.read((database) => database.get(ANY, { scope }) === undefined),
    async secret() {
      const there = await file.read((database) => database.get(SECRET))
      if (there !== undefined) return there.value
      return file.write((database) => {
        database.run(KEEP_SECRET, { value: randomBytes(32) })
        const row = database.get(SECRET)
        if (row === undefined) throw new Error('the cursor secret is missing')
        return row.value
      })
    },
  }
}

/** Always asks all three questions: the time must not reveal the answer of the first one. */
export function accessOf(database: Connection, key: ThreadKey, reader: Reader): ThreadAccess {
  const row = database.get(NEAREST, { ...key })
  const right = rightOn(database, key, reader)
  const runners = runnersOf(database, key)
  const facts = row === undefined ? null : factsOf(row, right)
  return { row: row?.thread_id === key.threadId ? facts : null, runners }
}

function accessOfSeveral(
  database: Connection,
  scope: string,
  threadIds: readonly string[],
  reader: Reader,
): ReadonlyMap<string, ThreadAccess> {
  const ids = JSON.stringify(threadIds)
  const rights = rightsOn(database, scope, ids, reader)
  const runners = runnersOfSeveral(database, scope, ids)
  const byThread = new Map<string, ThreadAccess>()
  for (const [threadId, users] of runners) byThread.set(threadId, { row: null, runners: users })
  for (const row of database.all(SEVERAL, { scope, threadIds: ids })) {
    const { thread_id: threadId } = row
    byThread.set(threadId, { row: factsOf(row, rights.get(threadId) ?? null), runners: runners.get(threadId) ?? [] })
  }
  return byThread
}

function addGranted(
  database: Connection,
  scope: string,
  grants: readonly { readonly threadId: string; readonly right: Right }[],
  byThread: Map<string, ThreadAccess>,
): void {
  const rows = database.all(SEVERAL, { scope, threadIds: JSON.stringify(grants.map(({ threadId }) => threadId)) })
  const theirs = new Map(rows.map((row) => [row.thread_id, row]))
  for (const { threadId, right } of grants) {
    const row = theirs.get(threadId)
    const before = byThread.get(threadId)?.row?.granted ?? null
    if (row !== undefined) byThread.set(threadId, { row: factsOf(row, widest(before, right)), runners: [] })
  }
}

/** Of most threads of a user, which share it. SQLite compares a user id as it is, because it is well-formed. */
function settledOf(owner: string): ThreadAccess {
  return { row: { owner, deleted: false, provisional: false, granted: null }, runners: [] }
}

function factsOf({ user_id: owner, deleted_at: deletedAt, provisional }: Owned, granted: Right | null): RowFacts {
  const deleted = deletedAt !== null
  return { owner, deleted, provisional: provisional === 1, granted: deleted ? null : granted }
}

function register(database: Connection, key: ThreadKey, claim: Claim, self: string): ClaimResult {
  const { userId, agentId, guest, now } = claim
  const values = { ...key, userId, agentId, now, self }
  const row = database.get(ROW, values)
  if (userId === NOBODY) return { outcome: 'foreign' }
  if (row === undefined) {
    if (guest) return { outcome: 'foreign' }
    database.run(INSERT, values)
    return { outcome: 'new', registration: 0 }
  }
  const { user_id: owner, deleted_at: deletedAt, provisional, incarnation } = row
  if (owner !== userId || (guest && deletedAt !== null)) return { outcome: 'foreign' }
  if (provisional === 1) {
    database.run(REGISTER, values)
    return { outcome: 'own', registration: incarnation }
  }
  if (deletedAt === null) {
    database.run(CONTINUE, values)
    return { outcome: 'own', registration: null }
  }
  database.run(REVIVE, values)
  return { outcome: 'new', registration: incarnation + 1 }
}

function settle(
  database: Connection,
  key: ThreadKey,
  userId: string,
  incarnation: number,
  outcome: RunOutcome,
): { readonly result: boolean; readonly changed: Changed } {
  const values = { ...key, userId, incarnation }
  if (outcome !== 'not-started') {
    database.run(SETTLE, { ...values, confirmed: outcome === 'confirmed' ? 1 : 0 })
    return { result: false, changed: 'nothing' }
  }
  const left = database.get(LEAVE, values)
  if (left === undefined || left.open_runs > 0) return { result: false, changed: 'nothing' }
  if (left.deleted_at !== null) {
    database.run(BACK_TO_GRAVE, values)
    return { result: true, changed: 'nothing' }
  }
  database.run(REMOVE, values)
  // The next owner of the thread has granted nothing yet.
  return { result: true, changed: removeGrants(database, key) > 0 ? key : 'nothing' }
}
