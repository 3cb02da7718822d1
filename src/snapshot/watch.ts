/**
 * Watches the files of a configuration. It looks at what a path leads to, by time and size: so it sees a file that was
 * written over, one that was renamed into place, and the links of a mounted ConfigMap that were swapped, on every file system.
 */
import { statSync, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'

/** How often is looked, in milliseconds. */
const INTERVAL_MS = 500

/**
 * Begins to watch; what the files are is noted before this returns, so that whoever reads them next misses no change.
 * @param files the files; asked for again with every change, because a changed configuration may name others
 * @param onChange called when something has changed and then stayed as it is from one look to the next, so that a file which
 * is being written is not read half
 * @returns what ends it
 */
export function watchFiles(files: () => readonly string[], onChange: () => void): () => void {
  let watched = files()
  const statesNow = (): string => JSON.stringify(watched.map((file) => stateOf(file, () => statSync(file))))
  let known = statesNow()
  let seen: string | null = null
  let timer: NodeJS.Timeout
  let stopped = false
  const look = async (): Promise<void> => {
    const stats = await Promise.all(watched.map(async (file) => [file, await stat(file).catch(() => null)] as const))
    if (stopped) return
    const now = JSON.stringify(stats.map(([file, found]) => stateOf(file, () => found)))
    if (now !== known && now === seen) {
      watched = files()
      known = statesNow()
      onChange()
    }
    seen = now
    timer = setTimeout(() => void look(), INTERVAL_MS)
  }
  timer = setTimeout(() => void look(), INTERVAL_MS)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

/** @param find throws, or finds null, where there is no file */
function stateOf(file: string, find: () => Stats | null): readonly unknown[] {
  try {
    const found = find()
    return found === null ? [file] : [file, found.dev, found.ino, found.size, found.mtimeMs, found.ctimeMs]
  } catch {
    return [file]
  }
}
