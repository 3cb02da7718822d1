/** The doctor's findings, one for each check, including a check that could not run, and how they are shown. */
import { largest } from '../../core/json/extremes.ts'

/** How serious a finding is. `unknown` means that the doctor could not check or decide: it never counts as fine. */
type Level = 'ok' | 'warning' | 'problem' | 'unknown'

export interface Finding {
  /** The name of the check, as `part.check`. Scripts rely on this name. */
  readonly check: string
  readonly level: Level
  readonly message: string
  readonly remedy?: string
}

/** The result of a check; by default it is about the check itself. */
export type Result = Omit<Finding, 'check'> & Partial<Pick<Finding, 'check'>>

export const ok = (message: string): Result => ({ level: 'ok', message })

export const warning = (message: string, remedy: string): Result => ({ level: 'warning', message, remedy })

export const problem = (message: string, remedy: string): Result => ({ level: 'problem', message, remedy })

export const unknown = (message: string, remedy?: string): Result => ({
  level: 'unknown',
  message,
  ...(remedy === undefined ? {} : { remedy }),
})

export const notChecked = (why: string, remedy?: string): Result => unknown(`not checked: ${why}`, remedy)

export function isFault({ level }: Finding): boolean {
  return level === 'problem' || level === 'warning'
}

export function seconds(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${Math.round(milliseconds / 100) / 10} s`
}

/** Shorter values also occur as ordinary words, and are not secrets. */
const LEAST_SECRET = 6

const MOST_TEXT = 600

/** Removes secrets and terminal controls from findings, whatever answer they came from. */
export function makeRedactor(secrets: readonly string[]): (finding: Finding) => Finding {
  // The longest first: a secret may be part of another.
  const hidden = secrets.filter((secret) => secret.length >= LEAST_SECRET).sort((a, b) => b.length - a.length)
  const any = hidden.length === 0 ? null : new RegExp(hidden.map(literally).join('|'), 'gi')
  const clean = (text: string): string => {
    const without = any === null ? text : text.replace(any, '(hidden)')
    const printable = without.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, ' ')
    return printable.length > MOST_TEXT ? `${printable.slice(0, MOST_TEXT)}…` : printable
  }
  return ({ remedy, ...finding }) => ({
    ...finding,
    message: clean(finding.message),
    ...(remedy === undefined ? {} : { remedy: clean(remedy) }),
  })
}

function literally(text: string): string {
  return text.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&')
}

const MARKS: Readonly<Record<Level, string>> = { ok: 'ok', warning: 'WARNING', problem: 'PROBLEM', unknown: 'unknown' }
const WIDTH = largest(Object.values(MARKS).map((mark) => mark.length))

type Style = 'green' | 'yellow' | 'red' | 'dim'

export type Paint = (style: Style, text: string) => string

const STYLES: Readonly<Record<Level, Style>> = { ok: 'green', warning: 'yellow', problem: 'red', unknown: 'dim' }

export function report(findings: readonly Finding[], paint: Paint = (_style, text) => text): string {
  const groups = Map.groupBy(findings, ({ check }) => check.split('.')[0] ?? check)
  const text = [...groups].map(([part, members]) => [part, ...members.flatMap((one) => linesOf(one, paint))].join('\n'))
  return [...text, summary(findings)].join('\n\n')
}

function linesOf({ check, level, message, remedy }: Finding, paint: Paint): readonly string[] {
  const name = check.split('.')[1]
  const line = `  ${paint(STYLES[level], MARKS[level].padEnd(WIDTH))}  ${name === undefined ? '' : `${name}: `}${message}`
  return remedy === undefined ? [line] : [line, `  ${' '.repeat(WIDTH)}  → ${remedy}`]
}

function summary(findings: readonly Finding[]): string {
  const counts = count(findings)
  const part = (level: Level, one: string, many: string): string => `${counts[level]} ${counts[level] === 1 ? one : many}`
  return `${[part('problem', 'problem', 'problems'), part('warning', 'warning', 'warnings'), `${counts.unknown} unknown`, `${counts.ok} ok`].join(', ')}.`
}

export function asData(findings: readonly Finding[]): object {
  return { healthy: !findings.some(isFault), counts: count(findings), findings }
}

function count(findings: readonly Finding[]): Readonly<Record<Level, number>> {
  const of = (level: Level): number => findings.filter((finding) => finding.level === level).length
  return { problem: of('problem'), warning: of('warning'), unknown: of('unknown'), ok: of('ok') }
}
