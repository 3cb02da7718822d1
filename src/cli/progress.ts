/** Shows the progress of long work on stderr: a bar on a terminal, and elsewhere a line now and then. */
import { SingleBar } from 'cli-progress'

export interface Progress {
  /** @param total the number of items, or null if it is unknown */
  begin(what: string, total: number | null): void
  at(done: number): void
  /** Removes the bar, so that the next output has its own line. */
  end(): void
}

export type ProgressStream = NodeJS.WritableStream & { readonly isTTY?: boolean }

/** The time between lines where there is no terminal, in milliseconds. */
const INTERVAL = 10_000

const BAR = '{what} [{bar}] {percentage}% {value}/{total}, {eta_formatted} left'
const COUNT = '{what} {value}'

export interface ProgressOptions {
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
