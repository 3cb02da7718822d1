/** The benchmark of first runs, as a command: that each of them claims a thread. Not how fast anything is. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test } from 'tap'
import type { ClaimsResult } from '../../testing/bench/claims/result.ts'
import { NEW_THREAD } from '../../testing/bench/requests/people.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { bench, benchWith, otherCheckout } from './command.ts'

const BRIEFLY = ['--rounds=2', '--seconds=0.1', '--warm-up=0.2'] as const

void test('every run that counts has claimed a thread of its own', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const { status, stdout, stderr } = benchWith({ TMPDIR: folder }, 'claims', ...BRIEFLY, '--keep', `--out=${folder}`)
  t.equal(status, 0, stderr)
  const { measured } = JSON.parse(readFileSync(join(folder, 'claims.json'), 'utf8')) as ClaimsResult
  t.same(
    measured.map(({ row, connections }) => [row, connections]),
    [1, 8, 32].map((connections) => ['gateway', connections]),
  )
  for (const { count, perSecond, p50, sync, against } of measured) {
    t.ok(count > 0 && perSecond > 0 && p50 > 0 && sync > 0)
    t.ok(against.quartiles[0] <= against.median && against.median <= against.quartiles[1])
  }
  const kept = /^kept: (.+)$/m.exec(stderr)?.[1] ?? ''
  const own = readdirSync(kept).find((name) => name.startsWith('gateway-')) ?? ''
  const database = new Database(join(kept, own, 'ownership.db'), { readonly: true })
  t.teardown(() => database.close())
  const { claimed } = database
    .prepare(`SELECT count(*) AS claimed FROM threads WHERE thread_id LIKE '${NEW_THREAD.slice(0, -12)}%'`)
    .get() as { claimed: number }
  t.ok(claimed >= measured.reduce((sum, { count }) => sum + count, 0))
  t.match(stdout, 'time for each, of one fsync')
  t.equal(bench('--read', `--out=${folder}`).stdout, stdout, 'and what was kept can be shown again')
  t.end()
})

void test('a run that is refused is no measurement', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const other = otherCheckout(folder, 'response.writeHead(403).end()')
  const { status, stderr } = bench('claims', ...BRIEFLY, '--only=gateway', other, `--out=${folder}`)
  t.equal(status, 1)
  t.match(stderr, /other gave \d+ bad answers to first runs: HTTP\/1\.1 403/)
  t.end()
})
