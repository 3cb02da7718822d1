/** Mutation tests of the decision path: for each small change of the code, a test must fail. A survivor is an untested rule or unused code. */
import { parseArgs } from 'node:util'
import { runCommand, UsageError } from '../testing/command.ts'
import { readAccepted, speaksOf } from './mutants/accepted.ts'
import { PARTS } from './mutants/parts.ts'
import { readMutants, runPart, type Mutant } from './mutants/run.ts'

const NAMES = Object.keys(PARTS)

const USAGE = `Mutation tests of the decision path: makes each small change of the code and checks that a test fails.

  npm run mutants -- [--part NAME [--file FILE]…]… [--concurrency N] [--read]

  --part         ${NAMES.join(', ')} (default: all; together they take hours on a small machine)
  --file         only this file of the part; keeps the last result for the others
  --concurrency  simultaneous tests (default: 2)
  --read         reads the last reports instead of running

scripts/mutants/tester/accepted.yaml lists the accepted survivors with their reasons.
Exit code: 0 if no other mutant survived, 1 if one did or an entry of that list is out of date, 2 for wrong usage.
`

interface Options {
  readonly parts: readonly string[]
  readonly files: readonly string[]
  readonly concurrency: number
  readonly read: boolean
}

function read(): Options | null {
  const { values } = parseArgs({
    options: {
      part: { type: 'string', multiple: true, default: NAMES },
      file: { type: 'string', multiple: true, default: [] },
      concurrency: { type: 'string', default: '2' },
      read: { type: 'boolean', default: false },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return null
  const unknown = values.part.find((name) => !NAMES.includes(name))
  if (unknown !== undefined) throw new UsageError(`no part is called ${unknown}`)
  if (!/^[1-9]\d?$/.test(values.concurrency)) throw new UsageError('--concurrency is a number from 1 on')
  if (values.file.length > 0 && values.part.length !== 1) throw new UsageError('--file wants one --part')
  const { part: parts, file: files, concurrency, read: reads } = values
  return { parts, files, concurrency: Number(concurrency), read: reads }
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
  return unheld.length + stale.length === 0 ? 0 : 1
}

await runCommand(main, USAGE)
