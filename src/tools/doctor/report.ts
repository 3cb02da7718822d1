/** Formats findings for people and for programs. */
import { isFault, type Finding, type Level } from './finding.ts'
import { largest } from '../../core/json/extremes.ts'

const MARKS: Readonly<Record<Level, string>> = { ok: 'ok', warning: 'WARNING', problem: 'PROBLEM', unknown: 'unknown' }
const WIDTH = largest(Object.values(MARKS).map((mark) => mark.length))

export function report(findings: readonly Finding[]): string {
  const groups = Map.groupBy(findings, ({ check }) => check.split('.')[0] ?? check)
  const text = [...groups].map(([part, members]) => [part, ...members.flatMap(linesOf)].join('\n'))
  return [...text, summary(findings)].join('\n\n')
}

function linesOf({ check, level, message, remedy }: Finding): readonly string[] {
  const name = check.split('.')[1]
  const line = `  ${MARKS[level].padEnd(WIDTH)}  ${name === undefined ? '' : `${name}: `}${message}`
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
