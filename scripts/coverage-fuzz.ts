/** The coverage-guided fuzz: readers of what callers and operators write, each with its oracle (testing/fuzz/targets). */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { inputLine } from '../testing/fuzz/corpora.ts'
import { loadTarget, TARGET_NAMES, type TargetName } from '../testing/fuzz/targets.ts'
import { thisMachine, today } from '../testing/bench/machine.ts'
import { runCommand, UsageError } from '../testing/command.ts'
import { fitAddon, FINDINGS, fuzz, type TargetResult } from './coverage-fuzz/campaign.ts'
import type { Progress } from '../testing/coverage-fuzz/figures.ts'
import { readResult, report, withCorpus, writePage, type FuzzResult } from '../testing/coverage-fuzz/page.ts'

const USAGE = `Coverage-guided fuzzing of the code that reads input of callers and operators.

  npm run fuzz:coverage -- [--target NAME]… [--minutes N] [--at-once N] [--seed S] [--keep] [--page]
  npm run fuzz:coverage -- --target NAME --replay FILE

  --target   ${TARGET_NAMES.join(', ')} (default: all)
  --minutes  of CPU time for each target (default: 5), also a fraction
  --at-once  simultaneous targets (default: 1)
  --seed     a whole number from 1 on, for the choices of the fuzzer (default: random)
  --keep     writes the minimised corpora, testing/fuzz/corpora/NAME.txt
  --page     writes the result into docs/contributing/fuzzing.md; named targets replace only their rows, if minutes and seed are those of the kept result
  --replay   runs the oracle on one input, without fuzzing

A process runs with the lowest priority. An input that breaks a property is kept in scripts/coverage-fuzz/fuzzer/findings/.
Exit code: 0 without a finding, 1 with one, 2 for wrong usage.
`

/** How often the progress is told, in milliseconds. */
const TELL_EVERY = 15_000

interface Options {
  readonly targets: readonly TargetName[]
  readonly minutes: number
  readonly atOnce: number
  readonly seed: number
  readonly keep: boolean
  readonly page: boolean
  readonly replay: string | null
}

function readOptions(): Options | null {
  const { values } = parseArgs({
    options: {
      target: { type: 'string', multiple: true, default: [...TARGET_NAMES] },
      minutes: { type: 'string', default: '5' },
      'at-once': { type: 'string', default: '1' },
      seed: { type: 'string' },
      keep: { type: 'boolean', default: false },
      page: { type: 'boolean', default: false },
      replay: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return null
  const targets = TARGET_NAMES.filter((name) => values.target.includes(name))
  const unknown = values.target.find((name) => !(TARGET_NAMES as readonly string[]).includes(name))
  if (unknown !== undefined) throw new UsageError(`no target is called ${unknown}`)
  if (!/^\d{1,4}(?:\.\d+)?$/.test(values.minutes)) throw new UsageError('--minutes is a number')
  if (!/^[1-9]\d?$/.test(values['at-once'])) throw new UsageError('--at-once is a number from 1 on')
  const { seed = String(1 + Math.floor(Math.random() * 1e9)), replay = null, keep, page } = values
  if (!/^[1-9]\d{0,8}$/.test(seed)) throw new UsageError('--seed is a whole number from 1 on')
  if (replay !== null && targets.length !== 1) throw new UsageError('--replay wants one --target')
  const options = {
    targets,
    minutes: Number(values.minutes),
    atOnce: Number(values['at-once']),
    seed: Number(seed),
    keep,
    page,
    replay,
  }
  if (page && targets.length < TARGET_NAMES.length && !continues(options)) {
    throw new UsageError('--page wants all targets, or the minutes and the seed of the kept result')
  }
  return options
}

/** Whether a run can stand beside the kept one in a table. */
function continues({ minutes, seed }: Options): boolean {
  const kept = readResult()
  return kept.minutes === minutes && kept.seed === seed
}

async function replayed(target: TargetName, file: string): Promise<number> {
  const input = readFileSync(file)
  process.stdout.write(`${inputLine(input)}\n`)
  try {
    await (await loadTarget(target)).examine(input)
  } catch (error) {
    process.stdout.write(`${error instanceof Error ? String(error.stack) : String(error)}\n`)
    return 1
  }
  process.stdout.write('no property is broken\n')
  return 0
}

/** Says how far a target is, now and then. */
function makeProgressReport(minutes: number): (target: TargetName, progress: Progress) => void {
  const told = new Map<TargetName, number>()
  return (target, { cpu, executions, reached, branches, inputs }) => {
    const now = performance.now()
    if (now - (told.get(target) ?? -Infinity) < TELL_EVERY) return
    told.set(target, now)
    process.stderr.write(
      `${target}: ${(cpu / 60).toFixed(1)} of ${minutes} minutes, ${executions} executions, ${reached} of ${branches} branches, ${inputs} inputs\n`,
    )
  }
}

async function main(): Promise<number> {
  const options = readOptions()
  if (options === null) {
    process.stdout.write(USAGE)
    return 0
  }
  const { targets, minutes, atOnce, seed, keep, page, replay } = options
  const [only] = targets
  if (replay !== null && only !== undefined) return replayed(only, replay)

  fitAddon()
  // What was begun is tidied up when the process exits.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const onProgress = makeProgressReport(minutes)
  const waiting = [...targets]
  const results: TargetResult[] = []
  const work = async (): Promise<void> => {
    for (let target = waiting.shift(); target !== undefined; target = waiting.shift()) {
      results.push(await fuzz(target, { seconds: 60 * minutes, seed, keep, onProgress }))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))

  const inOrder = targets.flatMap((target) => results.filter(({ figures }) => figures.target === target))
  const figures = inOrder.map(({ figures }) => withCorpus(figures))
  const result: FuzzResult = { date: today(), machine: thisMachine(), minutes, seed, targets: figures }
  process.stdout.write(`${report(result)}\n`)
  if (page) writePage(result)
  const found = inOrder.filter(({ reproducer }) => reproducer !== null)
  for (const {
    figures: { target, finding },
    reproducer,
  } of found) {
    process.stdout.write(
      `\n${target}: ${String(finding)}\n\n  npm run fuzz:coverage -- --target ${target} --replay ${String(reproducer)}\n`,
    )
  }
  if (found.length > 0) process.stdout.write(`\nwhat was found is kept in ${FINDINGS}\n`)
  return found.length === 0 ? 0 : 1
}

await runCommand(main, USAGE)
