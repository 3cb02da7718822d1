/** Kills, at random moments of the work of processes on a store, and what became of the claims. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../src/store/port/store.ts'
import { until } from '../support/until.ts'
import { ask } from './asking.ts'
import { startWorker, type Worker } from './crew.ts'
import { claimsIn, clock, disorder, readHistories, type Done } from './history.ts'
import { openAt, type StoreAddress } from './places.ts'
import { add, NOTHING, type Tally } from './tally.ts'
import type { Call } from './thread-calls.ts'

/** What is done. */
export interface StoreCrashes {
  readonly address: StoreAddress
  /** Where the workers write. */
  readonly folder: string
  readonly seed: number
  /** It is over when so many processes were killed. */
  readonly kills: number
  readonly processes: number
  /** Calls that each process makes at once. */
  readonly lanes: number
  readonly threads: number
  /**
   * Kills what it likes, while they work.
   * @returns how many processes it killed, and which workers have to be replaced
   */
  readonly strike: (
    workers: readonly Worker[],
    round: number,
  ) => Promise<{ readonly kills: number; readonly gone: readonly Worker[] }>
  /** Of 0 to 1, as Math.random gives them. */
  readonly random: () => number
  /** What is wrong with the data themselves after a round. */
  readonly damage: () => Promise<string | null>
  readonly onRound?: (tally: Tally) => void
}

const USERS = ['corp:alice', 'corp:bob', 'corp:carol']
/** Work before the kill, at most, and after it, in bytes that are written down of it: about 300 for a call. */
const BEFORE = 60_000
const AFTER = 10_000

/** Works and kills. */
export async function crashStores(what: StoreCrashes): Promise<Tally> {
  let tally = NOTHING
  const began = performance.now()
  const start = (): Promise<Worker> => startWorker(what.address)
  let workers = await Promise.all(Array.from({ length: what.processes }, start))
  const store = await openAt(what.address)
  try {
    for (let round = 0; tally.kills < what.kills; round += 1) {
      const threads = Array.from({ length: what.threads }, (_, at) => `crash-${what.seed}-${round}-${at}`)
      const files = workers.map((_, at) => join(what.folder, `crash-${what.seed}-${round}-${at}.jsonl`))
      const works = workers.map((worker, at) =>
        worker.work({
          file: files[at]!,
          mix: 'runs',
          seed: what.seed + round * 100_003 + at * 1009,
          threads,
          users: USERS,
          lanes: what.lanes,
          calls: Number.MAX_SAFE_INTEGER,
        }),
      )
      await untilWritten(files, what.random() * BEFORE)
      const { kills, gone } = await what.strike(workers, round)
      if (gone.length < workers.length) await untilWritten(files, AFTER + written(files))
      for (const worker of workers) worker.stop()
      await Promise.all(works)

      const { histories, failures } = readHistories(files)
      const calls = [...histories.values()].reduce((sum, history) => sum + history.length, 0)
      const found = { ...NOTHING, rounds: 1, kills, calls, failures }
      tally = add(tally, found)
      for (const thread of threads) tally = add(tally, await judged(store, thread, histories.get(thread) ?? []))
      const damage = await what.damage()
      tally = {
        ...add(tally, { ...NOTHING, wrong: damage === null ? [] : [damage] }),
        seconds: (performance.now() - began) / 1000,
      }
      what.onRound?.(tally)
      workers = await Promise.all(workers.map((worker) => (gone.includes(worker) ? start() : Promise.resolve(worker))))
    }
    return tally
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()))
    await store.close()
  }
}

function written(files: readonly string[]): number {
  return files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)
}

function untilWritten(files: readonly string[], bytes: number): Promise<void> {
  return until(() => written(files) >= bytes)
}

/** Looks at a thread when nobody works on it any more, and has everybody claim it once. */
async function judged(store: Store, thread: string, history: readonly Done[]): Promise<Tally> {
  const all = [...history]
  const also = async (call: Call): Promise<void> => {
    const from = clock()
    const answer = await ask(store, thread, call)
    all.push({ call, from, to: clock(), answer })
  }
  const { attempted, confirmed } = claimsIn(history)
  await also({ op: 'thread' })
  for (const user of USERS) await also({ op: 'claim', user, guest: false })
  await also({ op: 'thread' })
  const { owners, doubled } = claimsIn(all)
  const row = all.at(-1)?.answer
  const owner = typeof row === 'object' && row !== null && 'owner' in row ? row.owner : null
  const lost = [...owners].filter((user) => user !== owner)
  const wrong = disorder(thread, all)
  return {
    ...NOTHING,
    attempted,
    confirmed,
    lost: lost.length > 0 ? 1 : 0,
    doubled: doubled ? 1 : 0,
    threads: 1,
    wrong: wrong === null ? [] : [wrong],
  }
}
