/** docs/contributing/fuzzing.md shows the result that is kept beside it, and names every target. */
import { test } from 'tap'
import { findingIn, NO_PROGRESS, progressOf } from '../../testing/coverage-fuzz/figures.ts'
import { readResult, withResult } from '../../testing/coverage-fuzz/page.ts'
import { TARGET_NAMES } from '../../testing/fuzz/targets.ts'
import { page } from './markdown.ts'

const PAGE = page('docs/contributing/fuzzing.md').text
const KEPT = readResult()

void test('the table is that of the kept result, with every target', (t) => {
  t.equal(withResult(PAGE, KEPT), PAGE, 'npm run fuzz:coverage -- --page')
  t.same(
    KEPT.targets.map(({ target }) => target),
    TARGET_NAMES,
  )
  for (const name of TARGET_NAMES) t.match(PAGE, `| [\`${name}\`](../../testing/fuzz/targets/`, name)
  t.throws(() => withResult('# A page without a place', KEPT), /no place for the result/)
  t.end()
})

void test('figures are read from what libFuzzer writes', (t) => {
  const lines = [
    'INFO: Loaded 4 modules   (714 inline 8-bit counters): 512 [0x7fd4, 0x7fd5), 6 [0x42, 0x48), ',
    '#14\tINITED cov: 99 ft: 214 corp: 13/858b exec/s: 0 rss: 198Mb',
    'CPU 12.5 s',
    '#589821\tDONE   cov: 102 ft: 749 corp: 465/26Kb lim: 948 exec/s: 14385 rss: 302Mb',
    '==1== Uncaught Exception: AssertionError: it is as written',
    '    at examine (json.ts:1:1)',
    "MS: 1 InsertByte-; base unit: a11c artifact_prefix='x'",
    'Done 589821 runs in 41 second(s)',
  ]
  t.same(
    lines.reduce((progress, line) => progressOf(line, progress), NO_PROGRESS),
    {
      cpu: 12.5,
      executions: 589_821,
      reached: 102,
      branches: 202,
      inputs: 465,
    },
  )
  t.equal(findingIn(lines), '==1== Uncaught Exception: AssertionError: it is as written\n    at examine (json.ts:1:1)')
  t.equal(findingIn(lines.slice(0, 4)), null)
  t.end()
})
