/** The store's file, used in atomic steps. Failures reopen it but never recreate it: in an empty file all threads are unowned. */
import { closeSync, existsSync, mkdirSync, openSync, readlinkSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type Database from 'better-sqlite3'
import { StoreUnavailable } from '../port/state.ts'
import { connect, type Connection, inWords, isBusy, isDamage, isLasting } from './connection.ts'
import { migrate, SCHEMA_VERSION, schemaOf } from './schema.ts'
import { makeTurns, type Turns } from './lock-retry.ts'

/** May run several times; only its last run has an effect. It handles no error of SQLite, which may have ended the transaction. */
export type Step<T> = (database: Connection) => T

type Use = 'read' | 'write'

interface Waiting {
  readonly step: Step<unknown>
  readonly resolve: (result: never) => void
  readonly reject: (why: StoreUnavailable) => void
}

/** Steps of one transaction, and of one turn of the event loop. */
const MOST_TOGETHER = 64

/** Milliseconds to wait for another process's lock; then the answer is 503. */
const PATIENCE_MS = 5000
const PROBE_PATIENCE_MS = 1000
const REOPENING_MS = 1000
/** How long a connection is used for reads without a check that its file is still at its path. */
const CHECK_INTERVAL_MS = 100

/** Identifies a file, not its path: a connection keeps the file that it opened, wherever that was moved. Null if missing. */
interface Place {
  readonly file: string | null
  /** Exists while the file is in use. */
  readonly log: string | null
}

/** Every failed step rejects with StoreUnavailable. */
export class SqliteFile {
  readonly path: string
  /** Identifies the current or last file. Another file may hold anything. A property, because each request reads it. */
  identity: string | null = null
  /** True after a failed write and after each reopening, until `probe` has written something. */
  #unproven = false
  /** True from the first sign of damage until a check finds none. */
  damaged = false
  readonly #turns: Readonly<Record<'read' | 'write' | 'probe', Turns>>
  #connection: Connection | null = null
  #place: Place | null = null
  #triedAt = -Infinity
  #checkedAt = -Infinity
  #lasting = false
  #closed = false
  #waiting: Waiting[] = []
  #why = ''

  private constructor(path: string, retry: number) {
    this.path = path
    const turns = (most: number): Turns => makeTurns(Math.min(retry, most), isBusy)
    this.#turns = { read: turns(retry), write: turns(retry), probe: turns(PROBE_PATIENCE_MS) }
  }

  /** Creates a missing file or folder, and migrates an older file. @throws StoreUnavailable with the path and a remedy */
  static async open(path: string, retry = PATIENCE_MS): Promise<SqliteFile> {
    const file = new SqliteFile(path, retry)
    try {
      mkdirSync(dirname(path), { recursive: true })
      make(path)
      await file.#turns.write.take(() => file.#connect(migrate))
      return file
    } catch (error) {
      throw new StoreUnavailable(
        `the ownership store ${path} cannot be opened for writing: ${inWords(error)}; check ownership.store and the permissions of its folder`,
      )
    }
  }

  async read<T>(step: Step<T>): Promise<T> {
    try {
      return await this.#turns.read.take(() => {
        const connection = this.connected('read')
        return connection.snapshot(() => step(connection))
      })
    } catch (error) {
      throw this.#failed(error, 'read')
    }
  }

  /** For a read of one statement, which needs no transaction to see one state of the data. */
  async ask<T>(step: Step<T>): Promise<T> {
    try {
      return await this.#turns.read.take(() => step(this.connected('read')))
    } catch (error) {
      throw this.#failed(error, 'read')
    }
  }

  /** Steps of one turn of the event loop share a transaction, because the disk confirms each transaction by itself. */
  write<T>(step: Step<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#writeWaiting())
      this.#waiting.push({ step, resolve, reject })
    })
  }

  #writeWaiting(): void {
    void this.#writeTogether(this.#waiting.splice(0, MOST_TOGETHER))
    if (this.#waiting.length > 0) setImmediate(() => this.#writeWaiting())
  }

  /** One step may fail for all of them: then each has its own transaction, in the same turn, which keeps their order. */
  async #writeTogether(group: readonly Waiting[]): Promise<void> {
    let left = group
    let isTogether = group.length > 1
    const together = (): void => {
      const results = this.#written((connection) => group.map(({ step }) => step(connection)))
      left = []
      group.forEach(({ resolve }, at) => resolve(results[at] as never))
    }
    const apart = (): void => {
      for (let one = left[0]; one !== undefined; one = left[0]) {
        try {
          one.resolve(this.#written(one.step) as never)
        } catch (error) {
          if (isBusy(error)) throw error
          one.reject(this.#failed(error, 'write'))
        }
        left = left.slice(1)
      }
    }
    try {
      await this.#turns.write.take(() => {
        if (isTogether) {
          try {
            together()
            return
          } catch (error) {
            if (isBusy(error)) throw error
            isTogether = false
          }
        }
        apart()
      })
    } catch (error) {
      const why = this.#failed(error, 'write')
      left.forEach(({ reject }) => reject(why))
    }
  }

  /** An optional write. Returns false if it was skipped: another process has the lock, or writing fails. */
  note(step: Step<unknown>): boolean {
    if (this.#turns.write.waiting > 0) return false
    try {
      this.#written(step)
      return true
    } catch (error) {
      this.#failed(error, 'write')
      return false
    }
  }

  /** Checks writes: by taking the lock, which costs nothing, or by `step` while writing is unproven. */
  async probe(step: Step<unknown>): Promise<void> {
    try {
      await this.#turns.probe.take(() => this.#written((connection) => this.#unproven && step(connection)))
      this.#unproven = false
    } catch (error) {
      throw this.#failed(error, 'write')
    }
  }

  close(): void {
    while (this.#waiting.length > 0) this.#writeWaiting()
    this.#closed = true
    this.#drop()
  }

  #written<T>(step: Step<T>): T {
    const connection = this.connected('write')
    return connection.locked(() => step(connection))
  }

  /** For optional reads: their failures are not noted. @throws Error if the file cannot be opened */
  connected(use: Use): Connection {
    if (this.#closed) throw new Error('it is closed')
    const now = performance.now()
    if (this.#connection !== null && (use === 'write' || now - this.#checkedAt >= CHECK_INTERVAL_MS)) {
      this.#checkedAt = now
      if (identityOf(this.path) !== this.identity) this.#drop()
    }
    const stays = !this.#lasting || now - this.#triedAt < REOPENING_MS
    if (this.#connection !== null && stays) return this.#connection
    if (now - this.#triedAt < REOPENING_MS) throw new Error(this.#why)
    return this.#reopen(now)
  }

  /** Returns the old connection if no new one can be opened: it may still be readable where nothing can be written. */
  #reopen(now: number): Connection {
    this.#triedAt = now
    try {
      const connection = this.#connect(requireSchema)
      this.#unproven = true
      return connection
    } catch (error) {
      if (isBusy(error)) this.#triedAt = -Infinity
      this.#why = inWords(error)
      if (this.#connection !== null) return this.#connection
      throw error
    }
  }

  #connect(prepare: (database: Database.Database) => void): Connection {
    const now = placeOf(this.path)
    const why = obstacle(this.#place, now)
    if (why !== null) throw new Error(why)
    const connection = connect(this.path, prepare)
    // Not earlier: closing the last connection deletes files that SQLite would have to create again, on a disk that may be full.
    this.#connection?.close()
    this.#connection = connection
    this.#place = placeOf(this.path)
    this.identity = this.#place.file
    this.#lasting = false
    return connection
  }

  #drop(): void {
    this.#connection?.close()
    this.#connection = null
    this.#why = 'its file was moved or replaced'
  }

  #failed(error: unknown, use: Use): StoreUnavailable {
    if (isLasting(error)) this.#lasting = true
    if (isDamage(error)) this.damaged = true
    if (use === 'write' && !isBusy(error)) this.#unproven = true
    return new StoreUnavailable(`the ownership store failed: ${inWords(error)}`)
  }
}

/** Only this user may read the file, because it says who talks about what. SQLite creates its other files likewise. */
function make(path: string): void {
  const why = obstacle(null, placeOf(path))
  if (why !== null) throw new Error(why)
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/** A reopened file must be the same, or restored from an older program's backup. */
function requireSchema(database: Database.Database): void {
  const schema = schemaOf(database)
  if (schema === 0) throw new Error('its file is empty: restore the previous file')
  if (schema < SCHEMA_VERSION) migrate(database)
}

/** Looks for the log first: a process that creates a store creates the file first. */
export function placeOf(path: string): Place {
  const log = identityOf(`${target(path)}-wal`)
  return { file: identityOf(path), log }
}

/** Follows links, also to a missing file, as SQLite does: it puts the log beside the file itself. */
function target(path: string, most = 40): string {
  try {
    const link = readlinkSync(path)
    return most === 0 ? path : target(resolve(dirname(path), link), most - 1)
  } catch {
    return path
  }
}

export function identityOf(path: string): string | null {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return null
  }
}

/** @returns why the file at a path can't replace the one before; null if it can */
export function obstacle(before: Place | null, now: Place): string | null {
  if (before === null && now.file === null && now.log !== null)
    return 'its file is gone, but its -wal is there: restore the file; or, to begin with an empty table in which no thread has an owner, remove the -wal and -shm'
  if (before === null) return null
  if (now.file === null) return 'its file is missing: restore it'
  // SQLite would write the old file's changes into the new one.
  if (now.file !== before.file && now.log !== null && now.log === before.log)
    return 'its file was replaced while it was in use, but the -wal belongs to the old file: stop the programs that use it, and remove the -wal and -shm'
  return null
}
