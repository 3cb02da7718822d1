/** One clock for all processes of a machine: what one writes into an event, another holds against its own. */

/** Milliseconds since some moment that is the same for all of them. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** From when to when something is counted, by that clock. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** How long after that it is waited for events that are late, in milliseconds. */
export const LATE = 2000
