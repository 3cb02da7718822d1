/** The primary's handle of one worker process. */
import cluster from 'node:cluster'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Figures } from '../../observe/metrics.ts'
import { connectRpc, Gone, type Answered, type Asked } from './rpc.ts'
import type { Beginning, Conditions, PrimaryHandlers, WorkerHandlers } from './messages.ts'
import type { Lent } from './limiter.ts'

export interface WorkerHandle {
  /** The number of the worker, from 1. */
  readonly number: number
  readonly listening: Promise<string>
  readonly gone: Promise<Ended>
  readonly conditions: () => Conditions
  readonly figures: () => Figures
  /** Null if the worker is gone, or ends meanwhile. Rejects with its error. */
  ask<Name extends keyof WorkerHandlers>(
    name: Name,
    asked: Asked<WorkerHandlers[Name]>,
  ): Promise<{ readonly answer: Answered<WorkerHandlers[Name]> } | null>
  look(): Promise<Figures | null>
  kill(): void
  leave(): void
}

export interface Ended {
  readonly code: number | null
  readonly signal: string | null
}

export interface WorkerHandleParts {
  readonly number: number
  readonly beginning: () => Beginning
  readonly lent: Lent
  readonly onAudit: PrimaryHandlers['audit']
  /** Milliseconds that it may take to answer, by default 30 s: then it is killed, because its state is unknown. */
  readonly longestAnswer: number | undefined
}

const PROGRAM = fileURLToPath(new URL(`./program${extname(import.meta.url)}`, import.meta.url))

const LONGEST_START_MS = 60_000
const LONGEST_ANSWER_MS = 30_000

export function startWorker(parts: WorkerHandleParts): WorkerHandle {
  const { number, beginning, lent, onAudit, longestAnswer = LONGEST_ANSWER_MS } = parts
  cluster.schedulingPolicy = cluster.SCHED_RR
  cluster.setupPrimary({ exec: PROGRAM, args: [], serialization: 'advanced', stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const child = cluster.fork()
  const kill = (): void => void child.process.kill('SIGKILL')
  const listening = Promise.withResolvers<string>()
  const late = setTimeout(kill, LONGEST_START_MS)
  let conditions: Conditions = { pending: new Map(), notes: new Map() }
  let figures: Figures = []
  const handlers: PrimaryHandlers = {
    begin: beginning,
    listening: (url) => listening.resolve(url),
    failed: (why) => listening.reject(new Error(why)),
    conditions: (now) => void (conditions = now),
    take: lent.take,
    open: lent.open,
    close: lent.close,
    reserve: lent.reserve,
    settle: lent.settle,
    audit: onAudit,
  }
  const calls = connectRpc<WorkerHandlers>(
    {
      send: (message, failed) => void child.send(message as object, failed),
      onMessage: (listener) => void child.on('message', listener),
    },
    handlers,
  )
  // The end of the process reports the same as an error of its channel.
  child.on('error', () => {})
  const gone = new Promise<Ended>((resolve) => {
    child.once('exit', (code: number | null, signal: string | null) => {
      clearTimeout(late)
      calls.end()
      lent.takeBack()
      listening.reject(new Error(`worker ${number} ended at its start (${signal ?? `exit code ${code}`})`))
      resolve({ code, signal })
    })
  })
  listening.promise.then(
    () => clearTimeout(late),
    () => {},
  )

  const ask: WorkerHandle['ask'] = async (name, asked) => {
    // A stop takes as long as its streams: its caller handles a worker that does not end.
    const hung = name === 'stop' ? undefined : setTimeout(kill, longestAnswer)
    try {
      return { answer: await calls.call(name, asked) }
    } catch (error) {
      if (error instanceof Gone) return null
      throw error
    } finally {
      clearTimeout(hung)
    }
  }
  return {
    number,
    listening: listening.promise,
    gone,
    conditions: () => conditions,
    figures: () => figures,
    ask,
    async look() {
      const answered = await ask('figures', null)
      if (answered !== null) figures = answered.answer
      return answered?.answer ?? null
    },
    kill,
    leave() {
      if (child.isConnected()) child.disconnect()
    },
  }
}
