/** docs/contributing/fuzzing.md: the prose is written by hand, and the table between markers is made of the kept result. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readCorpus } from '../fuzz/corpora.ts'
import { TARGET_NAMES } from '../fuzz/targets.ts'
import { described, type Machine } from '../bench/machine.ts'
import type { TargetFigures } from './figures.ts'

/** What is kept of a run over all targets. */
export interface FuzzResult {
  readonly date: string
  readonly machine: Machine
  /** Of the processor, for each target. */
  readonly minutes: number
  readonly seed: number
  readonly targets: readonly (TargetFigures & { readonly kept: number; readonly bytes: number })[]
}

const ROOT = join(import.meta.dirname, '../..')
const RESULT = join(ROOT, 'testing/bench/results/fuzzing.json')
const PAGE = join(ROOT, 'docs/contributing/fuzzing.md')
const BEGIN = '<!-- fuzzing: written by npm run fuzz:coverage -- --page -->'
const END = '<!-- end of fuzzing -->'

/** The kept result. */
export function readResult(): FuzzResult {
  return JSON.parse(readFileSync(RESULT, 'utf8')) as FuzzResult
}

/** Keeps a result, and writes it into the page. What it has no figures of keeps those of the run before. */
export function writePage(run: FuzzResult): void {
  const rows = new Map([...readResult().targets, ...run.targets].map((row) => [row.target, row]))
  const result = { ...run, targets: TARGET_NAMES.flatMap((name) => rows.get(name) ?? []) }
  writeFileSync(RESULT, `${JSON.stringify(result, null, 2)}\n`)
  writeFileSync(PAGE, withResult(readFileSync(PAGE, 'utf8'), result))
}

/** Figures with the size of the corpus as it is now. */
export function withCorpus(figures: TargetFigures): FuzzResult['targets'][number] {
  const corpus = readCorpus(figures.target)
  return { ...figures, kept: corpus.length, bytes: corpus.reduce((sum, input) => sum + input.length, 0) }
}

/** A page with a result in its place. @throws an Error if it has no place for it */
export function withResult(page: string, result: FuzzResult): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`docs/contributing/fuzzing.md has no place for the result: ${BEGIN} … ${END}`)
  return `${page.slice(0, from + BEGIN.length)}\n\n${report(result)}\n\n${page.slice(to)}`
}

/** A result as Markdown. */
export function report({ date, machine, minutes, targets }: FuzzResult): string {
  const rows = targets.map((one) =>
    [
      `\`${one.target}\``,
      (one.cpu / 60).toFixed(1),
      one.executions.toLocaleString('en'),
      `${one.reached} of ${one.branches}`,
      one.found.toLocaleString('en'),
      `${one.kept} (${(one.bytes / 1024).toFixed(1)} KiB)`,
      one.finding === null ? 'none' : '**yes**',
    ].join(' | '),
  )
  return [
    `${date}, on ${described(machine)}. ${minutes} minutes of CPU time for each target.`,
    '',
    '| Target | CPU min | Executions | Branches reached | Inputs with new coverage | Corpus | Findings |',
    '| --- | ---: | ---: | ---: | ---: | ---: | --- |',
    ...rows.map((row) => `| ${row} |`),
  ].join('\n')
}
