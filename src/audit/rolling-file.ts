/** Opens an audit file that switches to the next file when it has grown, as pino-roll does; detects removed and cut files. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import roll, { type RollingFile } from 'pino-roll'

export interface AuditFileRules {
  readonly file: string
  /** Approximate bytes: a file that has grown beyond them is put aside. */
  readonly maxSize: number
  readonly keep: number
}

export type FileError = Error & { readonly code?: string; readonly syscall?: string }

/** The lines are about people: only the owner and the group, for log collectors, may read them. */
const MODE = 0o640

/**
 * Opens the newest of the files.
 * @param onError called when no more can be written to the file; no write is under way then
 * @throws the error of the file system
 */
export async function openRollingFile(
  { file, maxSize, keep }: AuditFileRules,
  onError: (stream: RollingFile, error: FileError) => void,
): Promise<RollingFile> {
  const stream = await roll({
    file,
    size: `${maxSize}b`,
    // Counted before the next file is made. Includes files of earlier processes: otherwise each start would leave some behind.
    limit: { count: keep, removeOtherLogFiles: true },
    mkdir: true,
    mode: MODE,
  })
  await new Promise<void>((resolve, reject) => {
    stream.once('ready', resolve)
    stream.once('error', reject)
  })
  stream.removeAllListeners('error')
  stream.on('error', (error: FileError) => {
    // Other errors are about old files that could not be listed or closed: the current file works.
    if (['open', 'mkdir', 'write'].includes(error.syscall ?? '')) onError(stream, error)
  })
  return stream
}

/** True if the current file has no name any more: it, or its folder, was removed. */
export function isGone({ fd }: RollingFile): boolean {
  try {
    return fstatSync(fd).nlink === 0
  } catch {
    return true
  }
}

/** True if the last line of a file has no line end: its writer was stopped in the middle. */
export function isCut(file: string): boolean {
  const fd = openSync(file, 'r')
  try {
    const { size } = fstatSync(fd)
    if (size === 0) return false
    const last = Buffer.alloc(1)
    readSync(fd, last, 0, 1, size - 1)
    return last[0] !== 0x0a
  } finally {
    closeSync(fd)
  }
}
