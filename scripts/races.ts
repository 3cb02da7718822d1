/**
 * The long run of the race and crash tests (testing/races): first runs of many users, calls that are made at once, and kill -9 at
 * random moments, on real stores. Prints a table of counts.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Scope } from '../testing/support/program.ts'
import { manyFirstRuns } from '../testing/races/first-runs.ts'
import { crashGateways, type GatewayCrashes } from '../testing/races/gateway-crashes.ts'
import { runHistories } from '../testing/races/histories.ts'
import { damageIn, damageOn, type StoreAddress } from '../testing/races/places.ts'
import { crashStores, type StoreCrashes } from '../testing/races/store-crashes.ts'
import { killGateways, killServerUnderGateways, killServerUnderWorkers, killWorkers } from '../testing/races/strikes.ts'
import type { Tally } from '../testing/races/tally.ts'
import { startPostgresServer, type TestServer } from '../testing/support/postgres.ts'
import { runCommand, UsageError } from '../testing/command.ts'

const USAGE = `Races and crashes on real stores, with counts.

  npm run races -- [--store sqlite|postgres] [--rounds N] [--kills N] [--seed S]

  --store   which one (default: both)
  --rounds  threads whose first run a hundred users make at once; and, ten times as many, rounds of calls that
            several processes make at once on three threads (default: 50)
  --kills   kill -9 of each kind: of processes that use the store, of gateways, and of the server that the
            store is on, under either (default: 100)
  --seed    a whole number; the same one makes the same calls, at other moments (default: any)

Exit code: 0 if nothing was found, 1 with what was, 2 for wrong usage.
`

/** How often the progress is told, in milliseconds: often to a person, seldom to a file. */
const TELL_EVERY = process.stderr.isTTY ? 500 : 15_000

const STORES = ['sqlite', 'postgres'] as const
type StoreKind = (typeof STORES)[number]

/** Where a store is, and what can be done to it. */
interface Place {
  readonly address: StoreAddress
  readonly damage: () => Promise<string | null>
  /** Null where there is none. */
  readonly server: Pick<TestServer, 'kill' | 'restart'> | null
}

/** A line of the table. */
interface Line {
  readonly store: StoreKind
  readonly what: string
  readonly tally: Tally
}

/** Something that is run, and what it is called. */
interface Part {
  readonly what: string
  readonly run: (scope: Scope, place: Place, folder: string, onRound: (tally: Tally) => void) => Promise<Tally>
}

function partsOf(store: StoreKind, rounds: number, kills: number, seed: number): readonly Part[] {
  const { random } = Math
  const workers = (strike: (place: Place) => StoreCrashes['strike']): Part['run'] => {
    const size = { seed, kills, processes: 4, lanes: 2, threads: 6, random }
    return (_scope, place, folder, onRound) =>
      crashStores({ ...size, ...uncached(place), folder, strike: strike(place), damage: place.damage, onRound })
  }
  const gateways = (strike: (place: Place) => GatewayCrashes['strike']): Part['run'] => {
    const size = { seed, kills, processes: 3, lanes: 8, threads: 6, random }
    return (scope, place, _folder, onRound) =>
      crashGateways(scope, { ...size, address: place.address, strike: strike(place), damage: place.damage, onRound })
  }
  const all: readonly Part[] = [
    {
      what: 'first runs of 100 users over 4 gateways',
      run: (scope, { address }, _folder, onRound) =>
        manyFirstRuns(scope, { address, users: 100, gateways: 4, rounds, seed, random, onRound }),
    },
    {
      what: 'calls of 4 processes at once',
      run: (_scope, place, folder, onRound) => runHistories({ ...uncached(place), folder, seed, rounds: rounds * 10, onRound }),
    },
    { what: 'kill -9 of processes on the store', run: workers(() => killWorkers(random)) },
    { what: 'kill -9 of gateways', run: gateways(() => killGateways(random)) },
  ]
  if (store === 'sqlite') return all
  return [
    ...all,
    { what: 'kill -9 of the server under processes', run: workers(({ server }) => killServerUnderWorkers(server!, random)) },
    { what: 'kill -9 of the server under gateways', run: gateways(({ server }) => killServerUnderGateways(server!)) },
  ]
}

/** The same without the cache, which may say for a second what was so. */
function uncached({ address, server }: Place): { readonly address: StoreAddress } {
  return { address: server === null ? address : { ...address, postgres: { cache: 0 } } }
}

async function placeOf(scope: Scope, store: StoreKind, folder: string): Promise<Place> {
  if (store === 'sqlite') {
    const file = join(folder, 'ownership.db')
    return { address: { store: `sqlite:${file}` }, damage: async () => damageIn(file), server: null }
  }
  const server = await startPostgresServer(scope)
  return { address: { store: server.url }, damage: () => damageOn(server.admin), server }
}

/** Does something, and ends what was started for it. */
async function scoped<T>(work: (scope: Scope, folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'threadwarden-races-'))
  const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
  try {
    return await work({ teardown: (end: () => unknown) => void ends.unshift(end) }, folder)
  } finally {
    for (const end of ends) await end()
  }
}

async function follow(store: StoreKind, part: Part): Promise<Line> {
  let told = performance.now()
  const end = process.stderr.isTTY ? '\r' : '\n'
  const tally = await scoped(async (scope, folder) =>
    part.run(scope, await placeOf(scope, store, folder), folder, ({ rounds, kills, attempted, confirmed, wrong }) => {
      const now = performance.now()
      if (now - told < TELL_EVERY) return
      told = now
      process.stderr.write(
        `${store}, ${part.what}: ${rounds} rounds, ${kills} kills, ${attempted} claims, ${confirmed} confirmed, ${wrong.length} wrong  ${end}`,
      )
    }),
  )
  return { store, what: part.what, tally }
}

function table(lines: readonly Line[]): string {
  const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`
  const head = [
    'Store',
    'What',
    'Rounds',
    'Threads',
    'Calls',
    'Kills',
    'Claims',
    'Confirmed',
    'Lost',
    'Double owners',
    'Wrong',
    'Unanswered',
    'Seconds',
  ]
  return [
    row(head),
    row(head.map(() => '---')),
    ...lines.map(({ store, what, tally }) =>
      row([
        ...[store, what, tally.rounds, tally.threads, tally.calls, tally.kills, tally.attempted, tally.confirmed],
        ...[tally.lost, tally.doubled, tally.wrong.length, tally.failures, Math.round(tally.seconds)],
      ]),
    ),
  ].join('\n')
}

function read() {
  const { values } = parseArgs({
    options: {
      store: { type: 'string' },
      rounds: { type: 'string', default: '50' },
      kills: { type: 'string', default: '100' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return null
  const stores = values.store === undefined ? STORES : STORES.filter((one) => one === values.store)
  if (stores.length === 0) throw new UsageError('--store is sqlite or postgres')
  return { stores, rounds: count('rounds', values.rounds), kills: count('kills', values.kills), seed: count('seed', values.seed) }
}

function count(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} is a whole number`)
  return Number(text)
}

async function main(): Promise<number> {
  const options = read()
  if (options === null) {
    process.stdout.write(USAGE)
    return 0
  }
  const lines: Line[] = []
  for (const store of options.stores) {
    for (const part of partsOf(store, options.rounds, options.kills, options.seed)) lines.push(await follow(store, part))
  }
  process.stdout.write(`seed ${options.seed}\n\n${table(lines)}\n`)
  const wrong = lines.flatMap(({ store, what, tally }) => tally.wrong.map((text) => `${store}, ${what}: ${text}`))
  if (wrong.length > 0) process.stdout.write(`\n${wrong.join('\n\n')}\n`)
  return wrong.length === 0 ? 0 : 1
}

await runCommand(main, USAGE)
