/** What was counted while processes were killed. */
export interface Tally {
  readonly rounds: number
  readonly kills: number
  readonly threads: number
  /** Calls of the store, or requests. */
  readonly calls: number
  /** Claims that were made, and those of them whose owner was told that the run goes on. */
  readonly attempted: number
  readonly confirmed: number
  /** Threads whose confirmed owner is not their owner any more. */
  readonly lost: number
  /** Threads that two users had. */
  readonly doubled: number
  /** Calls or requests that the store's failures left without an answer. */
  readonly failures: number
  readonly seconds: number
  /** What should not be, in words: all that is counted as lost or doubled, histories without an order, damaged data. */
  readonly wrong: readonly string[]
}

/** Before the first round. */
export const NOTHING: Tally = {
  rounds: 0,
  kills: 0,
  threads: 0,
  calls: 0,
  attempted: 0,
  confirmed: 0,
  lost: 0,
  doubled: 0,
  failures: 0,
  seconds: 0,
  wrong: [],
}

/** Both together. */
export function add(one: Tally, other: Tally): Tally {
  return {
    rounds: one.rounds + other.rounds,
    kills: one.kills + other.kills,
    threads: one.threads + other.threads,
    calls: one.calls + other.calls,
    attempted: one.attempted + other.attempted,
    confirmed: one.confirmed + other.confirmed,
    lost: one.lost + other.lost,
    doubled: one.doubled + other.doubled,
    failures: one.failures + other.failures,
    seconds: one.seconds + other.seconds,
    wrong: [...one.wrong, ...other.wrong],
  }
}
