/** A store in a process of its own: under other limits and another user, and with files that the test may open itself. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import type { Store } from '../../src/store/port/store.ts'

const WORKER = fileURLToPath(new URL('store-worker.ts', import.meta.url))

/** The methods whose arguments and answers are data. */
type Method = Exclude<keyof Store, 'onInvalidation'>

/** A call, as it is sent. */
export interface Call {
  readonly method: Method
  readonly args: readonly unknown[]
}

/** What became of it. */
export type Answer = { readonly value: unknown } | { readonly name: string; readonly message: string }

/** The store. */
export interface StoreProcess {
  /** Its process id. */
  readonly pid: number
  /** Calls a method; what it throws is thrown here. */
  call<M extends Method>(method: M, ...args: Parameters<Store[M]>): ReturnType<Store[M]>
}

/**
 * Opens a store in a process that ends with the test.
 * @param user the id of the user whose process it is, by default that of this one
 * @throws what opening it throws
 */
export async function openStoreProcess(t: Test, file: string, user?: number): Promise<StoreProcess> {
  const worker = fork(WORKER, [file], { execArgv: [], ...(user === undefined ? {} : { uid: user, gid: user }) })
  t.teardown(async () => {
    if (worker.exitCode !== null || worker.signalCode !== null) return
    const gone = once(worker, 'exit')
    worker.kill()
    await gone
  })
  const gone = once(worker, 'exit').then(() => {
    throw new Error('the process of the store ended')
  })
  gone.catch(() => {})
  const next = async (): Promise<unknown> => {
    const [answer] = (await Promise.race([once(worker, 'message'), gone])) as [Answer]
    if ('value' in answer) return answer.value
    throw answer.name === 'StoreUnavailable' ? new StoreUnavailable(answer.message) : new Error(answer.message)
  }
  await next()
  return {
    pid: worker.pid ?? 0,
    call: async <M extends Method>(method: M, ...args: Parameters<Store[M]>) => {
      const answer = next()
      worker.send({ method, args })
      return answer
    },
  } as StoreProcess
}
