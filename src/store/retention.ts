/** Deletes tombstones by age once the upstream has confirmed that it holds nothing of the thread. Its id may then be claimed. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../observe/log.ts'
import type { PruneStore } from './port/administration.ts'

export interface RetentionParts {
  readonly store: Pick<PruneStore, 'prune'>
  /** Milliseconds that a tombstone is kept; a reload may change it. */
  readonly deleted: () => number | 'off'
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly log: Logger
  /** Milliseconds between two passes. */
  readonly interval?: number
}

const HOUR = 3_600_000
/** Rows per step: requests are served between steps. */
const STEP = 500

/** The first pass is soon after the start. Returns a function that stops it. */
export function keepRetention({ store, deleted, clock, log, interval = HOUR }: RetentionParts): () => void {
  const ended = new AbortController()
  const once = async (): Promise<void> => {
    const age = deleted()
    if (age === 'off') return
    let pruned = 0
    for (;;) {
      const step = await store.prune({ deletedBefore: clock() - age }, STEP)
      pruned += step
      if (step === 0 || ended.signal.aborted) break
      await sleep(10, undefined, { signal: ended.signal })
    }
    if (pruned > 0)
      log.info({ threads: pruned }, 'records of deleted threads older than ownership.retention.deleted were removed')
  }
  const run = async (): Promise<void> => {
    await once().catch((error: unknown) => {
      if (!ended.signal.aborted) log.error({ err: error }, 'records of deleted threads could not be removed: the gateway retries')
    })
    if (!ended.signal.aborted) timer = setTimeout(() => void run(), interval).unref()
  }
  let timer = setTimeout(() => void run(), Math.min(interval, 1000)).unref()
  return () => {
    ended.abort()
    clearTimeout(timer)
  }
}
