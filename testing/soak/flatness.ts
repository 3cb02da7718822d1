/** Whether a series of figures is flat. */

/** A figure, and when it was taken, in milliseconds since the load began. */
export interface Point {
  readonly at: number
  readonly value: number
}

/** How it went on after the warm-up. */
export interface Trend {
  /** Means of the first and of the last sixth. */
  readonly first: number
  readonly last: number
  /** By how much the last is above the first, as a part of it. */
  readonly change: number
  /** Of the straight line that fits best (least squares), as a part of the mean, for an hour. */
  readonly slopePerHour: number
}

/** By how much the mean of the last sixth may differ from that of the first. */
export const FLAT = 0.05

/** The parts that are compared. */
const PARTS = 6

/** Fewer points in a part say nothing. */
const LEAST = 2

const HOUR = 3_600_000

/**
 * Looks how it went on.
 * @param warmUp milliseconds at the beginning that don't count
 * @param until milliseconds at which it ends
 * @returns null where there are too few points
 */
export function trendOf(points: readonly Point[], warmUp: number, until: number): Trend | null {
  const part = (until - warmUp) / PARTS
  const within = (from: number, to: number): readonly Point[] => points.filter(({ at }) => at >= from && at <= to)
  const [first, last, all] = [within(warmUp, warmUp + part), within(until - part, until), within(warmUp, until)]
  if (first.length < LEAST || last.length < LEAST) return null
  const [before, after] = [meanOf(first), meanOf(last)]
  return { first: before, last: after, change: after / before - 1, slopePerHour: (slopeOf(all) * HOUR) / meanOf(all) }
}

/** Whether that is flat. */
export function isFlat({ change }: Trend): boolean {
  return Math.abs(change) <= FLAT
}

function meanOf(points: readonly Point[]): number {
  return points.reduce((sum, { value }) => sum + value, 0) / points.length
}

/** For each millisecond. */
function slopeOf(points: readonly Point[]): number {
  const middle = points.reduce((sum, { at }) => sum + at, 0) / points.length
  const mean = meanOf(points)
  const [above, below] = points.reduce(
    ([up, down], { at, value }) => [up + (at - middle) * (value - mean), down + (at - middle) ** 2],
    [0, 0],
  )
  return above / below
}
