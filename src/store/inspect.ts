/** Checks whether a gateway could open a store, and what it knows about threads, without creating or changing anything. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import type { ThreadLookup } from './port/lookup.ts'
import { lookupText, scopesText } from './sql/statement.ts'
import { obstacle, placeOf } from './sqlite/file.ts'
import { SCHEMA_VERSION, schemaOf } from './sqlite/schema.ts'

export type SqliteInspection =
  /** Can be opened and written; a gateway then migrates it. `scopes` have rows; `schema` is 0 without one. */
  | { readonly outcome: 'usable'; readonly scopes: readonly string[]; readonly schema: number }
  | { readonly outcome: 'missing' }
  | { readonly outcome: 'unusable'; readonly message: string; readonly hint: string }

/** `retry` is the lock wait in milliseconds, which blocks this process. `file` is an absolute path. */
export function inspectSqlite(file: string, retry: number): SqliteInspection {
  const message = obstacle(null, placeOf(file))
  if (message !== null) return { outcome: 'unusable', message: `${file}: ${message}`, hint: 'find out what removed it' }
  if (!existsSync(file)) return missing(file)
  try {
    const database = new Database(file, { fileMustExist: true, timeout: retry })
    try {
      return opened(file, database)
    } finally {
      database.close()
    }
  } catch (error) {
    return {
      outcome: 'unusable',
      message: `${file} cannot be opened for writing: ${error instanceof Error ? error.message : 'it failed'}`,
      hint: 'check ownership.store and the permissions of the file and its folder',
    }
  }
}

/** Takes and releases the write lock: that proves the file writable, and a running gateway notices nothing. */
function opened(file: string, database: Database.Database): SqliteInspection {
  database.exec('BEGIN IMMEDIATE')
  database.exec('ROLLBACK')
  const version = database.pragma('user_version', { simple: true }) as number
  if (version > SCHEMA_VERSION) {
    return {
      outcome: 'unusable',
      message: `${file} was written by a newer version: its schema is ${version}, and this version knows ${SCHEMA_VERSION}`,
      hint: 'run the newer program, or restore a backup from before it',
    }
  }
  const schema = schemaOf(database)
  return {
    outcome: 'usable',
    scopes: schema === 0 ? [] : database.prepare<[], string>(scopesText('threads')).pluck().all(),
    schema,
  }
}

/** `retry` as for `inspectSqlite`. @throws if the file cannot be opened, or its schema lacks the tables */
export function lookUpInSqlite(file: string, retry: number): ThreadLookup {
  const database = new Database(file, { fileMustExist: true, timeout: retry })
  const tables = { threads: 'threads', observations: 'observations' }
  return {
    async known(scope, threadIds) {
      const text = lookupText(tables, { asked: 'SELECT value AS thread_id FROM json_each(:threadIds)', scope: ':scope' })
      const statement = database.prepare<[object], { threadId: string; hasRow: number; runners: number }>(text)
      const found = statement.all({ scope, threadIds: JSON.stringify(threadIds) })
      return found.map((one) => ({ ...one, hasRow: one.hasRow !== 0 }))
    },
    close: () => Promise.resolve(void database.close()),
  }
}

function missing(file: string): SqliteInspection {
  let folder = dirname(file)
  while (!existsSync(folder)) folder = dirname(folder)
  try {
    if (!statSync(folder).isDirectory()) throw new Error('no folder')
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch {
    return {
      outcome: 'unusable',
      message: `${file} does not exist and cannot be created: ${folder} is not a writable folder`,
      hint: 'mount a volume there that the user of the gateway may write',
    }
  }
  return { outcome: 'missing' }
}
