/** `threadwarden threads import`: takes over the owners of threads from a file, the upstream's list, or observations. */
import { importFrom, type ImportReport } from '../../tools/import-export/import.ts'
import type { Reading } from '../../tools/import-export/entry.ts'
import { confirmObserved } from '../../tools/import-export/observed.ts'
import { SourceFault } from '../../tools/import-export/source-line.ts'
import { EMPTY_TARGET, type Tally, type Target } from '../../tools/import-export/takeover.ts'
import { scopesIn } from '../../config/mounts.ts'
import type { Prepared } from '../../snapshot/load.ts'
import { StoreUnavailable, type Store } from '../../store/port.ts'
import { complain, EXIT, printData, printLines, type Command } from '../command.ts'
import { loaded } from '../input-files.ts'
import { requireIssuer } from '../argument-values.ts'
import { onStore, peopleIn, withStore } from '../with-store.ts'
import { importScope, runtimeNamed, scopeNamed } from '../scope-option.ts'
import { missingStore } from '../inspect-store.ts'
import { withProgress, type LongWork } from '../with-progress.ts'
import { columns } from '../terminal.ts'
import { IMPORT_HELP } from './import-help.ts'
import { fileSource, upstreamSource, type OpenSource, type SourceParts } from './import-source.ts'
import { importWishes, type ImportTask, type ImportWishes } from './import-options.ts'
import { makeProblemReport, type ProblemReport } from './problem-report.ts'

export const importThreads: Command = {
  summary: 'takes over whose threads are',
  help: IMPORT_HELP,

  async run(args) {
    const wishes = importWishes(args)
    const { task, dryRun } = wishes
    if (task.kind === 'observed') {
      return onStore(wishes, async (opened) => {
        const scope = await scopeNamed(wishes.scope, opened)
        return reporting(wishes, (work) => importObserved(opened.store, scope, work))
      })
    }
    const prepared = loaded(wishes.config, wishes.json)
    if (prepared === null) return EXIT.failure
    if (task.kind === 'upstream' && 'issuer' in task.whose) requireIssuer(task.whose.issuer, prepared.config)
    const wanted = sourceOf(task, wishes.scope, prepared)
    const missing = await missingStore(prepared.config)
    const from = (target: Target): Promise<number> => reporting(wishes, (work) => importSource(wanted, target, work))
    if (missing !== null && dryRun) {
      complain(`the store ${missing} is not there: the import would make it`)
      return from(EMPTY_TARGET)
    }
    if (missing !== null) complain(`the store ${missing} is not there: it is made`)
    return withStore(prepared, { make: true }, from)
  },
}

interface Work extends LongWork {
  readonly dryRun: boolean
  readonly problems: ProblemReport
  readonly tally: Tally
  /** Milliseconds since the epoch. */
  readonly now: number
}

async function reporting(wishes: ImportWishes, work: (work: Work) => Promise<ImportReport>): Promise<number> {
  const { dryRun, json, quiet, report: file } = wishes
  const problems = makeProblemReport(file)
  const tally: Tally = { added: 0, same: 0, conflicts: 0 }
  try {
    const report = await withProgress(quiet, (steady) => work({ ...steady, dryRun, problems, tally, now: Date.now() }))
    for (const line of problems.summary()) complain(line)
    if (json) printData({ dryRun, ...report })
    else printLines(columns(counts(report, dryRun)))
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

async function importObserved(
  store: Store,
  scope: string | undefined,
  { progress, problems, tally, ...work }: Work,
): Promise<ImportReport> {
  progress.begin('settled', scope === undefined ? await work.retry(() => store.unowned()) : null)
  const options = { ...work, onProblem: problems.add, onProgress: (done: number) => progress.at(done) }
  const { interrupted } = await confirmObserved(store, scope, tally, options)
  const read = tally.added + tally.same + tally.conflicts
  return { ...tally, read, repeated: 0, invalid: 0, unmapped: 0, unlisted: null, complete: !interrupted }
}

interface WantedSource {
  readonly reading: Omit<Reading, 'now'>
  readonly open: (parts: SourceParts) => OpenSource | Promise<OpenSource | null>
}

/** @throws UsageError for an unknown upstream, or one without a list */
function sourceOf(
  task: Exclude<ImportTask, { kind: 'observed' }>,
  scope: string | undefined,
  { config }: Prepared,
): WantedSource {
  const reading = { people: peopleIn(config), scopes: scopesIn(config) }
  if (task.kind === 'file')
    return { reading: { ...reading, scope: importScope(scope, config) }, open: (parts) => fileSource(task, parts) }
  const runtime = runtimeNamed(scope, config)
  return { reading: { ...reading, scope: runtime.scope }, open: (parts) => upstreamSource(task, runtime, parts) }
}

async function importSource(
  { reading, open }: WantedSource,
  target: Target,
  { progress, problems, tally, ...work }: Work,
): Promise<ImportReport> {
  const { signal, now } = work
  const source = await open({ reading: { ...reading, now }, progress, signal, onProblem: problems.add })
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
