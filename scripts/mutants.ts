/**
 * Mutation tests of what the product is for: the code is changed in every small way, and for each change a test has to
 * fail. What survives is a rule that nobody holds, or code that nobody needs.
 */
import { parseArgs } from 'node:util'
import { runCommand, UsageError } from '../testing/command.ts'
import { readAccepted, speaksOf } from './mutants/accepted.ts'
import { PARTS } from './mutants/parts.ts'
import { readMutants, runPart, type Mutant } from './mutants/run.ts'
import { writeTable } from './mutants/table.ts'

const NAMES = Object.keys(PARTS)

const USAGE = `Changes the code of the decision path in every small way, and looks whether a test fails.

  npm run mutants -- [--part NAME [--file FILE]…]… [--concurrency N] [--read] [--table]

  --part         ${NAMES.join(', ')} (default: all; together they take hours on a small machine)
  --file         only this file of the part; what the last run said of the others stays
  --concurrency  tests side by side (default: 2)
  --read         reads the last runs' reports instead of running
  --table        writes docs/contributing/rules.md from the result; wants all parts

What may survive stands in scripts/mutants/tester/accepted.yaml, each with its reason.
Exit code: 0 if nothing else survived, 1 if something did or an entry of that list is out of date, 2 for wrong usage.
`

interface Options {
  readonly parts: readonly string[]
  readonly files: readonly string[]
  readonly concurrency: number
  readonly read: boolean
  readonly table: boolean
}

function read(): Options | null {
  const { values } = parseArgs({
    options: {
      part: { type: 'string', multiple: true, default: NAMES },
      file: { type: 'string', multiple: true, default: [] },
      concurrency: { type: 'string', default: '2' },
      read: { type: 'boolean', default: false },
      table: { type: 'boolean', default: false },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return null
  const unknown = values.part.find((name) => !NAMES.includes(name))
  if (unknown !== undefined) throw new UsageError(`no part is called ${unknown}`)
  if (!/^[1-9]\d?$/.test(values.concurrency)) throw new UsageError('--concurrency is a number from 1 on')
  if (values.file.length > 0 && values.part.length !== 1) throw new UsageError('--file wants one --part')
  if (values.table && values.part.length < NAMES.length) throw new UsageError('--table wants all parts')
  const { part: parts, file: files, concurrency, read: reads, table } = values
  return { parts, files, concurrency: Number(concurrency), read: reads, table }
}

function told({ file, line, kind, code, replacement }: Mutant): string {
  return `${file}:${line} ${kind}\n    ${code}\n    becomes ${replacement}`
}

async function main(): Promise<number> {
  const options = read()
  if (options === null) {
    process.stdout.write(USAGE)
    return 0
  }
  const all: Mutant[] = []
  for (const name of options.parts) {
    const part = PARTS[name]
    if (part === undefined) continue
    if (!options.read) await runPart(name, part, options.concurrency, options.files)
    const mutants = readMutants(name)
    const noticed = mutants.filter((mutant) => !mutant.survived).length
    const score = ((100 * noticed) / mutants.length).toFixed(1)
    process.stdout.write(`${name}: ${mutants.length} mutants, ${noticed} noticed, ${score} %\n`)
    all.push(...mutants)
  }
  const survivors = all.filter((mutant) => mutant.survived)
  const files = new Set(all.map((mutant) => mutant.file))
  const accepted = readAccepted().filter((entry) => files.has(entry.file))
  const unheld = survivors.filter((mutant) => !accepted.some((entry) => speaksOf(entry, mutant)))
  const stale = accepted.filter((entry) => !survivors.some((mutant) => speaksOf(entry, mutant)))
  for (const mutant of unheld) process.stdout.write(`survived: ${told(mutant)}\n`)
  for (const { file, code, replacement } of stale) {
    process.stdout.write(`out of date in scripts/mutants/tester/accepted.yaml: ${file}: ${code} becomes ${replacement}\n`)
  }
  process.stdout.write(`${unheld.length} survived, ${survivors.length - unheld.length} may\n`)
  if (options.table) writeTable(all, accepted, unheld)
  return unheld.length + stale.length === 0 ? 0 : 1
}

await runCommand(main, USAGE)
