/** The worker pool: starts workers on one port, restarts those that end, calls and stops all of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../observe/log.ts'
import type { Figures } from '../../observe/metrics.ts'
import type { Beginning, Conditions, PrimaryHandlers, WorkerHandlers } from './messages.ts'
import type { Lent } from './limiter.ts'
import { startWorker, type WorkerHandle } from './handle.ts'
import type { Answered, Asked } from './rpc.ts'

export interface WorkerPoolParts {
  readonly size: number
  /** The configured port; 0 for any free port. */
  readonly port: number
  readonly beginning: () => Pick<Beginning, 'prepared' | 'files' | 'number' | 'logForm'>
  readonly lend: () => Lent
  readonly onAudit: PrimaryHandlers['audit']
  readonly onGone: (figures: Figures) => void
  readonly onChange: (serving: number) => void
  readonly log: Logger
  /** As WorkerHandleParts. */
  readonly longestAnswer?: number
  /** Milliseconds between two checks that a worker still answers, by default 10 s. */
  readonly lookEvery?: number
}

export interface WorkerPool {
  /**
   * @returns the address that the workers listen on
   * @throws Error with the reason of the first worker that can't start
   */
  start(): Promise<string>
  /** Omits workers that are gone, or end meanwhile. Rejects, when all have answered, if one failed. */
  ask<Name extends keyof WorkerHandlers>(
    name: Name,
    asked: Asked<WorkerHandlers[Name]>,
  ): Promise<readonly Answered<WorkerHandlers[Name]>[]>
  /** As `ask`, but ends a worker that fails: its state would differ from that of the others. */
  order<Name extends keyof WorkerHandlers>(name: Name, asked: Asked<WorkerHandlers[Name]>): Promise<void>
  /** Runs something while no worker is being started. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
  figures(): Promise<readonly Figures[]>
  /** As Gateway.answers. */
  answers(): Promise<boolean>
  conditions(): readonly Conditions[]
  /** Stops the workers as RunningGateway.stop. Kills a worker that has not ended some time after the deadline. */
  stop(deadline: number): Promise<void>
  end(): Promise<void>
}

/** Milliseconds for a worker to close after the deadline, and for a stopped worker to end. */
const LONGEST_CLOSE_MS = 3000
const LONGEST_END_MS = 2000
/** The pause before a restart of a worker; it doubles after each worker that lived only for a short time. */
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000
const LONG_LIFE_MS = 60_000
const LOOK_EVERY_MS = 10_000

export function makeWorkerPool(parts: WorkerPoolParts): WorkerPool {
  const { log, size, lookEvery = LOOK_EVERY_MS } = parts
  const handles = new Set<WorkerHandle>()
  const serving = new Set<WorkerHandle>()
  const retired = new AbortController()
  const isRetired = (): boolean => retired.signal.aborted
  let bound: string | null = null
  let { port } = parts
  let turn: Promise<unknown> = Promise.resolve()

  const exclusively: WorkerPool['exclusively'] = (work) => {
    const mine = turn.then(work)
    turn = mine.catch(() => {})
    return mine
  }

  const launch = async (number: number): Promise<WorkerHandle> => {
    // With no listener left the port is free again: asking for any free port would give another port.
    if (bound !== null && serving.size === 0) port = Number(new URL(bound).port)
    const handle = startWorker({
      number,
      beginning: () => ({ ...parts.beginning(), port, worker: number, workers: size }),
      lent: parts.lend(),
      onAudit: parts.onAudit,
      longestAnswer: parts.longestAnswer,
    })
    handles.add(handle)
    void handle.gone.then(() => {
      handles.delete(handle)
      serving.delete(handle)
      parts.onGone(handle.figures())
      parts.onChange(serving.size)
    })
    try {
      const url = await handle.listening
      // The last other worker ended while this one started: callers would not find it on this port.
      if (bound !== null && bound !== url) throw new Error(`worker ${number} listens elsewhere: ${url}`)
      bound = url
    } catch (error) {
      handle.kill()
      await handle.gone
      throw error
    }
    serving.add(handle)
    parts.onChange(serving.size)
    return handle
  }

  const replace = async (number: number, wait: () => Promise<void>): Promise<WorkerHandle | null> => {
    while (!isRetired()) {
      await wait()
      try {
        const handle = await exclusively(async () => (isRetired() ? null : launch(number)))
        if (handle !== null) log.info({ worker: number }, 'the worker is serving again')
        return handle
      } catch (error) {
        const detail = error instanceof Error ? error.message : String(error)
        log.error({ worker: number, detail }, 'a worker did not start: the gateway retries')
      }
    }
    return null
  }

  /** Kills a worker that does not answer. An orchestrator's probes reach only the primary, and notice nothing. */
  const attend = async (handle: WorkerHandle): Promise<void> => {
    const gone = new AbortController()
    void handle.gone.then(() => gone.abort())
    const signal = AbortSignal.any([gone.signal, retired.signal])
    const goesOn = async (): Promise<boolean> => {
      await sleep(lookEvery, undefined, { signal, ref: false }).catch(() => {})
      return !signal.aborted
    }
    while (await goesOn()) await handle.look().catch(() => null)
  }

  const keep = async (first: WorkerHandle): Promise<void> => {
    const { number } = first
    let pause = FIRST_PAUSE_MS
    const wait = async (): Promise<void> => {
      await sleep(pause, undefined, { signal: retired.signal, ref: false }).catch(() => {})
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
    }
    for (let handle: WorkerHandle | null = first; handle !== null; handle = await replace(number, wait)) {
      const startedAt = performance.now()
      void attend(handle)
      const { code, signal } = await handle.gone
      if (isRetired()) return
      log.error({ worker: number, code, signal }, 'a worker exited: its streams are cut, and the gateway restarts it')
      if (performance.now() - startedAt > LONG_LIFE_MS) pause = FIRST_PAUSE_MS
    }
  }

  const askAll = async <One>(one: (handle: WorkerHandle) => Promise<One>): Promise<readonly One[]> => {
    const results = await Promise.allSettled([...handles].map(one))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  }

  return {
    async start() {
      const numbers = Array.from({ length: size }, (_, at) => at + 1)
      const started = await exclusively(() => Promise.all(numbers.map(launch)))
      for (const handle of started) void keep(handle)
      if (bound === null) throw new Error('no worker listens')
      return bound
    },
    async ask(name, asked) {
      const answers = await askAll((handle) => handle.ask(name, asked))
      return answers.flatMap((one) => (one === null ? [] : [one.answer]))
    },
    async order(name, asked) {
      await askAll((handle) =>
        handle.ask(name, asked).catch(async (error: unknown) => {
          log.error(
            { worker: handle.number, err: error },
            'a worker failed to apply a change that the others applied: the gateway ends it',
          )
          handle.kill()
          await handle.gone
        }),
      )
    },
    exclusively,
    async figures() {
      const looked = await Promise.all([...serving].map(async (handle) => ({ handle, figures: await handle.look() })))
      // For workers that ended meanwhile, the last known metrics were kept.
      return looked.flatMap(({ handle, figures }) => (figures === null || !handles.has(handle) ? [] : [figures]))
    },
    async answers() {
      // An answer that is an error is an answer, too.
      await Promise.allSettled([...serving].map((handle) => handle.look()))
      return serving.size > 0
    },
    conditions: () => [...serving].map(({ conditions }) => conditions()),
    async stop(deadline) {
      retired.abort()
      const stop = async (handle: WorkerHandle): Promise<void> => {
        const kill = (error?: unknown): void => {
          log.error({ worker: handle.number, err: error }, 'a worker did not exit in time: the gateway kills it')
          handle.kill()
        }
        const late = setTimeout(kill, deadline + LONGEST_CLOSE_MS)
        await handle.ask('stop', deadline).catch(kill)
        clearTimeout(late)
      }
      await Promise.all([...handles].map(stop))
    },
    async end() {
      // A worker that was not asked to stop has nothing to finish.
      const retry = isRetired() ? LONGEST_END_MS : 0
      retired.abort()
      await Promise.all(
        [...handles].map(async (handle) => {
          const late = setTimeout(() => handle.kill(), retry)
          handle.leave()
          await handle.gone
          clearTimeout(late)
        }),
      )
    },
  }
}
