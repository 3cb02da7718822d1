/** Runs a property over many cases, and reports how it went: the counts, or a counter-example shrunk to be pasted. */
import fc from 'fast-check'
import { hush } from './hush.ts'
import { makeTally, type Finding, type Subject, type Tally } from './tally.ts'

/** How a run went. */
export interface Report {
  readonly tally: Tally
  readonly seed: number
  /** What broke the property, with what to do; null if nothing did. */
  readonly counterExample: string | null
}

/** What to run. */
export interface Run<One> {
  readonly subject: Subject<One>
  readonly arbitrary: fc.Arbitrary<One>
  readonly examine: (one: One) => Promise<Finding>
  readonly cases: number
  readonly seed: number
  /** Called after each case. */
  readonly onCase?: (tally: Tally) => void
}

/** Runs. Cases are made one after the other, so a seed makes the same ones again. */
export async function run<One>({ subject, arbitrary, examine, cases, seed, onCase }: Run<One>): Promise<Report> {
  const tally = makeTally(subject)
  const speak = hush()
  try {
    const details = await fc.check(
      fc.asyncProperty(arbitrary, async (one) => {
        const finding = await examine(one)
        tally.add(finding)
        onCase?.(tally)
        return finding.faults.length === 0
      }),
      { numRuns: cases, seed },
    )
    const smallest = details.counterexample?.[0]
    const counterExample = smallest === undefined ? null : await describe(smallest, subject, examine, seed)
    return { tally, seed, counterExample }
  } finally {
    speak()
  }
}

async function describe<One>(
  one: One,
  { file, source }: Subject<One>,
  examine: Run<One>['examine'],
  seed: number,
): Promise<string> {
  const faults = await examine(one).then(
    (finding) => finding.faults,
    (error: unknown) => [String(error)],
  )
  return [
    ...faults,
    '',
    `seed ${seed}; for ${file}:`,
    '',
    `void test(${JSON.stringify(faults[0] ?? 'it is not always so')}, async (t) => {`,
    `  t.same((await examine(${source(one)})).faults, [])`,
    '})',
  ].join('\n')
}

/** The seed that the environment names, or any. */
export function seedOfEnvironment(): number {
  const named = process.env['THREADWARDEN_FUZZ_SEED']
  if (named === undefined || named === '') return Math.floor(Math.random() * 0x7fff_ffff)
  if (!/^-?\d+$/.test(named)) throw new Error('THREADWARDEN_FUZZ_SEED is not a whole number')
  return Number(named)
}
