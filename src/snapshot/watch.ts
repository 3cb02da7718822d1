/**
 * Watches the files of a configuration. It compares the target of each path by time and size. So it notices a file that was
 * written over or renamed into place, and swapped links of a mounted ConfigMap, on every file system.
 */
import { statSync, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'

const INTERVAL_MS = 500

/**
 * The state of the files is recorded before this returns, so that a caller who reads them next misses no change.
 * @param files asked again at every change, because a changed configuration may name other files
 * @param onChange called when something has changed and then stayed the same for one interval, so that a file is not read
 *   while it is being written
 * @returns a function that ends it
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

/** @param find throws, or returns null, where there is no file */
function stateOf(file: string, find: () => Stats | null): readonly unknown[] {
  try {
    const found = find()
    return found === null ? [file] : [file, found.dev, found.ino, found.size, found.mtimeMs, found.ctimeMs]
  } catch {
    return [file]
  }
}
