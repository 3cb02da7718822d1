/** The workers: started on one port, asked together, started again when they end, ended together. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../observe/log.ts'
import type { Figures } from '../../observe/metrics.ts'
import type { Beginning, Conditions, PrimaryHandlers, WorkerHandlers } from './messages.ts'
import type { Lent } from './limiter.ts'
import { startWorker, type WorkerHandle } from './handle.ts'

export interface WorkerPoolParts {
  readonly size: number
  /** The configured port; 0 for any free one. */
  readonly port: number
  /** The active configuration, for a worker that starts. */
  readonly beginning: () => Pick<Beginning, 'prepared' | 'number'>
  /** What a new worker borrows of the limits. */
  readonly lend: () => Lent
  readonly onAudit: PrimaryHandlers['audit']
  /** Given the last known figures of a worker that is gone. */
  readonly onGone: (figures: Figures) => void
  /** Told whenever a worker begins to serve or ends: how many serve now. */
  readonly onChange: (serving: number) => void
  readonly log: Logger
  /** As MemberParts. */
  readonly longestAnswer?: number
  /** How often each is asked whether it still answers, in milliseconds, by default 10 s. */
  readonly lookEvery?: number
}

export interface WorkerPool {
  /**
   * Starts all of them.
   * @returns the address that they listen on
   * @throws Error with the reason of the first that can't start
   */
  start(): Promise<string>
  /** Asks every worker; those that are gone, or go meanwhile, are left out. Rejects, when all have answered, if one failed. */
  ask<Name extends keyof WorkerHandlers>(name: Name, asked: Parameters<WorkerHandlers[Name]>[0]): Promise<void>
  /** The same; who can't do it is ended, because it would go by something else than the others. */
  order<Name extends keyof WorkerHandlers>(name: Name, asked: Parameters<WorkerHandlers[Name]>[0]): Promise<void>
  /** Does something while no worker is being started. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
  figures(): Promise<readonly Figures[]>
  conditions(): readonly Conditions[]
  /**
   * Starts none any more, and asks those that are there to stop, as RunningGateway.stop. Whoever has not come to its end well
   * after the deadline is killed.
   */
  stop(deadline: number): Promise<void>
  /** Ends what is left of them. */
  end(): Promise<void>
}

/** Time for a worker to close up after the deadline, and for one that has stopped to come to its end. */
const LONGEST_CLOSE_MS = 3000
const LONGEST_END_MS = 2000
/** The pause before a worker is started again; twice as long after each that did not live for long. */
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000
const LONG_LIFE_MS = 60_000
const LOOK_EVERY_MS = 10_000

/** Creates the pool without starting a worker. */
export function makeWorkerPool(parts: WorkerPoolParts): WorkerPool {
  const { log, size, lookEvery = LOOK_EVERY_MS } = parts
  /** Those that live, and of them those that serve. */
  const members = new Set<WorkerHandle>()
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

  /** Starts one; resolves when it serves. @throws Error with why it can't */
  const launch = async (number: number): Promise<WorkerHandle> => {
    // The port is free again when nobody listens: any free one would be another one then.
    if (bound !== null && serving.size === 0) port = Number(new URL(bound).port)
    const member = startWorker({
      number,
      beginning: () => ({ ...parts.beginning(), port, worker: number, workers: size }),
      lent: parts.lend(),
      onAudit: parts.onAudit,
      longestAnswer: parts.longestAnswer,
    })
    members.add(member)
    void member.gone.then(() => {
      members.delete(member)
      serving.delete(member)
      parts.onGone(member.figures())
      parts.onChange(serving.size)
    })
    try {
      const url = await member.listening
      // The last of the others went while this one began: nobody would find it there.
      if (bound !== null && bound !== url) throw new Error(`worker ${number} listens elsewhere: ${url}`)
      bound = url
    } catch (error) {
      member.kill()
      await member.gone
      throw error
    }
    serving.add(member)
    parts.onChange(serving.size)
    return member
  }

  /** Restarts a worker until it runs; null once the pool is retired. */
  const replace = async (number: number, wait: () => Promise<void>): Promise<WorkerHandle | null> => {
    while (!isRetired()) {
      await wait()
      try {
        const member = await exclusively(async () => (isRetired() ? null : launch(number)))
        if (member !== null) log.info({ worker: number }, 'the worker serves again')
        return member
      } catch (error) {
        const detail = error instanceof Error ? error.message : String(error)
        log.error({ worker: number, detail }, 'a worker could not be started: it is tried again')
      }
    }
    return null
  }

  /** Asks one now and then: who does not answer is killed. An orchestrator's probes ask the primary alone, and notice nothing. */
  const attend = async (member: WorkerHandle): Promise<void> => {
    const gone = new AbortController()
    void member.gone.then(() => gone.abort())
    const signal = AbortSignal.any([gone.signal, retired.signal])
    const goesOn = async (): Promise<boolean> => {
      await sleep(lookEvery, undefined, { signal, ref: false }).catch(() => {})
      return !signal.aborted
    }
    while (await goesOn()) await member.look().catch(() => null)
  }

  /** Sees to it that there is always one of this number. */
  const keep = async (first: WorkerHandle): Promise<void> => {
    const { number } = first
    let pause = FIRST_PAUSE_MS
    const wait = async (): Promise<void> => {
      await sleep(pause, undefined, { signal: retired.signal, ref: false }).catch(() => {})
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
    }
    for (let member: WorkerHandle | null = first; member !== null; member = await replace(number, wait)) {
      const startedAt = performance.now()
      void attend(member)
      const { code, signal } = await member.gone
      if (isRetired()) return
      log.error({ worker: number, code, signal }, 'a worker ended: its streams are cut, and it is started again')
      if (performance.now() - startedAt > LONG_LIFE_MS) pause = FIRST_PAUSE_MS
    }
  }

  /** Asks all of them, to the end, also where one fails: nothing is left half asked. */
  const askAll = async (one: (member: WorkerHandle) => Promise<unknown>): Promise<void> => {
    const results = await Promise.allSettled([...members].map(one))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  return {
    async start() {
      const numbers = Array.from({ length: size }, (_, at) => at + 1)
      const started = await exclusively(() => Promise.all(numbers.map(launch)))
      for (const member of started) void keep(member)
      if (bound === null) throw new Error('no worker listens')
      return bound
    },
    ask: (name, asked) => askAll((member) => member.ask(name, asked)),
    order: (name, asked) =>
      askAll((member) =>
        member.ask(name, asked).catch(async (error: unknown) => {
          log.error({ worker: member.number, err: error }, 'a worker could not do what all do: it is ended')
          member.kill()
          await member.gone
        }),
      ),
    exclusively,
    async figures() {
      const looked = await Promise.all([...serving].map(async (member) => ({ member, figures: await member.look() })))
      // Of those that went meanwhile what they had told last was kept.
      return looked.flatMap(({ member, figures }) => (figures === null || !members.has(member) ? [] : [figures]))
    },
    conditions: () => [...serving].map(({ conditions }) => conditions()),
    async stop(deadline) {
      retired.abort()
      const stop = async (member: WorkerHandle): Promise<void> => {
        const kill = (error?: unknown): void => {
          log.error({ worker: member.number, err: error }, 'a worker did not come to its end: it is killed')
          member.kill()
        }
        const late = setTimeout(kill, deadline + LONGEST_CLOSE_MS)
        await member.ask('stop', deadline).catch(kill)
        clearTimeout(late)
      }
      await Promise.all([...members].map(stop))
    },
    async end() {
      // Who was not asked to stop has nothing to bring to an end.
      const retry = isRetired() ? LONGEST_END_MS : 0
      retired.abort()
      await Promise.all(
        [...members].map(async (member) => {
          const late = setTimeout(() => member.kill(), retry)
          member.leave()
          await member.gone
          clearTimeout(late)
        }),
      )
    },
  }
}
