/**
 * Watches the files of a configuration. It compares the target of each path by time and size. So it notices a file that was
 * written over or renamed into place, and swapped links of a mounted ConfigMap, on every file system.
 */
import { stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { ABSENT, stateIn, type FileStates } from '../document/sources.ts'

const INTERVAL_MS = 500

/**
 * @param known the states of the files when they were last read; reading them again changes the result
 * @param onChange reads the files again. It is called when something has changed and then stayed the same for one interval, so that
 *   a file is not read while it is being written
 * @returns a function that ends it
 */
export function watchFiles(known: () => FileStates, onChange: () => Promise<unknown>): () => void {
  const over = new AbortController()
  const { signal } = over
  const watch = async (): Promise<void> => {
    let seen: string | null = null
    for (;;) {
      await sleep(INTERVAL_MS, undefined, { signal })
      const states = known()
      const now = JSON.stringify(await Promise.all([...states.keys()].map(stateNow)))
      if (signal.aborted) return
      if (now === seen && now !== JSON.stringify([...states.values()])) await onChange()
      seen = now
    }
  }
  watch().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  return () => over.abort()
}

async function stateNow(file: string): Promise<string> {
  return stat(file, { bigint: true }).then(stateIn, () => ABSENT)
}
