/** What is to be said of a thread on which a crowd was at work: by what reached the upstream, and what everybody was told. */
import { isRun, type Told } from './crowd.ts'
import type { Arrival } from './ledger.ts'

/** Of one thread. */
export interface ThreadVerdict {
  /** Runs that were sent, and runs whose user saw a 2xx. */
  readonly attempted: number
  readonly confirmed: number
  /** Whose it is by a run that was started, or may have been; null for nobody's. */
  readonly owner: string | null
  /** What speaks of a claim that was lost. */
  readonly lost: readonly string[]
  /** What speaks of two owners. */
  readonly doubled: readonly string[]
}

/**
 * Judges a thread.
 * @param row whose it is in the store when all is over; null without a row
 */
export function judge(arrivals: readonly Arrival[], told: readonly Told[], row: string | null): ThreadVerdict {
  const runs = arrivals.filter((one) => one.fate !== null)
  // From its arrival, because the claim was written before the request was sent: only a refusal takes it back after that.
  const first = runs.find(({ fate }) => fate !== 'refused')
  const owner = first?.user ?? null
  const since = first?.at ?? Infinity

  const doubled = runs.flatMap((later, index) =>
    runs
      .slice(0, index)
      .filter((earlier) => earlier.user !== later.user)
      .filter((earlier) => earlier.fate !== 'refused' || earlier.ended === null || earlier.ended > later.at)
      .map((earlier) => `a run of ${later.user} arrived at ${later.at} after ${JSON.stringify(earlier)}`),
  )
  const strangers = arrivals.flatMap(({ mark, user }) =>
    told
      .filter((one) => one.mark === mark && user !== owner && one.from > since)
      .map((one) => `a stranger's request arrived: ${JSON.stringify(one)}`),
  )
  const refused = told
    .filter(({ user, from, code }) => user === owner && from > since && code === 'not-owner')
    // What was deleted is only there to be run again.
    .filter(({ act }) => isRun(act))
    .map((one) => `the owner was refused: ${JSON.stringify(one)}`)
  const gone = owner !== null && row !== owner ? [`the row is ${String(row)}'s, the thread ${owner}'s`] : []
  const sent = told.filter(({ act }) => isRun(act))
  return {
    attempted: sent.length,
    confirmed: sent.filter(({ status }) => status === 200).length,
    owner,
    lost: [...refused, ...gone],
    doubled: [...doubled, ...strangers],
  }
}
