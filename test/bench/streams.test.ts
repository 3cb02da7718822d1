/** The benchmark of open streams, as a command: what it measures, and what it keeps. Not how fast anything is. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { medianOf } from '../../testing/bench/streams/measuring.ts'
import { tooFewFiles } from '../../testing/bench/streams/open-files.ts'
import type { MeasuredStreams, StreamsResult } from '../../testing/bench/streams/result.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { bench, benchWith, otherCheckout, scratchIn } from './command.ts'

const BRIEFLY = ['--streams=20', '--seconds=1', '--rounds=1'] as const

const readResult = (folder: string) => JSON.parse(readFileSync(join(folder, 'streams.json'), 'utf8')) as StreamsResult

void test('streams are opened through each row, and events arrive', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const { status, stdout, stderr } = benchWith(
    { TMPDIR: folder },
    'streams',
    ...BRIEFLY,
    '--only=gateway,http-proxy',
    `--out=${folder}`,
  )
  t.equal(status, 0, stderr)
  const { streams, measured, rows } = readResult(folder)
  t.equal(streams, 20)
  t.same(
    measured.map(({ row, opened, cut }) => ({ row, opened, cut })),
    ['gateway', 'http-proxy'].map((row) => ({ row, opened: 20, cut: 0 })),
  )
  for (const { row, events, expected, p50, p99 } of measured) {
    t.ok(events > 0 && events <= expected, row)
    t.ok(p50 !== null && p99 !== null && p50 > 0 && p99 >= p50, row)
  }
  for (const { title } of rows) t.match(stdout, `| ${title} |`)
  t.same(scratchIn(folder), [], 'what was made is gone')
  t.equal(bench('--read', `--out=${folder}`).stdout, stdout, 'and what was kept can be shown again')
  t.end()
})

void test('streams that end are counted, and so is what does not arrive', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const also = otherCheckout(folder, `response.write('data: 1\\n\\n', () => response.end())`)
  const { status, stdout, stderr } = bench('streams', ...BRIEFLY, '--only=other', also, `--out=${folder}`)
  t.equal(status, 0, stderr)
  t.match(readResult(folder).measured, [{ opened: 20, cut: 20, events: 0, p50: null, p99: null, cpu: null }])
  t.match(stdout, /\| other \| 20 \| 20 \| 0 \| 0 \| – \| – \|/)
  t.end()
})

void test('each row is measured in each round, with processes of its own', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  // It refuses more than the streams of one round: those of the second one have to come to another process.
  const also = otherCheckout(
    folder,
    `response.writeHead((globalThis.asked = (globalThis.asked ?? 0) + 1) > 20 ? 429 : 200).end('data: 1\\n\\n')`,
  )
  const { status, stdout, stderr } = bench('streams', ...BRIEFLY, '--rounds=2', '--only=http-proxy', also, `--out=${folder}`)
  t.equal(status, 0, stderr)
  const { rounds, measured } = readResult(folder)
  t.equal(rounds, 2)
  t.match(measured, [
    { row: 'other', opened: 20, cut: 40 },
    { row: 'http-proxy', opened: 20, cut: 0 },
  ])
  t.match(stdout, 'medians of 2 rounds of 1 s for each row, in turns')
  t.end()
})

void test('rounds are put together as medians, and counts are those of all', (t) => {
  const one = (figure: number | null, opened: number): MeasuredStreams => ({
    ...{ row: 'a', opened, cut: 1, expected: 10, events: 9 },
    ...{ p50: figure, p99: figure && 2 * figure, cpu: figure && 3 * figure, memoryEach: null },
  })
  t.same(medianOf([one(1, 20), one(9, 19), one(2, 20)]), {
    ...{ row: 'a', opened: 19, cut: 3, expected: 30, events: 27, p50: 2, p99: 4, cpu: 6, memoryEach: null },
  })
  t.match(medianOf([one(null, 20), one(3, 20)]), { p50: 3, p99: 6 }, 'one without a figure does not count')
  t.end()
})

void test('a row that refuses is no measurement', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const also = otherCheckout(folder, 'response.writeHead(429).end()')
  const { status, stderr } = bench('streams', ...BRIEFLY, '--only=other', also, `--out=${folder}`)
  t.equal(status, 1)
  t.match(stderr, 'other refused a stream: HTTP/1.1 429')
  t.end()
})

void test('more streams than a process may have files are not tried', (t) => {
  t.equal(tooFewFiles(8000, 16_300), null)
  t.match(tooFewFiles(8000, 16_299), /8000 streams take 16300 open files, and a process may have 16299 here: .*--streams/)
  t.equal(tooFewFiles(8000, null), null, 'where nobody knows, it is tried')
  t.end()
})
