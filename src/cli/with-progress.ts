/** Long work on the store: with progress, retries for transient failures, and a stop by signal after the current step. */
import { inSteps, makeRetry, COMMAND_RETRY, type Retry, type Steps } from '../tools/import-export/retry.ts'
import { EXIT } from './command.ts'
import { complain, type Terminal } from './terminal.ts'
import { SingleBar } from 'cli-progress'

export interface LongWork {
  readonly progress: Progress
  readonly retry: Retry
  /** Aborted by the first SIGINT or SIGTERM. The second one ends the process at once. */
  readonly signal: AbortSignal
  /**
   * @param step processes some rows, and returns how many; 0 when none are left
   * @param before how many rows were processed before
   */
  readonly steps: (step: () => Promise<number>, before?: number) => Promise<Steps>
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

export async function withProgress<T>(
  terminal: Terminal,
  options: { readonly quiet: boolean },
  work: (long: LongWork) => Promise<T>,
): Promise<T> {
  const progress = makeProgress(terminal.stderr, options)
  const interruption = new AbortController()
  const { signal } = interruption
  const onSignal = (): void => {
    if (signal.aborted) process.exit(EXIT.failure)
    interruption.abort()
  }
  for (const name of SIGNALS) process.on(name, onSignal)
  const onTrouble = (error: Error): void => complain(terminal, `${error.message}; retrying for ${COMMAND_RETRY.limit / 1000} s`)
  try {
    const retry = makeRetry({ ...COMMAND_RETRY, signal, onTrouble })
    const steps: LongWork['steps'] = (step, before = 0) => inSteps(step, retry, signal, (done) => progress.at(before + done))
    return await work({ progress, signal, retry, steps })
  } finally {
    progress.end()
    for (const name of SIGNALS) process.off(name, onSignal)
  }
}

export interface Progress {
  /** @param total the number of items, or null if it is unknown */
  begin(what: string, total: number | null): void
  at(done: number): void
  /** Removes the bar, so that the next output has its own line. */
  end(): void
}

type ProgressStream = NodeJS.WritableStream & { readonly isTTY?: boolean }

/** The time between lines where there is no terminal, in milliseconds. */
const INTERVAL = 10_000

const BAR = '{what} [{bar}] {percentage}% {value}/{total}, {eta_formatted} left'
const COUNT = '{what} {value}'

interface ProgressOptions {
  readonly quiet?: boolean
  /** Milliseconds, from any start. */
  readonly clock?: () => number
}

export function makeProgress(
  stream: ProgressStream,
  { quiet = false, clock = performance.now.bind(performance) }: ProgressOptions = {},
): Progress {
  if (quiet) return { begin: () => {}, at: () => {}, end: () => {} }
  return stream.isTTY === true ? barOn(stream) : linesOn(stream, clock)
}

function barOn(stream: ProgressStream): Progress {
  let bar: SingleBar | undefined
  const end = (): void => {
    bar?.stop()
    bar = undefined
  }
  return {
    end,
    begin(what, total) {
      end()
      // The command handles signals itself.
      const options = { stream, clearOnComplete: true, gracefulExit: false, barsize: 30, etaBuffer: 100 }
      bar = new SingleBar({ ...options, format: total === null ? COUNT : BAR })
      bar.start(total ?? 0, 0, { what })
    },
    at: (done) => bar?.update(done),
  }
}

function linesOn(stream: ProgressStream, clock: () => number): Progress {
  let current: { readonly what: string; readonly total: number | null } | undefined
  let said = clock()
  return {
    begin(what, total) {
      current = { what, total }
      said = clock()
    },
    at(done) {
      const now = clock()
      if (current === undefined || now - said < INTERVAL) return
      said = now
      stream.write(`${current.what} ${done}${current.total === null ? '' : ` of ${current.total}`}\n`)
    },
    end: () => void (current = undefined),
  }
}
