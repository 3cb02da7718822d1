/** Kills, at random moments, of gateways or of what they keep their table in, while a crowd uses them; and what became of it. */
import type { Store } from '../../src/store/port/store.ts'
import type { Scope } from '../support/program.ts'
import { until } from '../support/until.ts'
import { askAs, startCrowd, type CrowdParts, type Told } from './crowd.ts'
import { prepareSite, ready, type Gateway, type Site } from './gateways.ts'
import { startLedger, type Ledger } from './ledger.ts'
import { makeMoments, type Moments } from './moments.ts'
import { openAt, type StoreAddress } from './places.ts'
import { add, NOTHING, type Tally } from './tally.ts'
import { judge } from './verdict.ts'

/** What a kill may look at. */
export interface Scene extends Pick<CrowdParts, 'tokenOf' | 'moments' | 'random'> {
  readonly gateways: readonly Gateway[]
  readonly ledger: Ledger
  /** Threads that the crowd is at work on. */
  readonly threads: readonly string[]
}

/** What is done. */
export interface GatewayCrashes {
  readonly address: StoreAddress
  /** In the names of threads. */
  readonly seed: number
  /** It is over when so many processes were killed. */
  readonly kills: number
  /** How many gateways there are. */
  readonly processes: number
  /** Requests that are under way at once. */
  readonly lanes: number
  readonly threads: number
  /**
   * Kills what it likes, while they serve.
   * @returns how many processes it killed, which gateways have to be replaced, and what was not as it should be meanwhile
   */
  readonly strike: (scene: Scene, round: number) => Promise<Struck>
  readonly random: () => number
  readonly damage: () => Promise<string | null>
  readonly onRound?: (tally: Tally) => void
}

/** What came of a kill. */
export interface Struck {
  readonly kills: number
  readonly gone: readonly Gateway[]
  readonly wrong: readonly string[]
}

const SUBJECTS = ['alice', 'bob', 'carol', 'dave']
/** Requests that have arrived upstream before the kill, at most, and that come after it. */
const BEFORE = 120
const AFTER = 30

/** Serves and kills. */
export async function crashGateways(scope: Scope, what: GatewayCrashes): Promise<Tally> {
  const { random } = what
  const began = performance.now()
  const moments = makeMoments()
  const ledger = await startLedger(moments)
  scope.teardown(() => ledger.close())
  const site = prepareSite(scope, what.address, ledger.url)
  let gateways = await Promise.all(Array.from({ length: what.processes }, () => site.start()))
  await Promise.all(gateways.map(ready))
  const store = await openAt(what.address)
  scope.teardown(() => store.close())
  let tally = NOTHING
  for (let round = 0; tally.kills < what.kills; round += 1) {
    const threads = Array.from({ length: what.threads }, (_, at) => `chat-${what.seed}-${round}-${at}`)
    let bases = gateways.map(({ base }) => base)
    const { tokenOf } = site
    const scene = { gateways, ledger, threads, tokenOf, moments, random }
    const crowd = startCrowd({ bases: () => bases, tokenOf, subjects: SUBJECTS, threads, lanes: what.lanes, moments, random })
    const arrived = (): number => threads.reduce((sum, thread) => sum + ledger.arrivals(thread).length, 0)
    const before = random() * BEFORE
    await until(() => arrived() >= before)
    const { kills, gone, wrong } = await what.strike(scene, round)
    const left = gateways.filter((gateway) => !gone.includes(gateway))
    bases = left.map(({ base }) => base)
    const after = arrived() + AFTER
    if (left.length > 0) await until(() => arrived() >= after)
    const told = await crowd.stop()
    gateways = [...left, ...(await Promise.all(gone.map(() => site.start())))]
    await Promise.all(gateways.map(ready))

    const last = await oneMoreRunEach({ gateways, site, threads, moments, random })
    const failures = told.filter(({ status }) => status === 0 || status === 503).length
    tally = add(tally, { ...NOTHING, rounds: 1, kills, calls: told.length, failures, wrong })
    for (const thread of threads) tally = add(tally, await judged(store, ledger, thread, [...told, ...last]))
    const damage = await what.damage()
    tally = { ...add(tally, { ...NOTHING, wrong: damage === null ? [] : [damage] }), seconds: (performance.now() - began) / 1000 }
    ledger.forget()
    what.onRound?.(tally)
  }
  return tally
}

/** When all is over everybody tries once more, at any gateway: whoever has a thread still has it, and nobody else gets it. */
async function oneMoreRunEach({
  gateways,
  site,
  threads,
  moments,
  random,
}: {
  readonly gateways: readonly Gateway[]
  readonly site: Site
  readonly threads: readonly string[]
  readonly moments: Moments
  readonly random: () => number
}): Promise<readonly Told[]> {
  const asked = threads.flatMap((thread, at) =>
    SUBJECTS.map((subject) =>
      askAs({ tokenOf: site.tokenOf, moments, random }, gateways[at % gateways.length]!.base, thread, subject, 'started'),
    ),
  )
  return Promise.all(asked)
}

async function judged(store: Store, ledger: Ledger, thread: string, told: readonly Told[]): Promise<Tally> {
  const found = await store.thread({ scope: '', threadId: thread })
  const verdict = judge(
    ledger.arrivals(thread),
    told.filter((one) => one.thread === thread),
    found?.row?.owner ?? null,
  )
  const { attempted, confirmed, lost, doubled } = verdict
  return {
    ...NOTHING,
    attempted,
    confirmed,
    lost: lost.length > 0 ? 1 : 0,
    doubled: doubled.length > 0 ? 1 : 0,
    threads: 1,
    wrong: [...lost, ...doubled],
  }
}
