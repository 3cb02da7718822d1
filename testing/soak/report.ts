/** The result as Markdown: the same for the same result. */
import { described } from '../bench/machine.ts'
import { counted, markdownTable } from '../bench/markdown.ts'
import { totalOf, type KindCounts } from './account.ts'
import { KINDS, type Answer, type KindName } from './answer.ts'
import { demandsOf, LEAST_MINUTES, memoryTrend, percent, type Demand } from './demands.ts'
import type { Trend } from './flatness.ts'
import { FAULTS, type FaultName } from './judging.ts'
import type { MadeFault, SoakResult } from './result.ts'

const UNTOLD = '–'

/** All of it. */
export function soakReport(result: SoakResult): string {
  return [head(result), demandTable(result), kindTable(result), faultTable(result), memoryTable(result), rest(result)]
    .concat(result.examples.length > 0 ? [examples(result.examples)] : [])
    .join('\n\n')
}

function head({ date, machine, options, tokenSeconds, heldBack }: SoakResult): string {
  const { minutes, warmUp, workers, rate, streams } = options
  return [
    `${date}, on ${described(machine)}.`,
    `${count(minutes, 'minute')}, of which ${tidy(warmUp)} to warm up;`,
    `${count(workers, 'worker')}; ${rate} requests a second and ${streams} open streams;`,
    `tokens of ${tidy(tokenSeconds)} s on average.`,
    ...(minutes < LEAST_MINUTES ? [`**This run is too short to judge memory:** that takes ${LEAST_MINUTES} minutes.`] : []),
    ...(heldBack > 0 ? [`${counted(heldBack)} requests were not sent, because too many were in progress.`] : []),
  ].join(' ')
}

function demandTable(result: SoakResult): string {
  const met = ({ isMet }: Demand): string => (isMet === null ? 'not judged' : isMet ? 'yes' : '**no**')
  return markdownTable(
    ['Requirement', 'met', 'found'],
    demandsOf(result).map((one) => [one.what, met(one), one.found]),
  )
}

function kindTable({ kinds }: SoakResult): string {
  const faults = Object.keys(FAULTS) as FaultName[]
  const cells = (title: string, one: KindCounts): string[] =>
    [title].concat(
      [one.asked, one.expected, ...faults.map((fault) => one.explained[fault]), one.unexplained, one.wrongOwner].map(counted),
    )
  const names = ['Request', 'answers', 'as expected', ...faults.map((fault) => FAULTS[fault]), 'unexplained', 'wrong owner']
  const lines = (Object.keys(KINDS) as KindName[]).map((name) => cells(KINDS[name], kinds[name]))
  return markdownTable(names, [...lines, cells('all', totalOf(kinds))])
}

function faultTable({ faults }: SoakResult): string {
  const whats = [...new Set(faults.map(({ what }) => what))]
  const lines = whats.map((what) => {
    const some = faults.filter((one) => one.what === what)
    return [
      `${TITLES[some[0]!.fault]}: ${what}`,
      counted(some.length),
      Math.max(...some.map(({ seconds }) => seconds)).toFixed(1),
    ]
  })
  return markdownTable(['Fault', 'times', 'longest, s'], lines)
}

const TITLES: Readonly<Record<MadeFault['fault'], string>> = {
  upstream: 'upstream',
  reload: 'configuration',
  keys: 'issuer keys',
}

function memoryTable(result: SoakResult): string {
  const cells = (title: string, trend: Trend | null): string[] =>
    trend === null
      ? [title, UNTOLD, UNTOLD, UNTOLD, UNTOLD]
      : [title, mib(trend.first), mib(trend.last), percent(trend.change), percent(trend.slopePerHour)]
  return markdownTable(
    ['Memory, MiB', 'first sixth', 'last sixth', 'change', 'slope per hour'],
    [cells('resident', memoryTrend(result, 'rss')), cells('used heap and external memory', memoryTrend(result, 'heap'))],
  )
}

function rest({ before, after, tableBefore, tableAfter, log }: SoakResult): string {
  const lines = Object.entries(log).map(([line, times]) => `\`${line}\` (${counted(times)})`)
  const [files, filesAfter] = [before.files, after.files].map((one) => (one === null ? UNTOLD : counted(one)))
  return [
    markdownTable(
      ['At rest', 'before', 'after'],
      [
        ['open files', files!, filesAfter!],
        ['sockets, timers and requests', counted(before.resources), counted(after.resources)],
        ['open streams', counted(before.openStreams), counted(after.openStreams)],
        ['rows of the ownership table', counted(tableBefore.rows), counted(tableAfter.rows)],
        ['its file and write-ahead log, KiB', kib(tableBefore.bytes), kib(tableAfter.bytes)],
      ],
    ),
    `Log lines of level \`warn\` and above: ${lines.length > 0 ? lines.join(', ') : 'none'}.`,
  ].join('\n\n')
}

function examples(answers: readonly Answer[]): string {
  return ['The first unexplained answers:', '', ...answers.map((one) => `    ${JSON.stringify(one)}`)].join('\n')
}

function count(value: number, of: string): string {
  return `${tidy(value)} ${of}${value === 1 ? '' : 's'}`
}

function tidy(value: number): string {
  return counted(Math.round(100 * value) / 100)
}

function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1)
}

function kib(bytes: number): string {
  return counted(Math.round(bytes / 1024))
}
