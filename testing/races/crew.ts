/** Workers on one store, in processes of their own. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { StoreAddress } from './places.ts'
import type { Order } from './store-worker.ts'

const PROGRAM = fileURLToPath(new URL('store-worker.ts', import.meta.url))

/** A worker that has opened the store. */
export interface Worker {
  /** Has it work, until it has done all its calls, is told to stop, or is killed. */
  readonly work: (order: Order) => Promise<void>
  /** Has it stop; `work` is over soon. */
  readonly stop: () => void
  /** kill -9; kept when the process is gone. */
  readonly kill: () => Promise<void>
}

/**
 * Starts a worker.
 * @throws Error if it ends before it has opened the store
 */
export async function startWorker(address: StoreAddress): Promise<Worker> {
  const child = fork(PROGRAM, [JSON.stringify(address)], { execArgv: [] })
  let killed = false
  const exit = once(child, 'exit').then(([code]) => {
    if (!killed) throw new Error(`a worker ended by itself with ${String(code)}`)
  })
  exit.catch(() => {})
  await Promise.race([said(child, 'open'), exit])
  return {
    async work(order) {
      const done = said(child, 'done')
      child.send(order)
      await Promise.race([done, exit])
    },
    stop: () => {
      if (!killed) child.send('stop')
    },
    async kill() {
      killed = true
      child.kill('SIGKILL')
      await exit
    },
  }
}

function said(child: ChildProcess, word: string): Promise<void> {
  return new Promise((resolve) => {
    const hear = (message: unknown): void => {
      if (message !== word) return
      child.off('message', hear)
      resolve()
    }
    child.on('message', hear)
  })
}
