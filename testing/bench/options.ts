/** The command line of the benchmark. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { UsageError } from '../command.ts'
import { PART_NAMES, partOf, RESULTS } from './page.ts'
import type { BenchOptions } from './part.ts'
import type { PartName } from './parts.ts'
import { LOAD_NAMES, LOADS, LOADS_OF, type LoadName } from './requests/loads.ts'
import { ROW_NAMES, type Other } from './requests/rows.ts'

export const USAGE = `Measures the cost of the gateway.

  npm run bench -- [PART…] [OPTION…]

${PART_NAMES.map((name) => `  ${name.padEnd(11)}${partOf(name).about}`).join('\n')}

Without a part, it measures all but ownership, which takes an hour.

  --out      folder of the results (default: testing/bench/results)
  --keep     keeps the temporary files and prints their folder
  --read     shows the kept results instead of measuring
  --page     writes the results into docs/contributing/benchmarks.md and docs/explanation/performance.md, with the pictures
  --seconds  length of a round (default: 2; of streams 10, of signals 0.5), or of one value of ownership (3)

Of all but ownership:

  --rounds   rounds of each row, in turns (default: 5; of streams and event-loop 3, of signals 24 in each process)

Of requests, langgraph, lists, claims and streams:

  --only     rows, separated by commas (default: all that are installed; of lists gateway, http-proxy; of claims gateway):
             ${ROW_NAMES.join(', ')}
             gateway-2-workers has the loads get, run and mix, and streams if it is named
  --also     NAME=FOLDER: the built gateway of another checkout as a further row; may be repeated

Of requests, langgraph, lists, claims and signals:

  --warm-up  seconds of each row and load before what counts (default: 8; of requests and langgraph the first quarter is told)

Of requests and langgraph:

  --load     loads, separated by commas (default: all of the part; without a part, the parts that have them):
${LOAD_NAMES.map((name) => `             ${name.padEnd(18)}${LOADS[name].title}`).join('\n')}

Of streams:

  --streams  number of streams (default: 8000); a proxy needs two open files for each

Of ownership:

  --rows     rows of the large table (default: 10000000; at least 10000)
  --store    sqlite, postgres or both (default: both); its own server, or that of THREADWARDEN_TEST_POSTGRES
`

/** What it says. */
export interface Options extends Omit<BenchOptions, 'progress'> {
  /** Null: none was named. */
  readonly parts: readonly PartName[] | null
  readonly out: string
  readonly read: boolean
  readonly page: boolean
}

/**
 * Reads it.
 * @returns null where help is wanted
 * @throws UsageError, or what `parseArgs` throws
 */
export function readOptions(): Options | null {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rows: { type: 'string', default: '10000000' },
      store: { type: 'string', default: 'both' },
      seconds: { type: 'string' },
      load: { type: 'string' },
      only: { type: 'string' },
      also: { type: 'string', multiple: true, default: [] },
      rounds: { type: 'string' },
      'warm-up': { type: 'string', default: '8' },
      streams: { type: 'string', default: '8000' },
      out: { type: 'string', default: RESULTS },
      keep: { type: 'boolean', default: false },
      read: { type: 'boolean', default: false },
      page: { type: 'boolean', default: false },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return null
  const { keep, read, page } = values
  if (!/^\d{5,8}$/.test(values.rows) || Number(values.rows) < 10_000) throw new UsageError('--rows is a number from 10000 on')
  if (values.rounds !== undefined && !/^[1-9]\d{0,3}$/.test(values.rounds))
    throw new UsageError('--rounds is a whole number above zero')
  if (!/^[1-9]\d{0,5}$/.test(values.streams)) throw new UsageError('--streams is a whole number above zero')
  const seconds = values.seconds === undefined ? null : Number(values.seconds)
  if (seconds !== null && !(seconds > 0)) throw new UsageError('--seconds is a number above zero')
  const warmUp = Number(values['warm-up'])
  if (!(warmUp > 0)) throw new UsageError('--warm-up is a number above zero')
  const also = values.also.map(otherOf)
  const load = values.load === undefined ? null : oneOf<LoadName>('load', values.load.split(','), LOAD_NAMES)
  return {
    parts: partsOf(positionals, load),
    load,
    only:
      values.only === undefined ? null : oneOf('row', values.only.split(','), [...ROW_NAMES, ...also.map(({ name }) => name)]),
    stores: storesOf(values.store),
    rows: Number(values.rows),
    rounds: values.rounds === undefined ? null : Number(values.rounds),
    streams: Number(values.streams),
    out: resolve(values.out),
    ...{ also, seconds, warmUp, keep, read, page },
  }
}

/** @param load the loads that are asked for; null for all */
function partsOf(named: readonly string[], load: readonly LoadName[] | null): readonly PartName[] | null {
  const parts = named.length === 0 ? null : oneOf('part', named, PART_NAMES)
  if (load === null) return parts
  const having = (['requests', 'langgraph'] as const).filter((part) => LOADS_OF[part].some((name) => load.includes(name)))
  if (parts === null) return having
  const without = parts.find((part) => part in LOADS_OF && !(having as readonly PartName[]).includes(part))
  if (without !== undefined) throw new UsageError(`${without} has none of these loads: ${load.join(', ')}`)
  return parts
}

function oneOf<Name extends string>(what: string, given: readonly string[], known: readonly Name[]): readonly Name[] {
  const unknown = given.find((name) => !(known as readonly string[]).includes(name))
  if (unknown !== undefined) throw new UsageError(`no ${what} is called ${unknown}`)
  return given as readonly Name[]
}

function otherOf(text: string): Other {
  const [, name, folder] = /^([\w.-]+)=(.+)$/.exec(text) ?? []
  if (name === undefined || folder === undefined) throw new UsageError('--also is NAME=FOLDER')
  if ((ROW_NAMES as readonly string[]).includes(name)) throw new UsageError(`--also: there is a row ${name}`)
  return { name, folder }
}

function storesOf(text: string): BenchOptions['stores'] {
  if (text === 'both') return ['sqlite', 'postgres']
  if (text === 'sqlite' || text === 'postgres') return [text]
  throw new UsageError('--store is sqlite, postgres or both')
}
