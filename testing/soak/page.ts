/** docs/contributing/soak.md: the prose is written by hand, and what stands between markers is made of the kept result. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { memoryPlot } from './plot.ts'
import { soakReport } from './report.ts'
import type { Sample, SoakResult } from './result.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Where the result is kept. */
export const RESULT = join(ROOT, 'testing/bench/results/soak.json')

/** The page, and its picture. */
export const PAGE = join(ROOT, 'docs/contributing/soak.md')
export const PICTURE = join(ROOT, 'docs/images/soak-memory.svg')

const BEGIN = '<!-- soak: written by npm run soak -- --page -->'
const END = '<!-- end of soak -->'

/** Points of the memory that are kept at most. */
const KEPT = 200

/** The kept result. */
export function readResult(file: string): SoakResult {
  return JSON.parse(readFileSync(file, 'utf8')) as SoakResult
}

/** Keeps a result. */
export function writeResult(file: string, result: SoakResult): void {
  writeFileSync(file, `${JSON.stringify({ ...result, samples: thinned(result.samples) }, null, 2)}\n`)
}

/** Neighbours become one, with their means, until there are no more than are kept. */
export function thinned(samples: readonly Sample[]): readonly Sample[] {
  const width = Math.ceil(samples.length / KEPT)
  if (width <= 1) return samples
  return Array.from({ length: Math.ceil(samples.length / width) }, (_, at) => {
    const some = samples.slice(at * width, (at + 1) * width)
    const mean = (figures: readonly number[]): number => figures.reduce((sum, one) => sum + one, 0) / figures.length
    const rss = some.flatMap((one) => (one.rss === null ? [] : [one.rss]))
    return {
      at: mean(some.map((one) => one.at)),
      rss: rss.length === 0 ? null : Math.round(mean(rss)),
      heap: Math.round(mean(some.map((one) => one.heap))),
    }
  })
}

/** A page with the report of a result in its place. @throws an Error if it has no place for it */
export function withReport(page: string, result: SoakResult): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`docs/contributing/soak.md has no place for the result: ${BEGIN} … ${END}`)
  return `${page.slice(0, from + BEGIN.length)}\n\n${soakReport(result)}\n\n${page.slice(to)}`
}

/** Writes the page and its picture. */
export function writePage(result: SoakResult): void {
  writeFileSync(PAGE, withReport(readFileSync(PAGE, 'utf8'), result))
  writeFileSync(PICTURE, memoryPlot(result))
}
