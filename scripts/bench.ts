/** Measures what the gateway costs, part by part. Results are kept as JSON, and docs/performance.md shows them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { makeProgress } from '../src/cli/progress.ts'
import { PAGE, PART_NAMES, partOf, readTable, RESULTS, withTables, writeResult } from './bench/page.ts'
import type { BenchOptions } from './bench/part.ts'
import type { PartName } from './bench/parts.ts'

const USAGE = `Measures what the gateway costs.

  npm run bench -- [PART…] [--rows N] [--store KIND] [--seconds N] [--out FOLDER] [--keep] [--read] [--page]

${PART_NAMES.map((name) => `  ${name.padEnd(11)}${partOf(name).about}`).join('\n')}

  --rows     rows of the large table (default: 10000000; 10000 at least)
  --store    sqlite, postgres or both (default: both); a server of its own, or the one of THREADWARDEN_TEST_POSTGRES
  --seconds  for each number (default: 3)
  --out      where results are kept (default: bench/results)
  --keep     leaves what was built, and says where
  --read     shows the kept results instead of measuring
  --page     writes the results into docs/performance.md
`

class UsageError extends Error {}

interface Options extends Omit<BenchOptions, 'progress'> {
  readonly parts: readonly PartName[]
  readonly out: string
  readonly read: boolean
  readonly page: boolean
}

function read(): Options | null {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rows: { type: 'string', default: '10000000' },
      store: { type: 'string', default: 'both' },
      seconds: { type: 'string', default: '3' },
      out: { type: 'string', default: RESULTS },
      keep: { type: 'boolean', default: false },
      read: { type: 'boolean', default: false },
      page: { type: 'boolean', default: false },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return null
  const unknown = positionals.find((name) => !(PART_NAMES as readonly string[]).includes(name))
  if (unknown !== undefined) throw new UsageError(`no part is called ${unknown}`)
  if (!/^\d{5,8}$/.test(values.rows) || Number(values.rows) < 10_000) throw new UsageError('--rows is a number from 10000 on')
  const seconds = Number(values.seconds)
  if (!(seconds > 0)) throw new UsageError('--seconds is a number above zero')
  const { keep, read: reads, page, out } = values
  const parts = positionals.length === 0 ? PART_NAMES : (positionals as PartName[])
  return { parts, rows: Number(values.rows), stores: storesOf(values.store), seconds, out: resolve(out), keep, read: reads, page }
}

function storesOf(text: string): BenchOptions['stores'] {
  if (text === 'both') return ['sqlite', 'postgres']
  if (text === 'sqlite' || text === 'postgres') return [text]
  throw new UsageError('--store is sqlite, postgres or both')
}

async function main(): Promise<void> {
  const options = read()
  if (options === null) {
    process.stdout.write(USAGE)
    return
  }
  const progress = makeProgress(process.stderr, false)
  const tables = new Map<PartName, string>()
  mkdirSync(options.out, { recursive: true })
  for (const name of options.parts) {
    if (!options.read) writeResult(options.out, name, await partOf(name).run({ ...options, progress }))
    tables.set(name, readTable(options.out, name))
    process.stdout.write(`${name}\n\n${tables.get(name) ?? ''}\n\n`)
  }
  if (options.page) writeFileSync(PAGE, withTables(readFileSync(PAGE, 'utf8'), tables))
}

try {
  await main()
} catch (error) {
  const isUsage = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS') === true
  if (!isUsage) throw error
  process.stderr.write(`${(error as Error).message}\n\n${USAGE}`)
  process.exitCode = 2
}
