/** The benchmark of the ownership table, as a command: what it measures on, and what it keeps. Not how fast anything is. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { HEAVY, missingId, populate } from '../../testing/bench/ownership/population.ts'
import type { OwnershipResult } from '../../testing/bench/ownership/result.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { bench, benchWith, scratchIn } from './command.ts'

void test('every operation is measured on a small table and on a large one', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const { status, stdout, stderr } = benchWith(
    { TMPDIR: folder },
    'ownership',
    '--rows=12000',
    '--store=sqlite',
    '--seconds=0.01',
    `--out=${folder}`,
  )
  t.equal(status, 0, stderr)
  const result = JSON.parse(readFileSync(join(folder, 'ownership.json'), 'utf8')) as OwnershipResult
  t.same(
    result.tables.map(({ store, size, rows }) => [store, size, rows]),
    [
      ['sqlite', 'small', 20_000],
      ['sqlite', 'large', 22_000],
    ],
  )
  for (const { operation, title, count, p50, p99, statements } of result.operations) {
    t.ok(count > 0 && p50 > 0 && p99 >= p50 && statements > 0, operation)
    t.ok(stdout.includes(`| ${title} |`), title)
  }
  const ids = (size: string) => result.operations.filter((one) => one.size === size).map(({ operation }) => operation)
  t.same(ids('small'), ids('large'))
  t.same(scratchIn(folder), [], 'what was built is gone')
  t.equal(bench('--read', `--out=${folder}`).stdout, stdout, 'and what was kept can be shown again')
  t.end()
})

void test('wrong usage is told', (t) => {
  for (const wrong of [['speed'], ['--rows=9999'], ['--store=mysql'], ['--seconds=0'], ['--quick']]) {
    const { status, stderr } = bench(...wrong)
    t.equal(status, 2, wrong.join())
    t.match(stderr, 'npm run bench')
  }
  t.match(bench('--help').stdout, /--rows[^]*ownership|ownership[^]*--rows/)
  t.end()
})

void test('the threads are spread as in a deployment', (t) => {
  const population = populate(20_000)
  const threads = Array.from({ length: population.total }, (_, number) => population.thread(number))
  const ids = threads.map(({ threadId }) => threadId)
  t.same(ids.toSorted(), ids, 'in the order of their ids')
  t.equal(new Set(ids).size, 30_000)
  t.notOk(new Set(ids).has(missingId(7)))
  const owned = Map.groupBy(threads, ({ owner }) => owner)
  t.equal(owned.get(HEAVY.userId)?.length, HEAVY.threads)
  const counts = Array.from(owned, ([owner, { length }]) => (owner === HEAVY.userId ? 0 : length)).sort((a, b) => b - a)
  t.ok(counts[0]! > 10 * counts[Math.floor(counts.length / 2)]!, 'few have many')
  const part = (rows: readonly unknown[]) => rows.length / threads.length
  t.ok(Math.abs(part(threads.filter(({ name }) => name !== null)) - 0.5) < 0.05)
  t.ok(part(threads.filter(({ deletedAt }) => deletedAt !== null)) > 0.002)
  t.ok(threads.filter(({ grants }) => grants.length > 0).length > 1400)
  t.notOk(threads.some(({ deletedAt, grants }) => deletedAt !== null && grants.length > 0))
  t.same(population.thread(5), populate(20_000).thread(5), 'always the same')
  t.end()
})
