/** A file that goes on to the next one when it has grown, as pino-roll makes it; and what may become of it. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import roll, { type RollingFile } from 'pino-roll'

/** Which files, and when they are put aside. */
export interface AuditFileRules {
  /** The path that the names of the files are made of. */
  readonly file: string
  /** Bytes, about: a file is put aside when it has grown beyond them. */
  readonly maxSize: number
  /** How many files stay beside the one that is written. */
  readonly keep: number
}

/** An error of the file system. */
export type FileError = Error & { readonly code?: string; readonly syscall?: string }

/** The lines are about people: their group may read them, for who collects logs. */
const MODE = 0o640

/**
 * Opens the newest of the files.
 * @param onError told when nothing more can be written to it; nothing is under way on it then
 * @throws the error of the file system
 */
export async function openRollingFile(
  { file, maxSize, keep }: AuditFileRules,
  onError: (stream: RollingFile, error: FileError) => void,
): Promise<RollingFile> {
  const stream = await roll({
    file,
    size: `${maxSize}b`,
    // Counted while the next one is not made yet. Not only those of this process: each start would leave some behind.
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
    // Old files that could not be looked through, or closed: nothing is wrong with the one that is written.
    if (['open', 'mkdir', 'write'].includes(error.syscall ?? '')) onError(stream, error)
  })
  return stream
}

/** True if the file that is written has no name any more: somebody has removed it, or its folder. */
export function isGone({ fd }: RollingFile): boolean {
  try {
    return fstatSync(fd).nlink === 0
  } catch {
    return true
  }
}

/** True if the last line of a file has no end: whoever wrote it was stopped in its middle. */
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
