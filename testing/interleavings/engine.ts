/** What histories need of a store: it is made for each of them, and whatever it does can wait for the schedule. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Store } from '../../src/store/port/store.ts'
import type { Scheduler } from './scheduler.ts'

/** A thread as the table has it. */
export interface Row {
  readonly owner: string
  readonly deleted: boolean
  readonly provisional: boolean
  readonly pending: number
  readonly gone: boolean
  readonly deleting: boolean
}

/** The tables of one history. */
export interface Tables {
  /** Opens the store for a gateway, in whose name it is called. */
  open(): Promise<Store>
  rows(): Promise<readonly Row[]>
  /** The users to whom something was granted. */
  grantees(): Promise<readonly string[]>
  /** Waits until nothing happens any more that nobody has to wait for. */
  quiet(): Promise<void>
  /** A gateway is gone: what it has begun and not committed is undone. */
  crash(gateway: string, store: Store): Promise<void>
  close(stores: readonly Store[]): Promise<void>
}

/** A kind of store. */
export interface Engine {
  /** @param isParking false while a gateway starts: nothing waits for the schedule then */
  begin(scheduler: Scheduler, isParking: () => boolean): Promise<Tables>
  /** Undoes what it has made. */
  remove(): Promise<void>
}

/** What is done for a request or an operator, by the name of what was asked of the store; nothing else waits for the schedule. */
const calls = new AsyncLocalStorage<string>()

/** The name of the call in which something is done; undefined outside of one. */
export function callNow(): string | undefined {
  return calls.getStore()
}

const DIRECT: ReadonlySet<string> = new Set(['onInvalidation', 'close', 'secret', 'fault', 'isEmpty', 'unowned'])

/**
 * A store of which each step that a call takes waits for the schedule.
 * @param told gets what a call was answered
 */
export function watched(store: Store, told: (name: string, answer: string) => void): Store {
  return new Proxy(store, {
    get: (target, property) => {
      const name = String(property)
      const method = Reflect.get(target, property) as (...args: unknown[]) => unknown
      if (DIRECT.has(name)) return (...args: unknown[]) => method.apply(target, args)
      return (...args: unknown[]) => {
        const answer = calls.run(name, () => method.apply(target, args))
        if (!(answer instanceof Promise)) return answer
        return answer.then((result: unknown) => {
          told(name, plain(result))
          return result
        })
      }
    },
  })
}

/** An answer as far as decisions go by it: identifiers that are made at random say nothing. */
export function plain(answer: unknown): string {
  const text = answer === undefined ? 'nothing' : JSON.stringify(answer instanceof Map ? [...answer] : answer)
  return text.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'id')
}
