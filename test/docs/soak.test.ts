/** docs/contributing/soak.md shows the result that is kept beside it. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { test } from 'tap'
import { PICTURE, readResult, RESULT, withReport } from '../../testing/soak/page.ts'
import { memoryPlot } from '../../testing/soak/plot.ts'
import { page } from './markdown.ts'

const PAGE = page('docs/contributing/soak.md').text
const KEPT = readResult(RESULT)

void test('the page and its picture are those of the kept result', (t) => {
  t.equal(withReport(PAGE, KEPT), PAGE, 'npm run soak -- --read --page')
  t.equal(readFileSync(PICTURE, 'utf8'), memoryPlot(KEPT), 'npm run soak -- --read --page')
  t.match(PAGE, `](../images/${basename(PICTURE)})`)
  t.end()
})

void test('a report takes the place of the one before, and leaves the rest alone', (t) => {
  const other = withReport(PAGE, { ...KEPT, date: '2001-02-03' })
  t.match(other, '\n\n2001-02-03, on ')
  t.equal(withReport(other, KEPT), PAGE)
  t.throws(() => withReport('# A page without a place', KEPT), /no place for the result/)
  t.end()
})
