/** Identifies a store by its file, not its path: a connection keeps the file that it opened, wherever that was moved. */
import { readlinkSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** A file, and its log while it is in use; null if missing. */
export interface Place {
  readonly file: string | null
  readonly log: string | null
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
    return 'its file is gone, and the -wal beside it is of it: put the file back, or, to begin with an empty table, in which every thread is nobody’s, take the -wal and -shm away'
  if (before === null) return null
  if (now.file === null) return 'its file is not there any more: put it back'
  // SQLite would write the old file's changes into the new one.
  if (now.file !== before.file && now.log !== null && now.log === before.log)
    return 'its file was replaced while it was in use, and the -wal beside it is of the old one: stop what uses it, and take its -wal and -shm away'
  return null
}
