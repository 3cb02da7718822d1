/** Copies the store as of one moment, while gateways write. The copy gets its name when it is complete, checked and synced. */
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { inWords } from './connection.ts'
import { findDamage } from './integrity.ts'
import { identityOf } from './file.ts'

export interface BackupOptions {
  readonly overwrite?: boolean
  /** Called after each part, with page counts. The check of the copy follows the last call. */
  readonly onProgress?: (copied: number, total: number) => void
  readonly signal?: AbortSignal
}

export interface Backup {
  readonly bytes: number
  readonly schema: number
}

/** An existing file at the target is unchanged. The message says why and what to do. */
export class BackupFailed extends Error {
  override readonly name = 'BackupFailed'
}

/** Pages of one part: other work runs between parts. */
const PART = 250
const PATIENCE_MS = 5000

/** The folder of `target` must exist. @throws BackupFailed, or the signal's reason if it was aborted */
export async function backup(file: string, target: string, options: BackupOptions = {}): Promise<Backup> {
  const { signal } = options
  requireFree(file, target, options)
  const partial = `${target}.${randomBytes(6).toString('hex')}.partial`
  try {
    // The copy has users and their threads: only this user may read it.
    closeSync(openSync(partial, 'wx', 0o600))
    const schema = await copy(file, partial, options)
    const damage = await findDamage(partial, 'whole')
    if (damage !== null) throw new BackupFailed(`the copy of ${file} is damaged, as the store may be: ${damage}`)
    signal?.throwIfAborted()
    toDisk(partial)
    // Another process may have created a file there meanwhile.
    requireFree(file, target, options)
    renameSync(partial, target)
    toDisk(dirname(target))
    return { bytes: statSync(target).size, schema }
  } catch (error) {
    for (const end of ['', '-journal', '-wal', '-shm']) rmSync(`${partial}${end}`, { force: true })
    if (error instanceof BackupFailed || signal?.aborted === true) throw error
    throw new BackupFailed(`${file} could not be copied to ${target}: ${inWords(error)}`)
  }
}

function requireFree(file: string, target: string, { overwrite = false }: BackupOptions): void {
  if (!existsSync(file)) throw new BackupFailed(`${file} does not exist: check ownership.store, and that a gateway has used it`)
  if (identityOf(target) === identityOf(file)) throw new BackupFailed(`${target} is the store itself: name another file`)
  const folder = dirname(target)
  if (!existsSync(folder)) throw new BackupFailed(`the folder ${folder} does not exist: create it, or name another file`)
  if (existsSync(target) && !overwrite) throw new BackupFailed(`${target} already exists: name another file`)
  // SQLite would treat these files as part of the copy.
  for (const end of ['-wal', '-shm', '-journal']) {
    if (existsSync(`${target}${end}`))
      throw new BackupFailed(`${target}${end} exists: a database with that name is in use, or was not closed. Name another file`)
  }
}

async function copy(file: string, partial: string, { onProgress, signal }: BackupOptions): Promise<number> {
  const source = new Database(file, { fileMustExist: true, timeout: PATIENCE_MS })
  try {
    // Held until the end: without it each write of a gateway would restart the copy.
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

/** Makes the copy a single file, without a log beside it. @returns its schema */
function finished(partial: string): number {
  const database = new Database(partial, { fileMustExist: true })
  try {
    database.pragma('journal_mode = DELETE')
    return database.pragma('user_version', { simple: true }) as number
  } finally {
    database.close()
  }
}

function toDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
