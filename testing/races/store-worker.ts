/**
 * A process of its own that works on a store as a seed has it, several calls at once, and writes each of them down before it
 * is made and after its answer. It says `open` when it can begin, and `done` when it was told to stop, or has done enough.
 */
import { openSync, writeSync } from 'node:fs'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/store/port/store.ts'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import { ask } from './asking.ts'
import { ALL_THREADS, clock, type Line } from './history.ts'
import { openAt, type StoreAddress } from './places.ts'
import { stepsOf, type Mix, type Step } from './plans.ts'
import { isLook, type Answer, type Call } from './thread-calls.ts'

/** What a worker is to do. */
export interface Order {
  /** Where it writes its calls down. */
  readonly file: string
  readonly mix: Mix
  readonly seed: number
  readonly threads: readonly string[]
  readonly users: readonly string[]
  /** How many calls it makes at once. */
  readonly lanes: number
  /** How many calls it makes at most. */
  readonly calls: number
}

/** A run that was begun and not ended. */
interface Begun {
  readonly thread: string
  readonly user: string
  readonly registration: number
}

/** After a failure: a store that is down is not asked as fast as it says so. */
const PAUSE_MS = 20

const store = await openAt(JSON.parse(process.argv[2] ?? '') as StoreAddress)
let stopped = false
process.on('disconnect', () => process.exit())
process.on('message', (told: Order | 'stop') => {
  if (told === 'stop') stopped = true
  else void work(store, told)
})
process.send?.('open')

async function work(store: Store, order: Order): Promise<void> {
  const file = openSync(order.file, 'a')
  // At once and without a buffer of this process: what was written is there after a kill.
  const write = (line: Line): void => void writeSync(file, `${JSON.stringify(line)}\n`)
  const steps = stepsOf(order.mix, order.seed)
  let count = 0
  stopped = false
  /** Of every call that failed nobody knows whether it was done: until the store answers nothing but looks is asked of it. */
  const answering = async (thread: string): Promise<void> => {
    while (!stopped) {
      await sleep(PAUSE_MS)
      const answers = await ask(store, thread, { op: 'thread' }).then(
        () => true,
        () => false,
      )
      if (answers) return
    }
  }
  const lane = async (): Promise<void> => {
    const begun: Begun[] = []
    for (;;) {
      // A store may answer without waiting for anything: then nobody could tell this process to stop.
      await turn()
      if (stopped || count >= order.calls) return
      const at = (count += 1)
      const { thread, call } = callOf(steps.next().value, order, begun)
      write({ at, thread, call, from: clock() })
      try {
        const answer = await ask(store, thread, call)
        write({ at, to: clock(), answer })
        if (call.op === 'claim') keep(begun, thread, call.user, answer)
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        write({ at, failed: error.message, look: isLook(call) })
        await answering(thread)
      }
    }
  }
  await Promise.all(Array.from({ length: order.lanes }, lane))
  process.send?.('done')
}

function callOf(step: Step, { threads, users }: Order, begun: Begun[]): { readonly thread: string; readonly call: Call } {
  const thread = threads[step.thread % threads.length] ?? ''
  const user = users[step.user % users.length] ?? ''
  const other = users[step.other % users.length] ?? ''
  const grantee = { kind: step.flag ? 'user' : 'group', id: other } as const
  const owner = step.thread % 2 === 0 ? user : null
  switch (step.kind) {
    case 'settle':
    case 'release': {
      const [run] = begun.splice(step.other % Math.max(1, begun.length), 1)
      if (run === undefined) return { thread, call: { op: 'claim', user, guest: false } }
      const ended = step.right === 'write' ? 'confirmed' : 'stays'
      const outcome = step.kind === 'settle' ? ended : 'not-started'
      return { thread: run.thread, call: { op: 'settle', user: run.user, registration: run.registration, outcome } }
    }
    case 'claim':
    case 'guest':
      return { thread, call: { op: 'claim', user, guest: step.kind === 'guest' } }
    case 'bury':
    case 'assign':
      return { thread, call: { op: step.kind, user } }
    case 'rename':
      return { thread, call: { op: 'rename', user, name: `name ${step.other}` } }
    case 'archive':
      return { thread, call: { op: 'archive', user, archived: step.flag } }
    case 'grant':
      return { thread, call: { op: 'grant', owner, grant: { ...grantee, right: step.right } } }
    case 'ungrant':
      return { thread, call: { op: 'ungrant', owner, grantee } }
    case 'transfer':
      return { thread: ALL_THREADS, call: { op: 'transfer', from: user, to: other } }
    case 'erase':
      return { thread: ALL_THREADS, call: { op: 'erase', user } }
    case 'prune':
      return { thread: ALL_THREADS, call: { op: 'prune' } }
    case 'withhold':
    case 'thread':
      return { thread, call: { op: step.kind } }
    case 'accessTo':
    case 'accessToSeveral':
      return { thread, call: { op: step.kind, reader: { userId: user, groups: [other] } } }
  }
}

function keep(begun: Begun[], thread: string, user: string, answer: Answer): void {
  if (typeof answer !== 'object' || answer === null || !('registration' in answer) || answer.registration === null) return
  begun.push({ thread, user, registration: answer.registration })
}
