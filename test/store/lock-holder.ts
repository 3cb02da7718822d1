/** Another process that holds the write lock of a database file. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

const WORKER = fileURLToPath(new URL('lock-worker.ts', import.meta.url))

/**
 * Takes the write lock in a process of its own.
 * @returns lets it go
 */
export async function holdLock(t: Test, file: string): Promise<() => Promise<void>> {
  const worker = fork(WORKER, [file], { execArgv: [] })
  t.teardown(() => worker.kill())
  await said(worker, 'locked')
  return async () => {
    worker.send('release')
    await said(worker, 'released')
  }
}

async function said(worker: ChildProcess, word: string): Promise<void> {
  const gone = once(worker, 'disconnect').then(() => ['nothing'])
  const [told] = (await Promise.race([once(worker, 'message'), gone])) as unknown[]
  if (told !== word) throw new Error(`the other process said ${String(told)} instead of ${word}`)
}
