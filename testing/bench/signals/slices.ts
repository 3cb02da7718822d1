/** How the process that is measured tells what it did with each of the signals in turn. */
import { SIGNALS, type Signal } from './result.ts'

/** In the folder of the gateway: a line for each slice that has ended. */
export const SLICES_FILE = 'slices.jsonl'

/** Between two switches. */
export interface Slice {
  readonly signal: Signal
  /** That ended in it. */
  readonly requests: number
  /** Microseconds of the whole process. */
  readonly cpu: number
}

/** Each round of slices begins with another signal, so that a machine that drifts moves all of them alike. */
export function signalOf(slice: number): Signal {
  const round = Math.floor(slice / SIGNALS.length)
  return SIGNALS[(round + slice) % SIGNALS.length] ?? 'none'
}
