/**
 * A copy of the SQLite store while gateways write to it: all of it as it was at one moment. It stands at its name only when it
 * is whole, looked through and on the disk.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { inWords } from './errors.ts'
import { findDamage } from './integrity.ts'
import { identityOf } from './place.ts'

export interface BackupOptions {
  /** True to put the copy in place of a file that is there; false by default. */
  readonly overwrite?: boolean
  /** Told after each part how many pages are copied, and of how many. The look through the copy comes after the last. */
  readonly onProgress?: (copied: number, total: number) => void
  /** Breaks it off; nothing is left of it then. */
  readonly signal?: AbortSignal
}

export interface Backup {
  /** The size of the copy. */
  readonly bytes: number
  /** The schema of the store, as it is in the copy. */
  readonly schema: number
}

/** The backup was not made, and what stood at its name is as it was. The message says why and what to do. */
export class BackupFailed extends Error {
  override readonly name = 'BackupFailed'
}

/** Pages of one part: other work goes on between parts. */
const PART = 250
/** How long another process's lock is waited for, in milliseconds. */
const PATIENCE_MS = 5000

/**
 * Copies a store.
 * @param file the path of the database
 * @param target the path of the copy; its folder must be there
 * @throws BackupFailed, and the signal's reason if it was broken off
 */
export async function backup(file: string, target: string, options: BackupOptions = {}): Promise<Backup> {
  const { overwrite = false, signal } = options
  requireFree(file, target, overwrite)
  const partial = `${target}.${randomBytes(6).toString('hex')}.partial`
  try {
    // It says who talks to whom: nobody else is to read it.
    closeSync(openSync(partial, 'wx', 0o600))
    const schema = await copy(file, partial, options)
    const damage = await findDamage(partial, 'whole')
    if (damage !== null) throw new BackupFailed(`the copy of ${file} is damaged, as the store may be: ${damage}`)
    signal?.throwIfAborted()
    toDisk(partial)
    // Others may have made a file there meanwhile.
    requireFree(file, target, overwrite)
    renameSync(partial, target)
    toDisk(dirname(target))
    return { bytes: statSync(target).size, schema }
  } catch (error) {
    for (const end of ['', '-journal', '-wal', '-shm']) rmSync(`${partial}${end}`, { force: true })
    if (error instanceof BackupFailed || signal?.aborted === true) throw error
    throw new BackupFailed(`${file} could not be copied to ${target}: ${inWords(error)}`)
  }
}

function requireFree(file: string, target: string, overwrite: boolean): void {
  if (!existsSync(file)) throw new BackupFailed(`${file} is not there: check ownership.store, and that a gateway has run on it`)
  if (identityOf(target) === identityOf(file)) throw new BackupFailed(`${target} is the store itself: name another file`)
  if (existsSync(target) && !overwrite) throw new BackupFailed(`${target} is there already: name another file`)
  // SQLite would take them for a part of the copy.
  for (const end of ['-wal', '-shm', '-journal']) {
    if (existsSync(`${target}${end}`))
      throw new BackupFailed(`${target}${end} is there: a database of that name is in use, or was not closed: name another file`)
  }
}

/** @returns the schema of the copy */
async function copy(file: string, partial: string, { onProgress, signal }: BackupOptions): Promise<number> {
  const source = new Database(file, { fileMustExist: true, timeout: PATIENCE_MS })
  try {
    // Held until the end: without it each write of a gateway would begin the copy anew.
    source.exec('BEGIN')
    const schema = source.pragma('user_version', { simple: true }) as number
    if (schema === 0) throw new BackupFailed(`${file} is no store, or an empty one`)
    await source.backup(partial, {
      progress({ totalPages, remainingPages }) {
        signal?.throwIfAborted()
        onProgress?.(totalPages - remainingPages, totalPages)
        return PART
      },
    })
    const there = finished(partial)
    if (there !== schema) throw new BackupFailed(`the copy of ${file} has schema ${there} instead of ${schema}`)
    return schema
  } finally {
    source.close()
  }
}

/** Makes a copy one file that needs none beside it. @returns its schema */
function finished(partial: string): number {
  const database = new Database(partial, { fileMustExist: true })
  try {
    database.pragma('journal_mode = DELETE')
    return database.pragma('user_version', { simple: true }) as number
  } finally {
    database.close()
  }
}

/** Waits until a file or folder is on the disk. */
function toDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
