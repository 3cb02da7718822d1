/** Many users whose first run is on one new thread, all at once and over several gateways. */
import { isDeepStrictEqual } from 'node:util'
import type { Store } from '../../src/store/port/store.ts'
import type { Scope } from '../support/program.ts'
import { askAs, type CrowdParts, type Told } from './crowd.ts'
import { prepareSite, ready, type Gateway } from './gateways.ts'
import { startLedger, type Ledger } from './ledger.ts'
import { makeMoments } from './moments.ts'
import { openAt, type StoreAddress } from './places.ts'
import { add, NOTHING, type Tally } from './tally.ts'

/** What came of it on one thread. */
interface FirstRuns {
  /** Who was told what, how often: `200`, `403 not-owner`. */
  readonly told: Readonly<Record<string, number>>
  /** Users whose run reached the upstream, one entry for each run. */
  readonly arrived: readonly string[]
  /** Users who were told 200. */
  readonly served: readonly string[]
  /** The owner in the store; null without a row. */
  readonly owner: string | null
}

/** Has each of the users run once. */
async function firstRuns(
  {
    ledger,
    store,
    gateways,
    ...parts
  }: Pick<CrowdParts, 'tokenOf' | 'moments' | 'random'> & {
    readonly ledger: Ledger
    readonly store: Store
    readonly gateways: readonly Gateway[]
  },
  thread: string,
  subjects: readonly string[],
): Promise<FirstRuns> {
  const asked = subjects.map((subject, at) => askAs(parts, gateways[at % gateways.length]!.base, thread, subject, 'started'))
  const told = await Promise.all(asked)
  const found = await store.thread({ scope: '', threadId: thread })
  return {
    told: countsOf(told),
    arrived: ledger.arrivals(thread).map(({ user }) => user),
    served: told.filter(({ status }) => status === 200).map(({ user }) => user),
    owner: found?.row?.owner ?? null,
  }
}

/** What is done on many threads, one after the other. */
export interface ManyFirstRuns {
  readonly address: StoreAddress
  readonly users: number
  readonly gateways: number
  /** How many threads. */
  readonly rounds: number
  /** In the names of threads. */
  readonly seed: number
  readonly random: () => number
  readonly onRound?: (tally: Tally) => void
}

/** Starts gateways, and has all users run on one thread after the other. */
export async function manyFirstRuns(scope: Scope, what: ManyFirstRuns): Promise<Tally> {
  const began = performance.now()
  const { random } = what
  const moments = makeMoments()
  const ledger = await startLedger(moments)
  scope.teardown(() => ledger.close())
  const site = prepareSite(scope, what.address, ledger.url)
  const gateways = await Promise.all(Array.from({ length: what.gateways }, () => site.start()))
  await Promise.all(gateways.map(ready))
  const store = await openAt(what.address)
  scope.teardown(() => store.close())
  const users = Array.from({ length: what.users }, (_, at) => `user-${at}`)
  let tally = NOTHING
  for (let round = 0; round < what.rounds; round += 1) {
    const thread = `first-${what.seed}-${round}`
    const found = await firstRuns({ ledger, store, gateways, tokenOf: site.tokenOf, moments, random }, thread, users)
    tally = add(tally, tallyOf(thread, found, users.length))
    tally = { ...tally, seconds: (performance.now() - began) / 1000 }
    ledger.forget()
    what.onRound?.(tally)
  }
  return tally
}

function tallyOf(thread: string, found: FirstRuns, users: number): Tally {
  const { told, arrived, served, owner } = found
  const expected = { '200': 1, '403 not-owner': users - 1 }
  const isRight = isDeepStrictEqual(told, expected) && isDeepStrictEqual(arrived, served) && owner === served[0]
  return {
    ...NOTHING,
    rounds: 1,
    threads: 1,
    calls: users,
    attempted: users,
    confirmed: served.length,
    lost: served.some((user) => user !== owner) ? 1 : 0,
    doubled: arrived.length > 1 ? 1 : 0,
    wrong: isRight ? [] : [`${thread}: ${JSON.stringify(found)}`],
  }
}

function countsOf(told: readonly Told[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { status, code } of told) {
    const words = code === undefined ? String(status) : `${status} ${code}`
    counts[words] = (counts[words] ?? 0) + 1
  }
  return counts
}
