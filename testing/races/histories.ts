/** Rounds of calls that several processes make at once on a few new threads, and what is to be said of each round. */
import { join } from 'node:path'
import { startWorker, type Worker } from './crew.ts'
import { claimsIn, disorder, readHistories } from './history.ts'
import type { StoreAddress } from './places.ts'
import { add, NOTHING, type Tally } from './tally.ts'

/** What is done. */
export interface HistoryRounds {
  readonly address: StoreAddress
  /** Where the workers write. */
  readonly folder: string
  readonly seed: number
  readonly rounds: number
  readonly onRound?: (tally: Tally) => void
}

const PROCESSES = 4
/** Calls that each process makes at once, and in all of a round. */
const LANES = 2
const CALLS = 100
const THREADS = 3

/** Works, and looks at the histories: those that are in no order are what is wrong. */
export async function runHistories(what: HistoryRounds): Promise<Tally> {
  const began = performance.now()
  let tally = NOTHING
  const workers = await Promise.all(Array.from({ length: PROCESSES }, () => startWorker(what.address)))
  try {
    for (let round = 0; round < what.rounds; round += 1) {
      const { histories, failures } = readHistories(await workedOn(workers, what, round))
      tally = add(tally, { ...NOTHING, rounds: 1, calls: PROCESSES * CALLS, failures })
      for (const [thread, history] of histories) {
        const { attempted, confirmed } = claimsIn(history)
        const found = disorder(thread, history)
        tally = add(tally, { ...NOTHING, threads: 1, attempted, confirmed, wrong: found === null ? [] : [found] })
      }
      tally = { ...tally, seconds: (performance.now() - began) / 1000 }
      what.onRound?.(tally)
    }
    return tally
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()))
  }
}

async function workedOn(workers: readonly Worker[], { folder, seed }: HistoryRounds, round: number): Promise<readonly string[]> {
  const name = `${seed}-${round}`
  const order = {
    mix: 'everything',
    threads: Array.from({ length: THREADS }, (_, at) => `thread-${name}-${at}`),
    // Of this round alone: what is done to all that is a user's is done to threads of this round.
    users: ['alice', 'bob', 'carol'].map((user) => `corp:${user}-${name}`),
    lanes: LANES,
    calls: CALLS,
  } as const
  const files = workers.map((_, at) => join(folder, `history-${name}-${at}.jsonl`))
  await Promise.all(
    workers.map((worker, at) => worker.work({ ...order, file: files[at]!, seed: seed + round * 100_003 + at * 1009 })),
  )
  return files
}
