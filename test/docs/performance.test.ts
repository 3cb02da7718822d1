/** The pages on performance and capacity show the kept results. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { test } from 'tap'
import { figurePages, PART_NAMES, plotFile, readPlot, readTable, RESULTS, withTables } from '../../testing/bench/page.ts'
import { page } from './markdown.ts'

const PAGE = page('docs/contributing/benchmarks.md').text

void test('the tables are those of the kept results', (t) => {
  const tables = new Map(PART_NAMES.map((name) => [name, readTable(RESULTS, name)]))
  t.equal(withTables(PAGE, tables), PAGE, 'npm run bench -- --read --page')
  t.end()
})

void test('the figures of the short pages are those of the kept results', (t) => {
  const pages = figurePages(RESULTS)
  t.equal(pages.size, 2)
  for (const [file, text] of pages) t.equal(readFileSync(file, 'utf8'), text, 'npm run bench -- --read --page')
  t.same([...figurePages('/no/results')], [], 'without all results, the pages stay as they are')
  t.end()
})

void test('the pictures are those of the kept results', (t) => {
  for (const name of PART_NAMES) {
    const plot = readPlot(RESULTS, name)
    if (plot === null) continue
    t.equal(readFileSync(plotFile(name), 'utf8'), plot, 'npm run bench -- --read --page')
    t.match(PAGE, `](../images/${basename(plotFile(name))})`)
  }
  t.end()
})

void test('a table takes the place of the one before, and leaves the rest alone', (t) => {
  const other = withTables(PAGE, new Map([['ownership', 'another table']]))
  t.match(other, '\n\nanother table\n\n')
  t.equal(withTables(other, new Map([['ownership', readTable(RESULTS, 'ownership')]])), PAGE)
  t.throws(() => withTables('# A page without places', new Map([['ownership', '']])), /no place for bench ownership/)
  t.end()
})
