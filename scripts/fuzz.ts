/**
 * The long run of the differential fuzz (testing/fuzz): generated requests, put to the gateway and to the real runtime or LangGraph
 * server.
 * Ends at the first counter-example, printed small, as a test to paste.
 */
import { parseArgs } from 'node:util'
import { RUNTIME } from '../testing/fuzz/case.ts'
import { examine } from '../testing/fuzz/differential.ts'
import { anyCase, runCase } from '../testing/fuzz/grammar.ts'
import { examineRun } from '../testing/fuzz/nested-keys.ts'
import { LANGGRAPH } from '../testing/fuzz/langgraph/case.ts'
import { makeExamine } from '../testing/fuzz/langgraph/examine.ts'
import { langGraphCases } from '../testing/fuzz/langgraph/grammar.ts'
import { run, seedOfEnvironment, type Report, type Run } from '../testing/fuzz/run.ts'
import { MOUNTS, startWire, wireCases } from '../testing/fuzz/wire.ts'
import { runCommand, UsageError } from '../testing/command.ts'

const USAGE = `Requests that a hostile caller might write, put to the gateway and to the real runtime or LangGraph server.

  npm run fuzz -- [--cases N] [--runs N] [--wire N] [--langgraph N] [--seed S]

  --cases      how many, in this process (default: 200000)
  --runs       how many runs with keys that AG-UI does not have (default: as many as the cases)
  --wire       how many over real sockets, before each of ${MOUNTS.length} runtimes (default: a hundredth of the cases)
  --langgraph  how many before a LangGraph server (default: half as many again as the cases)
  --seed       a whole number; the same one makes the same cases (default: THREADWARDEN_FUZZ_SEED, or any)

Exit code: 0 if nothing was found, 1 with a counter-example, 2 for wrong usage.
`

/** How often the progress is told, in milliseconds: often to a person, seldom to a file. */
const TELL_EVERY = process.stderr.isTTY ? 500 : 15_000

interface Options {
  readonly cases: number
  readonly runs: number
  readonly wire: number
  readonly langgraph: number
  readonly seed: number
}

function read(): Options | null {
  const { values } = parseArgs({
    options: {
      cases: { type: 'string', default: '200000' },
      runs: { type: 'string' },
      wire: { type: 'string' },
      langgraph: { type: 'string' },
      seed: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return null
  const cases = count('cases', values.cases)
  return {
    cases,
    runs: values.runs === undefined ? cases : count('runs', values.runs),
    wire: values.wire === undefined ? Math.ceil(cases / 100) : count('wire', values.wire),
    langgraph: values.langgraph === undefined ? Math.ceil(cases * 1.5) : count('langgraph', values.langgraph),
    seed: values.seed === undefined ? seedOfEnvironment() : count('seed', values.seed),
  }
}

function count(name: string, text: string): number {
  if (!/^-?\d{1,10}$/.test(text) || (name !== 'seed' && Number(text) < 0)) throw new UsageError(`--${name} is a whole number`)
  return Number(text)
}

async function follow<One>(title: string, what: Omit<Run<One>, 'onCase'>): Promise<Report> {
  const began = performance.now()
  let told = began
  const end = process.stderr.isTTY ? '\r' : '\n'
  const report = await run({
    ...what,
    onCase: ({ cases, served }) => {
      const now = performance.now()
      if (now - told < TELL_EVERY) return
      told = now
      const rate = Math.round((cases / (now - began)) * 1000)
      process.stderr.write(
        `${title}: ${cases} of ${what.cases} cases, ${served} served, ${rate} a second, seed ${what.seed}  ${end}`,
      )
    },
  })
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  process.stdout.write(`${title}, seed ${what.seed}, ${seconds} s\n${report.tally.lines().join('\n')}\n\n`)
  if (report.counterExample !== null) process.stdout.write(`A counter-example:\n${report.counterExample}\n`)
  return report
}

async function main(): Promise<number> {
  const options = read()
  if (options === null) {
    process.stdout.write(USAGE)
    return 0
  }
  const { cases, runs, wire: overSockets, langgraph, seed } = options
  if (cases > 0) {
    const report = await follow('in process', { subject: RUNTIME, arbitrary: anyCase, examine, cases, seed })
    if (report.counterExample !== null) return 1
  }
  if (runs > 0) {
    const report = await follow('keys inside runs', {
      subject: RUNTIME,
      arbitrary: runCase,
      examine: examineRun,
      cases: runs,
      seed,
    })
    if (report.counterExample !== null) return 1
  }
  if (langgraph > 0) {
    const what = { subject: LANGGRAPH, arbitrary: langGraphCases, examine: await makeExamine(), cases: langgraph, seed }
    const report = await follow('before a LangGraph server', what)
    if (report.counterExample !== null) return 1
  }
  if (overSockets === 0) return 0
  for (const [at, mount] of MOUNTS.entries()) {
    const wire = await startWire(mount)
    const what = { subject: RUNTIME, arbitrary: wireCases(mount), examine: wire.examine, cases: overSockets, seed: seed + at }
    try {
      const report = await follow(`over sockets: ${mount.join(', ')}`, what)
      if (report.counterExample !== null) return 1
    } finally {
      await wire.close()
    }
  }
  return 0
}

await runCommand(main, USAGE)
