/** The pages of the results: the prose is written by hand, and the text between markers is made of kept results. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withText } from './markdown.ts'
import type { OwnershipResult } from './ownership/result.ts'
import type { Part } from './part.ts'
import { PARTS, type PartName } from './parts.ts'
import type { RequestsResult } from './requests/result.ts'
import type { StreamsResult } from './streams/result.ts'
import { sizing, summary } from './summary.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Where results are kept. */
export const RESULTS = join(ROOT, 'testing/bench/results')

export const PAGE = join(ROOT, 'docs/contributing/benchmarks.md')

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
    text = withText(text, `bench ${name}`, 'npm run bench -- --page', table)
  }
  return text
}

/** The pages with few figures, and the names of their places. */
const FIGURES = { performance: 'docs/explanation/performance.md', sizing: 'docs/how-to/operate/capacity.md' } as const

/** Those pages with the figures of the kept results, by their paths; none where a result is missing. */
export function figurePages(folder: string): ReadonlyMap<string, string> {
  const kept = keptParts(folder)
  if (!(['requests', 'streams', 'ownership'] as const).every((name) => kept.includes(name))) return new Map()
  const requests = readResult(folder, 'requests') as RequestsResult
  const streams = readResult(folder, 'streams') as StreamsResult
  const ownership = readResult(folder, 'ownership') as OwnershipResult
  const texts = { performance: summary(requests, streams), sizing: sizing(requests, streams, ownership) }
  return new Map(
    Object.entries(texts).map(([name, text]) => {
      const file = join(ROOT, FIGURES[name as keyof typeof FIGURES])
      return [file, withText(readFileSync(file, 'utf8'), name, 'npm run bench -- --read --page', text)] as const
    }),
  )
}
