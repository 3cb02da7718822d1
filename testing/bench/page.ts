/** The pages of the results: the prose is written by hand, and the text between markers is made of kept results. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Part } from './part.ts'
import { PARTS, type PartName } from './parts.ts'
import type { RequestsResult } from './requests/result.ts'
import type { StreamsResult } from './streams/result.ts'
import { withSummary } from './summary.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Where results are kept. */
export const RESULTS = join(ROOT, 'testing/bench/results')

export const PAGE = join(ROOT, 'docs/contributing/benchmarks.md')

/** The page with few figures. */
export const SUMMARY = join(ROOT, 'docs/explanation/performance.md')

/** All of them. */
export const PART_NAMES = Object.keys(PARTS) as readonly PartName[]

/** What is measured where no part is named: the table of ten million rows takes an hour. */
export const USUAL_PARTS = PART_NAMES.filter((name) => name !== 'ownership')

/** Those whose results are kept. */
export function keptParts(folder: string): readonly PartName[] {
  return PART_NAMES.filter((name) => existsSync(join(folder, `${name}.json`)))
}

/** A part, whatever it makes. */
export function partOf(name: PartName): Part<unknown> {
  return PARTS[name]
}

/** Keeps a result. */
export function writeResult(folder: string, name: PartName, result: unknown): void {
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(result, null, 2)}\n`)
}

/** The kept result of a part, as its table. */
export function readTable(folder: string, name: PartName): string {
  return partOf(name).table(readResult(folder, name))
}

function readResult(folder: string, name: PartName): unknown {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'))
}

/** The kept result of a part as a picture; null for a part without one. */
export function readPlot(folder: string, name: PartName): string | null {
  return partOf(name).plot?.(readResult(folder, name)) ?? null
}

/** Where the picture of a part is, which the page shows. */
export function plotFile(name: PartName): string {
  return join(ROOT, `docs/images/performance-${name}.svg`)
}

/**
 * A page with the tables in their places.
 * @throws an Error if the page has no place for one of them
 */
export function withTables(page: string, tables: ReadonlyMap<PartName, string>): string {
  let text = page
  for (const [name, table] of tables) {
    const [begin, end] = [`<!-- bench ${name}: written by npm run bench -- --page -->`, `<!-- end of bench ${name} -->`]
    const [from, to] = [text.indexOf(begin), text.indexOf(end)]
    if (from < 0 || to < from) throw new Error(`docs/contributing/benchmarks.md has no place for ${name}: ${begin} … ${end}`)
    text = `${text.slice(0, from + begin.length)}\n\n${table}\n\n${text.slice(to)}`
  }
  return text
}

/** docs/explanation/performance.md with the figures of the kept results; unchanged where a result is missing. */
export function withFigures(page: string, folder: string): string {
  const kept = keptParts(folder)
  if (!kept.includes('requests') || !kept.includes('streams')) return page
  return withSummary(page, readResult(folder, 'requests') as RequestsResult, readResult(folder, 'streams') as StreamsResult)
}
