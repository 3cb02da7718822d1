/** The ownership store: can it be opened and written, and will it still be there tomorrow? Nothing is made or changed. */
import { accessSync, constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { storeFile } from '../config/schema.ts'
import { lostWith } from '../store/durability.ts'
import { SCHEMA_VERSION } from '../store/sqlite-file.ts'
import { notChecked, ok, problem, type Finding } from './finding.ts'
import type { Check, Known, Subject } from './subject.ts'

/** While the check waits for another process's lock, nothing else goes on here. */
const BUSY_TIMEOUT_MS = 1000

/** The checks of the store. */
export const STORE_CHECKS: readonly Check[] = [
  { name: 'store.file', run: (subject) => Promise.resolve([look(fileOf(subject), subject.known)]) },
  { name: 'store.durable', run: (subject) => Promise.resolve([durable(fileOf(subject), subject.machine.mounts)]) },
]

function fileOf({ config }: Subject): string {
  return storeFile(config.ownership)
}

function look(file: string, known: Known): Finding {
  if (!existsSync(file)) {
    known.storeEmpty = true
    return missing(file)
  }
  try {
    const database = new Database(file, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
    try {
      return opened(file, database, known)
    } finally {
      database.close()
    }
  } catch (error) {
    return problem(
      'store.file',
      `${file} cannot be opened for writing: ${error instanceof Error ? error.message : 'it failed'}`,
      'check ownership.store and the permissions of the file and its folder; run the doctor as the user that runs the gateway',
    )
  }
}

/** The write lock is taken and let go: it shows that the file can be written, and a gateway that runs notices nothing. */
function opened(file: string, database: Database.Database, known: Known): Finding {
  database.exec('BEGIN IMMEDIATE')
  database.exec('ROLLBACK')
  const { schema } = database.prepare<[], { schema: number }>('SELECT user_version AS schema FROM pragma_user_version').get() ?? {
    schema: 0,
  }
  if (schema > SCHEMA_VERSION) {
    return problem(
      'store.file',
      `${file} was used by a newer program: its schema is ${schema}, and this one knows ${SCHEMA_VERSION}`,
      'run the newer program, or restore a backup from before it',
    )
  }
  known.storeEmpty = schema === 0 || database.prepare('SELECT 1 FROM threads LIMIT 1').get() === undefined
  return ok(
    'store.file',
    `${file} can be opened and written; ${known.storeEmpty ? 'nobody owns a thread yet' : 'it has owners of threads'}`,
  )
}

function missing(file: string): Finding {
  let folder = dirname(file)
  while (!existsSync(folder)) folder = dirname(folder)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch {
    return problem(
      'store.file',
      `${file} is not there, and cannot be made: ${folder} is not writable`,
      'mount a volume there that belongs to the user that runs the gateway',
    )
  }
  return ok(
    'store.file',
    `${file} is not there yet: the gateway makes it when it starts. If it has run before, the path is wrong or a volume is missing`,
  )
}

function durable(file: string, mounts: string): Finding {
  if (mounts === '') return notChecked('store.durable', 'this machine does not tell its mounts')
  if (!existsSync(dirname(file))) return notChecked('store.durable', `the folder of ${file} is not there yet`)
  const fate = lostWith(file, mounts)
  if (fate === null) return ok('store.durable', 'the store outlives the process, as far as its mount tells')
  return problem(
    'store.durable',
    `${file} is lost with ${fate}: threads then have no owner any more`,
    'put it on a volume, and name that in ownership.store',
  )
}
