/** `threadwarden threads import`: takes over whose threads are, from a file, the upstream's list, or what was observed. */
import { importFrom, type ImportReport } from '../../adoption/import.ts'
import { confirmObserved } from '../../adoption/observed.ts'
import { SourceFault } from '../../adoption/source-line.ts'
import { EMPTY_TARGET, type Tally, type Target } from '../../adoption/takeover.ts'
import type { Prepared } from '../../prepare.ts'
import { StoreUnavailable, type Store } from '../../store/port.ts'
import { complain, EXIT, print, type Command } from '../command.ts'
import { loaded } from '../loading.ts'
import { requireIssuer } from '../naming.ts'
import { onStore, peopleIn, withStore } from '../on-store.ts'
import { missingStore } from '../store-look.ts'
import { steadily, type Steady } from '../steady.ts'
import { columns } from '../terminal.ts'
import { IMPORT_HELP } from './import-help.ts'
import { fileSource, upstreamSource } from './import-source.ts'
import { importWishes, type ImportTask, type ImportWishes } from './import-task.ts'
import { makeProblemReport, type ProblemReport } from './problem-report.ts'

/** The command. */
export const importThreads: Command = {
  summary: 'takes over whose threads are',
  help: IMPORT_HELP,

  async run(args) {
    const wishes = importWishes(args)
    const { task, dryRun } = wishes
    if (task.kind === 'observed') {
      return onStore(wishes, ({ store }) => reporting(wishes, (work) => importObserved(store, work)))
    }
    const prepared = loaded(wishes.config, wishes.json)
    if (prepared === null) return EXIT.failure
    if (task.kind === 'upstream' && 'issuer' in task.whose) requireIssuer(task.whose.issuer, prepared.config)
    const missing = await missingStore(prepared.config)
    const from = (target: Target): Promise<number> => reporting(wishes, (work) => importSource(task, prepared, target, work))
    if (missing !== null && dryRun) {
      complain(`the store ${missing} is not there: the import would make it`)
      return from(EMPTY_TARGET)
    }
    if (missing !== null) complain(`the store ${missing} is not there: it is made`)
    return withStore(prepared, { make: true }, from)
  },
}

/** What an import is done with. */
interface Work extends Steady {
  readonly dryRun: boolean
  readonly problems: ProblemReport
  readonly tally: Tally
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Does an import, and says what came of it. */
async function reporting(wishes: ImportWishes, work: (work: Work) => Promise<ImportReport>): Promise<number> {
  const { dryRun, json, quiet, report: file } = wishes
  const problems = makeProblemReport(file)
  const tally: Tally = { added: 0, same: 0, conflicts: 0 }
  try {
    const report = await steadily(quiet, (steady) => work({ ...steady, dryRun, problems, tally, now: Date.now() }))
    for (const line of problems.summary()) complain(line)
    if (json) print(JSON.stringify({ dryRun, ...report }, null, 2))
    else print(columns(counts(report, dryRun)))
    if (!report.complete) complain(`interrupted: ${goOn(tally)}`)
    const clean = report.complete && report.conflicts + report.invalid + report.unmapped === 0
    return clean ? EXIT.fine : EXIT.failure
  } catch (error) {
    if (!(error instanceof SourceFault) && !(error instanceof StoreUnavailable)) throw error
    for (const line of problems.summary()) complain(line)
    complain(`error: ${error.message}${error instanceof SourceFault ? '; nothing was imported' : `; ${goOn(tally)}`}`)
    return EXIT.failure
  } finally {
    problems.close()
  }
}

function goOn({ added, same, conflicts }: Tally): string {
  return `${added + same + conflicts} threads were settled (${added} added); the same command goes on`
}

async function importObserved(store: Store, { progress, problems, tally, ...work }: Work): Promise<ImportReport> {
  progress.begin('settled', await work.patience(() => store.unowned()))
  const options = { ...work, onProblem: problems.add, onProgress: (done: number) => progress.at(done) }
  const { interrupted } = await confirmObserved(store, tally, options)
  const read = tally.added + tally.same + tally.conflicts
  return { ...tally, read, repeated: 0, invalid: 0, unmapped: 0, unlisted: null, complete: !interrupted }
}

async function importSource(
  task: Exclude<ImportTask, { kind: 'observed' }>,
  { config }: Prepared,
  target: Target,
  { progress, problems, tally, ...work }: Work,
): Promise<ImportReport> {
  const { signal, now } = work
  const parts = { config, reading: { people: peopleIn(config), now }, progress, signal, onProblem: problems.add }
  const source = task.kind === 'file' ? fileSource(task, parts) : await upstreamSource(task, parts)
  if (source === null) return { ...tally, read: 0, repeated: 0, invalid: 0, unmapped: 0, unlisted: null, complete: false }
  try {
    const report = await importFrom(source, target, tally, {
      ...work,
      onProblem: problems.add,
      onRead: (threads) => progress.begin('settled', threads),
      onSettled: (done) => progress.at(done),
    })
    return { ...report, invalid: report.invalid + source.invalid }
  } finally {
    await source.close()
  }
}

function counts(report: ImportReport, dryRun: boolean): readonly (readonly string[])[] {
  const { added, same, repeated, conflicts, invalid, unmapped, unlisted } = report
  const always: readonly (readonly [number, string])[] = [
    [added, dryRun ? 'would be added' : 'added'],
    [same, 'there already'],
    [conflicts, 'conflicts, left as they are'],
    [invalid, 'invalid'],
  ]
  const sometimes: readonly (readonly [number, string])[] = [
    [repeated, 'lines that say it again'],
    [unmapped, 'of the list, without an owner'],
    [unlisted ?? 0, 'of the mapping, not in the list'],
  ]
  return [...always, ...sometimes.filter(([count]) => count > 0)].map(([count, what]) => [String(count), what])
}
