/** The benchmark of requests, as a command: what it measures, and what it keeps. Not how fast anything is. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { IS_TOLD } from '../../testing/bench/figures.ts'
import type { Helper } from '../../testing/bench/processes.ts'
import type { RoundOrder } from '../../testing/bench/requests/generator.ts'
import { againstOf, measureLoad, median } from '../../testing/bench/requests/measuring.ts'
import type { RequestsResult } from '../../testing/bench/requests/result.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { bench, benchWith, otherCheckout, scratchIn } from './command.ts'

const BRIEFLY = ['--rounds=1', '--seconds=0.2', '--warm-up=0.8'] as const

const readResult = (folder: string) => JSON.parse(readFileSync(join(folder, 'requests.json'), 'utf8')) as RequestsResult

void test('each load goes through each row, and the gateway is one of them', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const which = ['--only=gateway,gateway-audit,http-proxy', '--load=get,run,list,mix']
  const { status, stdout, stderr } = benchWith({ TMPDIR: folder }, 'requests', ...BRIEFLY, ...which, `--out=${folder}`)
  t.equal(status, 0, stderr)
  const result = readResult(folder)
  t.match(result, { rounds: 1, seconds: 0.2, warmUp: 0.8, connections: 32 })
  t.same(
    result.measured.map(({ load, row }) => `${load} ${row}`),
    ['get', 'run', 'list', 'mix'].flatMap((load) => ['gateway', 'gateway-audit', 'http-proxy'].map((row) => `${load} ${row}`)),
  )
  for (const { load, row, count, perSecond, p50, p99, cpu, coldAgainst, memory } of result.measured) {
    t.ok(count > 0 && perSecond > 0 && p50 > 0 && p99 >= p50, `${load} ${row}`)
    t.equal(cpu !== null && coldAgainst !== null && memory !== null, IS_TOLD, 'Linux alone tells of other processes')
  }
  for (const { title, version } of result.rows) t.ok(stdout.includes(`| ${title} |`) && /^\d+\./.test(version ?? ''), title)
  t.same(scratchIn(folder), [], 'what was made is gone')
  t.equal(bench('--read', `--out=${folder}`).stdout, stdout, 'and what was kept can be shown again')
  t.end()
})

void test('several workers are one row, of the loads that more cores are for', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const which = ['--only=gateway,gateway-2-workers', '--load=get,run,list,mix', '--keep']
  const { status, stderr } = benchWith({ TMPDIR: folder }, 'requests', ...BRIEFLY, ...which, `--out=${folder}`)
  t.equal(status, 0, stderr)
  const { measured } = readResult(folder)
  const loadsOf = (name: string) => measured.filter(({ row }) => row === name).map(({ load }) => load)
  t.same(loadsOf('gateway'), ['get', 'run', 'list', 'mix'])
  t.same(loadsOf('gateway-2-workers'), ['get', 'run', 'mix'])
  const [kept = ''] = scratchIn(folder)
  const logOf = (name: string) => {
    const own = readdirSync(join(folder, kept)).find((one) => new RegExp(`^${name}-\\w{6}$`).test(one))
    return readFileSync(join(folder, kept, own ?? '', 'gateway.log'), 'utf8')
  }
  const workersIn = (log: string) => new Set(Array.from(log.matchAll(/"worker":(\d+)/g), ([, worker]) => worker))
  t.equal(workersIn(logOf('gateway-2-workers')).size, 2, 'both of them serve')
  t.equal(workersIn(logOf('gateway')).size, 0)
  t.end()
})

void test('requests to a LangGraph server are a part of their own', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const { status, stderr } = bench(...BRIEFLY, '--only=gateway,http-proxy', '--load=langgraph-state', `--out=${folder}`)
  t.equal(status, 0, stderr)
  t.same(readdirSync(folder), ['langgraph.json'], 'the part that has the load, and no other')
  const { measured } = JSON.parse(readFileSync(join(folder, 'langgraph.json'), 'utf8')) as RequestsResult
  t.same(
    measured.map(({ load, row }) => `${load} ${row}`),
    ['langgraph-state gateway', 'langgraph-state http-proxy'],
  )
  t.end()
})

void test('another checkout is a row among the others', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const also = otherCheckout(folder, 'response.end("{}")')
  const { status, stdout, stderr } = bench('requests', ...BRIEFLY, '--load=get', '--only=http-proxy', also, `--out=${folder}`)
  t.equal(status, 0, stderr)
  t.match(stdout, 'other 9.9.9')
  t.same(
    readResult(folder).measured.map(({ row }) => row),
    ['other', 'http-proxy'],
    'whatever else is wanted',
  )
  t.end()
})

void test('a row that refuses is no measurement', (t) => {
  for (const answer of ['response.writeHead(403).end()', 'response.destroy()']) {
    const { folder, remove } = makeFolder()
    t.teardown(remove)
    const also = otherCheckout(folder, answer)
    const { status, stderr } = bench('requests', ...BRIEFLY, '--load=get', '--only=http-proxy', also, `--out=${folder}`)
    t.equal(status, 1, answer)
    t.match(stderr, /other gave \d+ bad answers to get: (HTTP\/1\.1 403|the connection was closed)/)
    t.throws(() => readResult(folder), /ENOENT/, 'and nothing is kept')
  }
  t.end()
})

void test('a peer that is not installed is told, and left out', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const which = ['--load=get', '--only=http-proxy,nginx,haproxy-jwt', `--out=${folder}`]
  const { status, stdout, stderr } = benchWith({ PATH: folder }, 'requests', ...BRIEFLY, ...which)
  t.equal(status, 0, stderr)
  t.match(stdout, 'Not installed, and not measured: nginx, haproxy-jwt.')
  t.notMatch(stdout, '| nginx')
  t.end()
})

void test('wrong usage is told', (t) => {
  const wrongs = [
    '--load=put',
    '--load=langgraph-run',
    '--only=gateway,caddy',
    '--also=/somewhere',
    '--also=nginx=/somewhere',
    '--rounds=0',
    '--warm-up=0',
    '--streams=0',
  ]
  for (const wrong of wrongs) {
    const { status, stderr } = bench('requests', wrong)
    t.equal(status, 2, wrong)
    t.match(stderr, 'npm run bench')
  }
  const help = bench('--help').stdout
  for (const word of ['all but ownership', 'lists of 10,000', 'run-1mb', 'haproxy-jwt', '--also', '--streams'])
    t.match(help, word)
  t.end()
})

void test('rows take turns, the warm-up does not count, and what is told is the median', async (t) => {
  const perSecond = [800, 900, 1, 5, 3]
  const ports: number[] = []
  const lengths: (number | undefined)[] = []
  const generator: Helper = {
    ...{ pid: process.pid, port: 0, stop: async () => {} },
    async ask<Answer>(order: Partial<RoundOrder>) {
      if (order.port === undefined) return {} as Answer
      ports.push(order.port)
      lengths.push(order.milliseconds)
      const round = { count: 10, perSecond: perSecond[(ports.length - 1) >> 1], p50: 1, p99: 2, bad: 0, firstBad: null }
      return round as Answer
    },
  }
  const row = (name: string, port: number) => ({ name, proxy: { pid: process.pid, port, stop: async () => {} } })
  const effort = { rounds: 3, seconds: 1, warmUp: 8, connections: 1, tell: () => {} }
  const measured = await measureLoad({ name: 'get', requests: [] }, [row('a', 1), row('b', 2)], generator, effort, 'b')
  t.same(ports, [1, 1, 2, 2, 2, 1, 1, 2, 2, 1], 'each round begins with another one')
  t.same(lengths.slice(0, 5), [2000, 6000, 2000, 6000, 1000], 'cold, warming up, and then what counts')
  t.match(measured, [
    { load: 'get', row: 'a', count: 30, perSecond: 3, p50: 1, p99: 2 },
    { load: 'get', row: 'b', count: 30, perSecond: 3 },
  ])
})

void test('each round is held against the same round of the reference', (t) => {
  // The machine is half as fast in the second round, and a tenth in the fourth: for both alike.
  const references = [100, 200, 100, 1000, 100].map((cpu) => ({ cpu: cpu * 10, count: 10 }))
  const slices = [110, 240, 90, 1000, 150].map((cpu) => ({ cpu: cpu * 20, count: 20 }))
  t.same(againstOf(slices, references), { median: 1.1, quartiles: [1, 1.2] })
  t.same(againstOf(references, references), { median: 1, quartiles: [1, 1] })
  t.equal(againstOf(slices, []), null, 'nobody to hold it against')
  t.equal(againstOf([{ cpu: null, count: 1 }], [{ cpu: null, count: 1 }]), null)
  t.end()
})

void test('the median of rounds', (t) => {
  t.equal(median([3, 1, 2]), 2)
  t.equal(median([4, 1, 3, 2]), 2.5)
  t.end()
})
