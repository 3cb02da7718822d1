/** When what happens in a soak: of an hour as its page says, and of a shorter one the same things, closer together. */

/** Milliseconds. */
export interface Times {
  readonly total: number
  /** Between two of each. */
  readonly sample: number
  readonly tell: number
  readonly kill: number
  readonly reload: number
  readonly rotate: number
  /** In which no fault is made any more, at the end. */
  readonly rest: number
  /** Of a token, on average. */
  readonly tokenLife: number
}

const SECOND = 1000
const MINUTE = 60 * SECOND

/** The issuer's keys are not fetched more often than that: a key that comes sooner after another is not known for so long. */
const LEAST_ROTATE = 6 * SECOND

/** Finds them. @param minutes that the soak takes */
export function timesOf(minutes: number): Times {
  const total = minutes * MINUTE
  const within = (most: number, parts: number): number => Math.min(most, total / parts)
  return {
    total,
    sample: Math.max(0.5 * SECOND, within(5 * SECOND, 60)),
    tell: MINUTE,
    kill: within(4 * MINUTE, 3.3),
    reload: within(1.5 * MINUTE, 7),
    rotate: Math.max(LEAST_ROTATE, within(7 * MINUTE, 2.3)),
    rest: within(MINUTE, 8),
    tokenLife: Math.max(4 * SECOND, within(2 * MINUTE, 6)),
  }
}
