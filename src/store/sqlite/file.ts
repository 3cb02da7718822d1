/**
 * The file of the SQLite store, used in steps that are atomic. It is opened anew by itself after failures that a connection
 * may not recover from, and never made anew: a file that vanished is a fault until it is back, because in an empty one every
 * thread would be nobody's.
 */
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import { StoreUnavailable } from '../port.ts'
import { connect, type Connection } from './connection.ts'
import { inWords, isBusy, isDamage, isLasting } from './errors.ts'
import { identityOf, obstacle, placeOf, type Place } from './place.ts'
import { migrate, SCHEMA_VERSION, schemaOf } from './schema.ts'
import { makeTurns, type Turns } from './turns.ts'

/** A step on the file. It may be done several times, but has no effect except the last time. */
export type Step<T> = (database: Connection) => T

/** How long another process's lock is waited for, in milliseconds; then the answer is 503. */
const PATIENCE_MS = 5000
/** The same where somebody waits for a word on how the store is. */
const PROBE_PATIENCE_MS = 1000
/** The least time between two openings. */
const REOPENING_MS = 1000
/** How long a connection is read from without a look at whether its file still stands in its place. */
const LOOKING_MS = 100

/** An open file. Every failure of a step is a rejection with StoreUnavailable. */
export class SqliteFile {
  readonly path: string
  /** True from the first write that failed, and from each new connection, until `probe` has written something. */
  #unproven = false
  /** True from the first sign of damage until somebody has found that there is none. */
  damaged = false
  readonly #turns: Readonly<Record<'read' | 'write' | 'probe', Turns>>
  #connection: Connection | null = null
  /** Of the last connection that worked. */
  #place: Place | null = null
  #triedAt = -Infinity
  #lookedAt = -Infinity
  #lasting = false
  #closed = false
  #why = ''

  private constructor(path: string, retry: number) {
    this.path = path
    const turns = (most: number): Turns => makeTurns(Math.min(retry, most), isBusy)
    this.#turns = { read: turns(retry), write: turns(retry), probe: turns(PROBE_PATIENCE_MS) }
  }

  /**
   * Opens a file, making it and its folder where they are missing, and migrates it where it is of an older program.
   * @param path the path of the database
   * @param retry how long another process's lock is waited for, in milliseconds
   * @throws StoreUnavailable with the path and what to do, if it can't be opened or written
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

  /** Does a step that reads, all of it at one state of the data. */
  async read<T>(step: Step<T>): Promise<T> {
    try {
      return await this.#turns.read.take(() => {
        const connection = this.#connected(false)
        return connection.snapshot(() => step(connection))
      })
    } catch (error) {
      throw this.#failed(error, false)
    }
  }

  /** Does a step of one statement that reads: such a one is at one state of the data by itself. */
  async ask<T>(step: Step<T>): Promise<T> {
    try {
      return await this.#turns.read.take(() => step(this.#connected(false)))
    } catch (error) {
      throw this.#failed(error, false)
    }
  }

  /** Does the same at once, for somebody who can do without. @returns null where it fails: who needs the file will be told */
  glance<T>(step: Step<T>): T | null {
    try {
      return step(this.#connected(false))
    } catch {
      return null
    }
  }

  /** Does a step that reads and writes, atomically over all processes. */
  async write<T>(step: Step<T>): Promise<T> {
    try {
      return await this.#turns.write.take(() => this.#written(step))
    } catch (error) {
      throw this.#failed(error, true)
    }
  }

  /**
   * Writes what is not worth waiting for. It is left out where another process has the lock, and where writing fails.
   * @returns true if it was written
   */
  note(step: Step<unknown>): boolean {
    if (this.#turns.write.waiting > 0) return false
    try {
      this.#written(step)
      return true
    } catch (error) {
      this.#failed(error, true)
      return false
    }
  }

  /**
   * Finds out whether the file can be written now: by its lock, which costs nothing, or by a write where that may fail.
   * @param step writes something small
   */
  async probe(step: Step<unknown>): Promise<void> {
    try {
      await this.#turns.probe.take(() => this.#written((connection) => this.#unproven && step(connection)))
      this.#unproven = false
    } catch (error) {
      throw this.#failed(error, true)
    }
  }

  /** Which file it is that is in use, or was last. Another one may hold anything. */
  get identity(): string | null {
    return this.#place?.file ?? null
  }

  close(): void {
    this.#closed = true
    this.#drop()
  }

  #written<T>(step: Step<T>): T {
    const connection = this.#connected(true)
    return connection.locked(() => step(connection))
  }

  /** The connection, looked after. @throws if there is none now */
  #connected(writing: boolean): Connection {
    if (this.#closed) throw new Error('it is closed')
    const now = performance.now()
    if (this.#connection !== null && (writing || now - this.#lookedAt >= LOOKING_MS)) {
      this.#lookedAt = now
      if (identityOf(this.path) !== this.#place?.file) this.#drop()
    }
    const stays = !this.#lasting || now - this.#triedAt < REOPENING_MS
    if (this.#connection !== null && stays) return this.#connection
    if (now - this.#triedAt < REOPENING_MS) throw new Error(this.#why)
    return this.#reopen(now)
  }

  /** A new connection, or the old one if there can't be a new one: where nothing can be written, it may still be read from. */
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
    const connection = connect(this.path, this.#place !== null, prepare)
    // Not before: with the last connection SQLite takes away what it would have to make anew, on a disk that may be full.
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

  #failed(error: unknown, writing: boolean): StoreUnavailable {
    if (isLasting(error)) this.#lasting = true
    if (isDamage(error)) this.damaged = true
    if (writing && !isBusy(error)) this.#unproven = true
    return new StoreUnavailable(`the ownership store failed: ${inWords(error)}`)
  }
}

/** Makes a missing file: for its user alone, because it holds who talks about what; SQLite makes those beside it likewise. */
function make(path: string): void {
  const why = obstacle(null, placeOf(path))
  if (why !== null) throw new Error(why)
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/** What a file has to be to be taken up again: as it was, or put back from a backup of an older program. */
function requireSchema(database: Database.Database): void {
  const schema = schemaOf(database)
  if (schema === 0) throw new Error('its file is empty: put back what was there')
  if (schema < SCHEMA_VERSION) migrate(database)
}
