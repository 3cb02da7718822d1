/** Watches configuration files by target, time and size: this also notices renames and swapped links of a ConfigMap. */
import { stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { ABSENT, stateIn, type FileStates } from '../document/sources.ts'

const INTERVAL_MS = 500

/** Calls `onChange` when files changed and then stayed the same for one interval. `known`: the states of the last reading. */
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
