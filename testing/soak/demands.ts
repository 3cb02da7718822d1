/** The requirements of a soak. */
import { counted } from '../bench/markdown.ts'
import { totalOf } from './account.ts'
import { isFlat, trendOf, type Trend } from './flatness.ts'
import type { Sample, SoakResult } from './result.ts'

/** A demand. */
export interface Demand {
  readonly what: string
  /** Null: this soak can't tell. */
  readonly isMet: boolean | null
  readonly found: string
}

/** A shorter soak says nothing of memory: minutes. */
export const LEAST_MINUTES = 20

/** File descriptors that may come on top for each process: a connection that is being closed. */
const SPARE_FILES = 10

/** The line of level `error` that is caused on purpose, by a policy that can't be read. */
const REFUSED_CHANGE = 'error: the configuration was not changed: the last good one stays in force'

/** All of them. */
export function demandsOf(result: SoakResult): readonly Demand[] {
  const { kinds, failedFaults, options, before, after, tableBefore, tableAfter, claimed, firstRuns, log } = result
  const { asked, unexplained, wrongOwner } = totalOf(kinds)
  const trend = memoryTrend(result, 'rss')
  const files = before.files === null || after.files === null ? null : after.files - before.files
  const rows = tableAfter.rows - tableBefore.rows
  const errors = Object.entries(log).filter(([line]) => line.startsWith('error: ') && line !== REFUSED_CHANGE)
  return [
    { what: "No caller received another user's data", isMet: wrongOwner === 0, found: `wrong owner: ${counted(wrongOwner)}` },
    {
      what: 'The faults explain every unexpected answer',
      isMet: asked > 0 && unexplained === 0,
      found: `${counted(unexplained)} of ${counted(asked)} unexplained`,
    },
    {
      what: 'The gateway recovered from every fault',
      isMet: failedFaults.length === 0,
      found: failedFaults.length === 0 ? `${counted(result.faults.length)} faults` : failedFaults.join('; '),
    },
    {
      what: 'No log line of level error, except those of the unreadable policies',
      isMet: errors.length === 0,
      found: errors.length === 0 ? 'none' : errors.map(([line, count]) => `${line} (${counted(count)})`).join('; '),
    },
    {
      what: 'Resident memory is flat',
      isMet: trend === null || options.minutes < LEAST_MINUTES ? null : isFlat(trend),
      found: trend === null ? 'unknown' : percent(trend.change),
    },
    {
      what: 'No stream is open after the last client disconnected',
      isMet: after.openStreams === 0,
      found: counted(after.openStreams),
    },
    {
      what: 'No more open files than before',
      isMet: files === null ? null : files <= SPARE_FILES * Math.max(1, options.workers),
      found: files === null ? 'unknown' : `${before.files} before, ${after.files} after`,
    },
    {
      what: 'The table has a row for each claimed thread',
      isMet: rows >= claimed && rows <= firstRuns,
      found: `${counted(rows)} new rows; ${counted(claimed)} of ${counted(firstRuns)} first runs were answered`,
    },
  ]
}

/** How the memory went on after the warm-up. */
export function memoryTrend({ samples, options }: SoakResult, figure: 'rss' | 'heap'): Trend | null {
  const told = samples.filter((sample): sample is Sample & { rss: number } => sample[figure] !== null)
  const points = told.map((sample) => ({ at: 1000 * sample.at, value: sample[figure] }))
  return trendOf(points, 60_000 * options.warmUp, 60_000 * options.minutes)
}

/** A part, with its sign. */
export function percent(part: number): string {
  return `${part < 0 ? '−' : '+'}${(100 * Math.abs(part)).toFixed(1)} %`
}
