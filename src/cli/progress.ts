/** How far a long work has come: a bar on a terminal, and elsewhere a line now and then. Always on stderr. */
import { SingleBar } from 'cli-progress'

export interface Progress {
  /**
   * Begins something.
   * @param what what is done, in a word or two
   * @param total of how many, or null if nobody knows
   */
  begin(what: string, total: number | null): void
  /** So much is done of it. */
  at(done: number): void
  /** Takes the bar away: what is printed next has a line of its own. */
  end(): void
}

export type ProgressStream = NodeJS.WritableStream & { readonly isTTY?: boolean }

/** A line every so often where there is no terminal, in milliseconds. */
const INTERVAL = 10_000

const BAR = '{what} [{bar}] {percentage}% {value}/{total}, {eta_formatted} left'
const COUNT = '{what} {value}'

/**
 * Makes it.
 * @param quiet true for nothing at all
 * @param clock milliseconds, from anywhere
 */
export function makeProgress(
  stream: ProgressStream,
  quiet: boolean,
  clock: () => number = performance.now.bind(performance),
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
      // Signals are the command's own affair.
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
