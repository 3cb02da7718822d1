/** The store on SQLite, ownership, revocations and observations: one file, shared safely by several processes on one machine. */
import { randomBytes } from 'node:crypto'
import type { Revocation } from '../core/credential.ts'
import type { OwnerRecord } from '../core/decide.ts'
import type { ClaimResult, ObservationStore, RevocationStore, Revoked, RunOutcome, Store, ThreadKey } from './port.ts'
import { openSqliteFile, type SqliteFile } from './sqlite-file.ts'
import { observationsIn } from './sqlite-observations.ts'
import { revocationsIn } from './sqlite-revocations.ts'

const MINUTE = 60_000

interface Row {
  readonly user_id: string
  readonly deleted_at: number | null
  readonly provisional: number
  readonly last_used_at: number
  readonly life: number
}

interface ClaimValues extends ThreadKey {
  readonly userId: string
  readonly agentId: string
  readonly now: number
}

/**
 * Opens the store, making file and folder where they are missing.
 * @param file the path of the database
 * @throws StoreUnavailable with the path and what to do, if it can't be opened or written
 */
export function openSqliteStore(file: string): Store {
  return new SqliteStore(openSqliteFile(file))
}

class SqliteStore implements Store {
  readonly #file: SqliteFile
  readonly #revocations: RevocationStore
  readonly #observations: ObservationStore
  readonly #nearest
  readonly #owners
  readonly #row
  readonly #insert
  readonly #revive
  readonly #register
  readonly #confirm
  readonly #leave
  readonly #remove
  readonly #backToGrave
  readonly #touch
  readonly #rename
  readonly #bury

  constructor(file: SqliteFile) {
    this.#file = file
    this.#revocations = revocationsIn(file)
    this.#observations = observationsIn(file)
    const { database } = file
    const where = 'WHERE scope = :scope AND thread_id = :threadId'
    const mine = `${where} AND user_id = :userId`
    this.#nearest = database.prepare<[string, string], { thread_id: string; user_id: string; deleted_at: number | null }>(
      'SELECT thread_id, user_id, deleted_at FROM threads WHERE scope = ? AND thread_id >= ? ORDER BY thread_id LIMIT 1',
    )
    this.#owners = database.prepare<[string, string], { thread_id: string; user_id: string; deleted_at: number | null }>(
      'SELECT thread_id, user_id, deleted_at FROM threads WHERE scope = ? AND thread_id IN (SELECT value FROM json_each(?))',
    )
    this.#row = database.prepare<object, Row>(`SELECT user_id, deleted_at, provisional, last_used_at, life FROM threads ${where}`)
    this.#insert = database.prepare<object>(
      `INSERT INTO threads (scope, thread_id, user_id, agent_id, created_at, last_used_at, provisional, pending)
       VALUES (:scope, :threadId, :userId, :agentId, :now, :now, 1, 1)`,
    )
    this.#revive = database.prepare<object>(
      `UPDATE threads SET provisional = 1, pending = 1, life = life + 1, agent_id = :agentId, last_used_at = :now ${mine}`,
    )
    this.#register = database.prepare<object>(`UPDATE threads SET pending = pending + 1 ${mine} AND provisional = 1`)
    this.#confirm = database.prepare<object>(
      `UPDATE threads SET provisional = 0, pending = 0, deleted_at = NULL ${mine} AND provisional = 1 AND life = :life`,
    )
    this.#leave = database.prepare<object, { pending: number; deleted_at: number | null }>(
      `UPDATE threads SET pending = pending - 1 ${mine} AND provisional = 1 AND life = :life RETURNING pending, deleted_at`,
    )
    this.#remove = database.prepare<object>(`DELETE FROM threads ${mine}`)
    this.#backToGrave = database.prepare<object>(`UPDATE threads SET provisional = 0 ${mine}`)
    this.#touch = database.prepare<object>(`UPDATE threads SET last_used_at = :now ${mine}`)
    this.#rename = database.prepare<object>(`UPDATE threads SET name = :name ${mine}`)
    this.#bury = database.prepare<object>(`UPDATE threads SET deleted_at = :now, provisional = 0, pending = 0 ${mine}`)
  }

  owner({ scope, threadId }: ThreadKey): Promise<OwnerRecord> {
    return this.#file.guard(() => {
      // The row there, or the one after it: a row is found and read either way, and the time tells nothing.
      const row = this.#nearest.get(scope, threadId)
      const record = row === undefined ? null : recordOf(row)
      return row?.thread_id === threadId ? record : null
    })
  }

  owners(scope: string, threadIds: readonly string[]): Promise<ReadonlyMap<string, NonNullable<OwnerRecord>>> {
    return this.#file.guard(() => {
      const rows = this.#owners.all(scope, JSON.stringify(threadIds))
      return new Map(rows.map((row) => [row.thread_id, recordOf(row)]))
    })
  }

  claim(key: ThreadKey, userId: string, agentId: string, now: number): Promise<ClaimResult> {
    const values = { ...key, userId, agentId, now }
    return this.#file.guard(() => this.#claimOwn(values) ?? this.#claimLocked(values))
  }

  /** The common case without the write lock: a row that is the user's and settled. Null for all others. */
  #claimOwn(values: ClaimValues): ClaimResult | null {
    const row = this.#row.get({ scope: values.scope, threadId: values.threadId })
    if (row?.user_id !== values.userId || row.provisional === 1 || row.deleted_at !== null) return null
    if (values.now - row.last_used_at >= MINUTE) this.#touch.run(values)
    return { outcome: 'own', registration: null }
  }

  #claimLocked(values: ClaimValues): ClaimResult {
    const { scope, threadId, userId } = values
    const key = { scope, threadId }
    return this.#file.locked((): ClaimResult => {
      const row = this.#row.get(key)
      if (row === undefined) {
        this.#insert.run(values)
        return { outcome: 'new', registration: 0 }
      }
      if (row.user_id !== userId) return { outcome: 'foreign', record: recordOf(row) }
      if (row.provisional === 1) {
        this.#register.run({ ...key, userId })
        return { outcome: 'own', registration: row.life }
      }
      if (row.deleted_at === null) return { outcome: 'own', registration: null }
      this.#revive.run(values)
      return { outcome: 'new', registration: row.life + 1 }
    })
  }

  settle(key: ThreadKey, userId: string, registration: number, outcome: RunOutcome): Promise<boolean> {
    const values = { ...key, userId, life: registration }
    return this.#file.guardLocked(() => {
      if (outcome === 'stays') {
        this.#confirm.run(values)
        return false
      }
      const left = this.#leave.get(values)
      if (left === undefined || left.pending > 0) return false
      const end = left.deleted_at === null ? this.#remove : this.#backToGrave
      end.run({ ...key, userId })
      return true
    })
  }

  rename(key: ThreadKey, userId: string, name: string | null): Promise<void> {
    return this.#file.guard(() => void this.#rename.run({ ...key, userId, name }))
  }

  bury(key: ThreadKey, userId: string, now: number): Promise<void> {
    return this.#file.guard(() => void this.#bury.run({ ...key, userId, now }))
  }

  isEmpty(): Promise<boolean> {
    return this.#file.guard(() => this.#file.database.prepare('SELECT 1 FROM threads LIMIT 1').get() === undefined)
  }

  secret(): Promise<Uint8Array> {
    return this.#file.guard(() => {
      this.#file.database
        .prepare('INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING')
        .run('cursor', randomBytes(32))
      const row = this.#file.database
        .prepare<[string], { value: Buffer }>('SELECT value FROM secrets WHERE name = ?')
        .get('cursor')
      if (row === undefined) throw new Error('the cursor secret vanished')
      return row.value
    })
  }

  revoke(revocation: Revocation): Promise<void> {
    return this.#revocations.revoke(revocation)
  }

  lift(what: Revoked): Promise<boolean> {
    return this.#revocations.lift(what)
  }

  revocations(): Promise<readonly Revocation[]> {
    return this.#revocations.revocations()
  }

  revocationsVersion(): Promise<number> {
    return this.#revocations.revocationsVersion()
  }

  observe(key: ThreadKey, userId: string, agentId: string, ran: boolean, now: number): Promise<void> {
    return this.#observations.observe(key, userId, agentId, ran, now)
  }

  runners(scope: string, threadIds: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    return this.#observations.runners(scope, threadIds)
  }

  unowned(): Promise<number> {
    return this.#observations.unowned()
  }

  close(): Promise<void> {
    return this.#file.guard(() => void this.#file.database.close())
  }
}

/** What a row says of its thread: with `deleted_at` it is a tombstone, until a run of its owner is confirmed. */
function recordOf(row: { readonly user_id: string; readonly deleted_at: number | null }): NonNullable<OwnerRecord> {
  return { owner: row.user_id, deleted: row.deleted_at !== null }
}
