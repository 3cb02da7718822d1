/** Checks whether a gateway could open a store, without creating or changing anything. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { scopesText } from './sql/statement.ts'
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
  if (message !== null) return { outcome: 'unusable', message: `${file}: ${message}`, hint: 'find out who took it away' }
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
      message: `${file} was used by a newer program: its schema is ${version}, and this one knows ${SCHEMA_VERSION}`,
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

function missing(file: string): SqliteInspection {
  let folder = dirname(file)
  while (!existsSync(folder)) folder = dirname(folder)
  try {
    if (!statSync(folder).isDirectory()) throw new Error('no folder')
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch {
    return {
      outcome: 'unusable',
      message: `${file} does not exist and cannot be created: ${folder} is not a folder that can be written to`,
      hint: 'mount a volume there that belongs to the user that runs the gateway',
    }
  }
  return { outcome: 'missing' }
}
