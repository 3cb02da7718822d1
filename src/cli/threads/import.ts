/** `threadwarden threads import`: takes over the owners of threads from a file, the upstream's list, or observations. */
import { importFrom, type ImportReport } from '../../tools/import-export/import.ts'
import {
  confirmObserved,
  type ObservedTarget,
  EMPTY_TARGET,
  type Tally,
  type Target,
} from '../../tools/import-export/takeover.ts'
import { SourceFault } from '../../tools/import-export/problem.ts'
import { StoreUnavailable } from '../../store/port/state.ts'
import type { ObservationStore } from '../../store/port/observations.ts'
import { CommandFailed, defineCommand, EXIT } from '../command.ts'
import { columns, complain, printData, printLines, type Terminal } from '../terminal.ts'
import { requireIssuer } from '../argument-values.ts'
import { loadConfig } from '../input-files.ts'
import { missingStore, onStore, withStore } from '../with-store.ts'
import { withProgress, type LongWork } from '../with-progress.ts'
import { sourceOf, type SourceOpener, importTask, OPTIONS, type ImportOptions } from './import-source.ts'
import { makeProblemReport, type ProblemReport } from './problem-report.ts'

export const command = defineCommand({
  usage: ['FILE', '--from-upstream (--map FILE | --owner-field FIELD --issuer KEY)', '--from-observed'],
  about: `Imports the owners of existing threads. It never replaces an owner. It reports a conflict and changes nothing if a thread has
another owner, is deleted, was run by other users under enforcement: observe, or has two users in the source. The command reads the
whole source before it writes. After an interruption, run the same command again.

FILE as csv has a header with the columns thread and user, and optionally agent, name, archived, created, used, deleted, scope. As
jsonl it has one object with these keys per line. user is issuer:subject, or "nobody" for a thread that no user may use. scope is the
key of an upstream (default: --scope, or upstream). Times are written 2026-01-31T12:00:00Z. threads export writes such files.

--from-upstream reads the thread list of a runtime or a LangGraph server: the first one, or the one that --scope names. The owners
come from a mapping or from a field of the list, for a LangGraph server from the metadata of its threads. --from-observed uses the observations under enforcement: observe of all upstreams, or of the one that
--scope names. The user who ran a thread becomes its owner. A thread that several users ran is a conflict: use threads assign.`,
  positionals: { FILE: 'a file, or - for stdin' },
  options: OPTIONS,
  exitCodes: {
    0: 'all threads are imported',
    1: 'conflicts or invalid lines, interrupted, an invalid configuration or a failing store',
  },
  examples: [
    'threadwarden threads import owners.csv --dry-run',
    'threadwarden threads import --from-upstream --owner-field createdById --issuer corp',
    'threadwarden threads import --from-upstream --scope graphs --owner-field /metadata/owner --issuer corp',
    'threadwarden threads import --from-observed',
  ],

  async run(values, terminal, positionals) {
    const task = importTask(values, positionals)
    if (task.kind === 'observed') {
      return onStore(terminal, values, ({ store, scope }) =>
        reporting(terminal, values, (work) => importObserved(store, scope, work)),
      )
    }
    const prepared = loadConfig(terminal, values)
    if (task.kind === 'upstream' && 'issuer' in task.whose) {
      const { issuer } = task.whose
      requireIssuer(`--issuer ${issuer}`, `${issuer}:anybody`, prepared.config)
    }
    const open = sourceOf(task, values.scope, prepared)
    const missing = await missingStore(prepared.config)
    const from = (target: Target): Promise<number> => reporting(terminal, values, (work) => importSource(open, target, work))
    if (missing !== null && values['dry-run']) {
      complain(terminal, `the store ${missing} does not exist: the import would create it`)
      return from(EMPTY_TARGET)
    }
    if (missing !== null) complain(terminal, `the store ${missing} does not exist: the import creates it`)
    return withStore(terminal, prepared, { make: true }, from)
  },
})

interface Work extends LongWork {
  readonly terminal: Terminal
  readonly dryRun: boolean
  readonly problems: ProblemReport
  readonly tally: Tally
  /** Milliseconds since the epoch. */
  readonly now: number
}

async function reporting(
  terminal: Terminal,
  options: ImportOptions,
  work: (work: Work) => Promise<ImportReport>,
): Promise<number> {
  const dryRun = options['dry-run']
  const problems = makeProblemReport(options.report)
  const tally: Tally = { added: 0, same: 0, conflicts: 0 }
  try {
    const report = await withProgress(terminal, options, (long) =>
      work({ ...long, terminal, dryRun, problems, tally, now: Date.now() }),
    )
    for (const line of problems.summary()) complain(terminal, line)
    if (options.json) printData(terminal, { dryRun, ...report })
    else printLines(terminal, columns(counts(report, dryRun ? 'would be added' : 'added')))
    if (!report.complete) complain(terminal, `interrupted: ${goOn(tally)}`)
    const clean = report.complete && report.conflicts + report.invalid + report.unmapped === 0
    return clean ? EXIT.fine : EXIT.failure
  } catch (error) {
    if (!(error instanceof SourceFault) && !(error instanceof StoreUnavailable)) throw error
    for (const line of problems.summary()) complain(terminal, line)
    throw new CommandFailed(`error: ${error.message}; ${error instanceof SourceFault ? 'nothing was imported' : goOn(tally)}`)
  } finally {
    problems.close()
  }
}

function goOn({ added, same, conflicts }: Tally): string {
  return `${added + same + conflicts} threads were processed (${added} added): run the same command again to continue`
}

const NOTHING_READ = { read: 0, repeated: 0, invalid: 0, unmapped: 0, unlisted: null }

async function importObserved(
  store: ObservedTarget & Pick<ObservationStore, 'unowned'>,
  scope: string | undefined,
  { progress, problems, tally, ...work }: Work,
): Promise<ImportReport> {
  progress.begin('processed', scope === undefined ? await work.retry(() => store.unowned()) : null)
  const options = { ...work, onProblem: problems.add, onProgress: (done: number) => progress.at(done) }
  const { interrupted } = await confirmObserved(store, scope, tally, options)
  const read = tally.added + tally.same + tally.conflicts
  return { ...tally, ...NOTHING_READ, read, complete: !interrupted }
}

async function importSource(
  open: SourceOpener,
  target: Target,
  { progress, problems, tally, ...work }: Work,
): Promise<ImportReport> {
  const source = await open({ terminal: work.terminal, progress, signal: work.signal, onProblem: problems.add })
  if (source === null) return { ...tally, ...NOTHING_READ, complete: false }
  try {
    const report = await importFrom(source, target, tally, {
      ...work,
      onProblem: problems.add,
      onRead: (threads) => progress.begin('processed', threads),
      onSettled: (done) => progress.at(done),
    })
    return { ...report, invalid: report.invalid + source.invalid }
  } finally {
    await source.close()
  }
}

function counts(report: ImportReport, addedLabel: string): readonly (readonly string[])[] {
  const { added, same, repeated, conflicts, invalid, unmapped, unlisted } = report
  const always: readonly (readonly [number, string])[] = [
    [added, addedLabel],
    [same, 'existed already'],
    [conflicts, 'conflicts, not changed'],
    [invalid, 'invalid'],
  ]
  const sometimes: readonly (readonly [number, string])[] = [
    [repeated, 'repeated lines'],
    [unmapped, 'in the list, without an owner'],
    [unlisted ?? 0, 'in the mapping, not in the list'],
  ]
  return [...always, ...sometimes.filter(([count]) => count > 0)].map(([count, what]) => [String(count), what])
}
