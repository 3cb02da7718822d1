/** The benchmark of lists, as a command: what it measures, and what it keeps. Not how fast anything is. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { IS_TOLD } from '../../testing/bench/figures.ts'
import { measureLists } from '../../testing/bench/lists/measuring.ts'
import { listsPlot } from '../../testing/bench/lists/plot.ts'
import { beyondReference, listsTable } from '../../testing/bench/lists/report.ts'
import type { ListsResult, MeasuredLists } from '../../testing/bench/lists/result.ts'
import type { Helper } from '../../testing/bench/processes.ts'
import type { Round, RoundOrder } from '../../testing/bench/requests/generator.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { bench, benchWith, otherCheckout, scratchIn } from './command.ts'

const BRIEFLY = ['--rounds=1', '--seconds=0.1', '--warm-up=0.4'] as const

const readResult = (folder: string) => JSON.parse(readFileSync(join(folder, 'lists.json'), 'utf8')) as ListsResult

void test('the gateway gives the caller the list of what is theirs, and is held against what passes on all of it', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const { status, stdout, stderr } = benchWith({ TMPDIR: folder }, 'lists', ...BRIEFLY, `--out=${folder}`)
  t.equal(status, 0, stderr)
  const { rounds, seconds, list, rows, parse, measured } = readResult(folder)
  t.same({ rounds, seconds }, { rounds: 1, seconds: 0.1 })
  t.ok(parse > 0)
  t.match(measured, [
    { row: 'gateway', given: { threads: 500 } },
    { row: 'http-proxy', given: list },
  ])
  t.equal(list.threads, 10_000)
  for (const { row, count, p50, cpu, alone, beside } of measured) {
    t.ok(count > 0 && p50 > 0, row)
    t.equal(cpu !== null, IS_TOLD, 'Linux alone tells of other processes')
    for (const one of [alone, beside]) t.ok(one.p50 > 0 && one.p99 >= one.p50, row)
    t.ok(beside.listsPerSecond > 0, row)
  }
  for (const { title } of rows) t.equal(stdout.split(`| ${title} |`).length, 3, 'a line in either table')
  t.same(scratchIn(folder), [], 'what was made is gone')
  t.equal(bench('--read', `--out=${folder}`).stdout, stdout, 'and what was kept can be shown again')
  t.end()
})

void test('another checkout is a row, and one that refuses a list is no measurement', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const also = otherCheckout(folder, 'response.end(`{"threads":[{}]}`)')
  const run = () => bench('lists', ...BRIEFLY, '--only=http-proxy', also, `--out=${folder}`)
  t.equal(run().status, 0)
  t.match(readResult(folder).measured, [{ row: 'other', given: { threads: 1, bytes: 16 } }, { row: 'http-proxy' }])
  const refusing = makeFolder()
  t.teardown(refusing.remove)
  const other = otherCheckout(refusing.folder, 'response.writeHead(403).end()')
  const { status, stderr } = bench('lists', ...BRIEFLY, '--only=http-proxy', other, `--out=${refusing.folder}`)
  t.equal(status, 1)
  t.match(stderr, 'other does not give the list: 403')
  t.throws(() => readResult(refusing.folder), /ENOENT/, 'and nothing is kept')
  t.end()
})

/** A helper that answers with what comes next. */
function helperOf(name: string, answers: readonly object[], asked: string[]): Helper {
  let next = 0
  return {
    ...{ pid: process.pid, port: 0, stop: async () => {} },
    async ask<Answer>(order: Partial<RoundOrder>) {
      if ('requests' in order) return {} as Answer
      asked.push(order.port === undefined ? name : `${name} ${order.port}`)
      return answers[next++] as Answer
    },
  }
}

const round = (figure: number): Round => ({ count: 10, perSecond: figure, p50: figure, p99: 2 * figure, bad: 0, firstBad: null })

void test('rows take turns, the first round does not count, and what is told is the median', async (t) => {
  const asked: string[] = []
  const rounds = (...figures: readonly number[]) => figures.map(round)
  const helpers = {
    // Of each round one figure by themselves, and one beside the others.
    lists: helperOf('lists', rounds(9, 9, 9, 9, 1, 4, 1, 4, 3, 6, 1, 4), asked),
    gets: helperOf('gets', rounds(9, 9, 9, 9, 10, 40, 1, 4, 30, 60, 1, 4), asked),
    parser: helperOf('parser', [{ count: 1, cpu: 9 }, { count: 2, cpu: 10 }, { count: 2, cpu: 20 }], asked), // oxfmt-ignore
  }
  const row = (name: string, port: number) => ({
    name,
    proxy: { pid: process.pid, port, stop: async () => {} },
    given: { threads: 1, bytes: 2 },
  })
  const effort = { rounds: 2, seconds: 0.001, warmUp: 0.004, tell: () => {} }
  const { parse, measured } = await measureLists({ lists: [], gets: [] }, [row('a', 1), row('b', 2)], helpers, effort)
  const turn = (port: number) => [`lists ${port}`, `gets ${port}`, `lists ${port}`, `gets ${port}`]
  const turns = ['parser', ...turn(1), ...turn(2)]
  t.same(asked, [...turns, ...turns, ...turns])
  t.equal(parse, 7.5)
  t.match(measured, [
    {
      ...{ row: 'a', given: { threads: 1, bytes: 2 }, count: 20, p50: 2 },
      alone: { p50: 20, p99: 40 },
      beside: { p50: 50, p99: 100, listsPerSecond: 5 },
    },
    { row: 'b', p50: 1, alone: { p50: 1, p99: 2 }, beside: { p50: 4, p99: 8, listsPerSecond: 4 } },
  ])
})

void test('a list that is refused while it is measured is no measurement', async (t) => {
  const bad = [{ ...round(1), bad: 3, firstBad: 'HTTP/1.1 503' }]
  const helpers = {
    lists: helperOf('lists', bad, []),
    gets: helperOf('gets', [], []),
    parser: helperOf('parser', [{ count: 1, cpu: 1 }], []),
  }
  const row = { name: 'a', proxy: { pid: process.pid, port: 1, stop: async () => {} }, given: { threads: 1, bytes: 2 } }
  const measuring = measureLists({ lists: [], gets: [] }, [row], helpers, {
    rounds: 1,
    seconds: 0.001,
    warmUp: 0.004,
    tell: () => {},
  })
  await t.rejects(measuring, { message: 'a gave 3 bad answers: HTTP/1.1 503' })
})

const MACHINE = { cpu: 'A', cores: 2, memoryGiB: 4, system: 'linux x64', node: '24.0.0', threadwarden: '0.1.0' }

const resultOf = (...cpus: readonly (readonly [string, number | null])[]): ListsResult => ({
  ...{ date: '2026-01-01', machine: MACHINE, rounds: 1, seconds: 1, list: { threads: 10_000, bytes: 2048 }, parse: 2000 },
  rows: cpus.map(([name]) => ({ name, title: `row ${name}`, version: '1.0.0' })),
  measured: cpus.map(([row, cpu]) => ({
    ...{ row, given: { threads: 5, bytes: 1024 }, count: 1, cpu, p50: 1500 },
    alone: { p50: 20, p99: 30 },
    beside: { p50: 40, p99: 50, listsPerSecond: 7 },
  })),
})

void test('a list is held against parsing it, and against passing it on', (t) => {
  const result = resultOf(['gateway', 6000], ['http-proxy', 1000])
  t.match(listsTable(result), '| row gateway | 5 | 1 | 6.0 | × 3.00 | 5.0 | × 2.50 | 1.5 |')
  t.match(listsTable(result), '| row http-proxy | 5 | 1 | 1.0 | × 0.50 | – | – | 1.5 |')
  t.match(listsTable(result), '| row gateway | 20 | 30 | 40 | 50 | 7 |')
  const beyond = ({ measured }: ListsResult) => measured.map((one: MeasuredLists) => beyondReference(one, measured))
  t.same(beyond(result), [5000, null])
  t.same(beyond(resultOf(['gateway', 6000])), [null], 'nothing to hold it against')
  t.same(beyond(resultOf(['gateway', null], ['http-proxy', null])), [null, null])
  t.match(listsTable(resultOf(['gateway', null])), '| row gateway | 5 | 1 | – | – | – | – | 1.5 |')
  t.end()
})

void test('the picture holds lists against parsing, where CPU is told', (t) => {
  const svg = listsPlot(resultOf(['gateway', 6000], ['http-proxy', 1000]))
  for (const text of ['× 3.00  (6.0 ms)', 'JSON.parse, once', '× 1.00  (2.0 ms)', '>50 µs<']) t.match(svg, text)
  t.equal(svg.match(/class="reference"/g)?.length, 3, 'one in each group')
  t.notMatch(listsPlot(resultOf(['gateway', null])), 'JSON.parse')
  t.end()
})
