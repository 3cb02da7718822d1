/**
 * The file of the SQLite store, used in atomic steps.
 * It is reopened after failures that a connection may not recover from, but never created again.
 * A missing file is a fault until it is back: in an empty file every thread would be unowned.
 */
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import { StoreUnavailable } from '../port/state.ts'
import { connect, type Connection } from './connection.ts'
import { inWords, isBusy, isDamage, isLasting } from './errors.ts'
import { identityOf, obstacle, placeOf, type Place } from './place.ts'
import { migrate, SCHEMA_VERSION, schemaOf } from './schema.ts'
import { makeTurns, type Turns } from './lock-retry.ts'

/** A step on the file. It may run several times, but only its last run has an effect. */
export type Step<T> = (database: Connection) => T

type Use = 'read' | 'write'

/** How long to wait for another process's lock, in milliseconds; then the answer is 503. */
const PATIENCE_MS = 5000
/** The same for a health probe. */
const PROBE_PATIENCE_MS = 1000
const REOPENING_MS = 1000
/** How long a connection is read from without a check that its file is still at its path. */
const CHECK_INTERVAL_MS = 100

/** An open file. Every failed step rejects with StoreUnavailable. */
export class SqliteFile {
  readonly path: string
  /** True after a failed write and after each reopening, until `probe` has written something. */
  #unproven = false
  /** True from the first sign of damage until a check has found none. */
  damaged = false
  readonly #turns: Readonly<Record<'read' | 'write' | 'probe', Turns>>
  #connection: Connection | null = null
  #place: Place | null = null
  #triedAt = -Infinity
  #checkedAt = -Infinity
  #lasting = false
  #closed = false
  #why = ''

  private constructor(path: string, retry: number) {
    this.path = path
    const turns = (most: number): Turns => makeTurns(Math.min(retry, most), isBusy)
    this.#turns = { read: turns(retry), write: turns(retry), probe: turns(PROBE_PATIENCE_MS) }
  }

  /**
   * Creates a missing file or folder, and migrates the file of an older program.
   * @throws StoreUnavailable with the path and a remedy, if it can't be opened or written
   */
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
        const connection = this.#connected('read')
        return connection.snapshot(() => step(connection))
      })
    } catch (error) {
      throw this.#failed(error, 'read')
    }
  }

  /** Runs a read of one statement, which needs no transaction to see one state of the data. */
  async ask<T>(step: Step<T>): Promise<T> {
    try {
      return await this.#turns.read.take(() => step(this.#connected('read')))
    } catch (error) {
      throw this.#failed(error, 'read')
    }
  }

  /** Runs an optional read at once. @returns null if it fails: the next required step reports the failure */
  glance<T>(step: Step<T>): T | null {
    try {
      return step(this.#connected('read'))
    } catch {
      return null
    }
  }

  async write<T>(step: Step<T>): Promise<T> {
    try {
      return await this.#turns.write.take(() => this.#written(step))
    } catch (error) {
      throw this.#failed(error, 'write')
    }
  }

  /** Runs an optional write. @returns false if it was skipped: another process has the lock, or writing fails */
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

  /** Checks whether the file can be written: by its lock, which costs nothing, or by `step` while writing is unproven. */
  async probe(step: Step<unknown>): Promise<void> {
    try {
      await this.#turns.probe.take(() => this.#written((connection) => this.#unproven && step(connection)))
      this.#unproven = false
    } catch (error) {
      throw this.#failed(error, 'write')
    }
  }

  /** Identifies the file that is in use, or was last. Another file may hold anything. */
  get identity(): string | null {
    return this.#place?.file ?? null
  }

  close(): void {
    this.#closed = true
    this.#drop()
  }

  #written<T>(step: Step<T>): T {
    const connection = this.#connected('write')
    return connection.locked(() => step(connection))
  }

  /** @throws if there is no connection now */
  #connected(use: Use): Connection {
    if (this.#closed) throw new Error('it is closed')
    const now = performance.now()
    if (this.#connection !== null && (use === 'write' || now - this.#checkedAt >= CHECK_INTERVAL_MS)) {
      this.#checkedAt = now
      if (identityOf(this.path) !== this.#place?.file) this.#drop()
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
    // Not earlier: with its last connection SQLite deletes files that it would have to create again, on a disk that may be full.
    this.#connection?.close()
    this.#connection = connection
    this.#place = placeOf(this.path)
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

/** A reopened file must be as it was, or be restored from a backup of an older program. */
function requireSchema(database: Database.Database): void {
  const schema = schemaOf(database)
  if (schema === 0) throw new Error('its file is empty: put back what was there')
  if (schema < SCHEMA_VERSION) migrate(database)
}
