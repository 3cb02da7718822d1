/**
 * What requests ask of the store costs the same in a table of any size: every statement that they send finds its rows by an
 * index, and looks at no more of them than it is about. So do the steps of an operator's work, all but a count of everything.
 * Seen on 50,000 rows, of which a planner could well like to read all.
 */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import type { Store } from '../../src/store/port/store.ts'
import type { ThreadKey } from '../../src/store/port/thread.ts'
import { setUp, type Operation } from '../../testing/bench/ownership/operations.ts'
import { GUEST, HEAVY, NOW, populate, randomFrom } from '../../testing/bench/ownership/population.ts'
import { buildPostgresTable } from '../../testing/bench/ownership/postgres-table.ts'
import { buildSqliteTable } from '../../testing/bench/ownership/sqlite-table.ts'
import type { Table } from '../../testing/bench/ownership/table.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { onRows, sentBy } from '../../testing/support/statements.ts'

const POPULATION = populate(40_000)

const DAY = 86_400_000

/** Of a table with no more rows than this all may be read: there is no faster way. */
const SMALL = 2000

/** Rows of `threads` that a statement may look at. Of lists and steps, more than they are long: some are left aside. */
const FEW = 10
const SOME = 500

/** Of the threads that a reader was granted. */
const SHARED = 2 * (GUEST.ofUser + GUEST.ofGroup)

const bounds: Readonly<Record<string, number>> = {
  'page-100': SOME,
  'page-groups': SOME,
  'list-small': SOME,
  'list-heavy': SOME,
  'list-halfway': SOME,
  'list-shared': SHARED,
  'list-everybody': SOME,
}

/** Of these rows they are so large a part that a planner may read all. */
const TOO_LARGE = ['page-1000', 'page-10000']

const thread = (number: number) => POPULATION.thread(number)
const keyOf = (number: number): ThreadKey => ({ scope: '', threadId: thread(number).threadId })

/** What is not measured, because it is seldom: changes, and the steps of operators. */
function seldom(store: Store): readonly (readonly [name: string, most: number, work: () => Promise<unknown>])[] {
  const [one, other] = [thread(11), thread(12)]
  const key = keyOf(11)
  const grant = { kind: 'user', id: other.owner, right: 'read', grantedBy: one.owner, grantedAt: NOW } as const
  const step = { limit: 50, now: NOW }
  return [
    ['rename', FEW, () => store.rename(key, one.owner, 'a name')],
    ['archive', FEW, () => store.archive(key, one.owner, { archived: true })],
    ['grant', FEW, () => store.grant(key, one.owner, grant)],
    ['grants', FEW, () => store.grants(key, one.owner)],
    ['ungrant', FEW, () => store.ungrant(key, one.owner, grant)],
    ['observe', FEW, () => store.observe(key, other.owner, 'default', 'run', NOW)],
    ['bury', FEW, () => store.bury(key, one.owner, NOW, 'deleted')],
    ['granted to', SOME, () => store.grantedTo({ kind: 'group', id: GUEST.group }, null, step.limit)],
    ['access of a reader', SHARED, () => store.accessOfReader('', { userId: GUEST.userId, groups: [GUEST.group] }, 10_000)],
    ['thread', FEW, () => store.thread(key)],
    ['threads', SOME, () => store.threads({}, keyOf(20_000), step.limit)],
    ['observed', SOME, () => store.observed({ scope: '', threadId: 'seen-100' }, step.limit)],
    ['assign', FEW, () => store.assign(keyOf(13), other.owner, NOW)],
    ['withhold', FEW, () => store.withhold(keyOf(14), NOW)],
    ['transfer', SOME, () => store.transfer(HEAVY.userId, other.owner, step.limit)],
    ['transfer within a scope', SOME, () => store.transfer(HEAVY.userId, other.owner, step.limit, '')],
    ['erase', SOME, () => store.erase(HEAVY.userId, NOW, step.limit)],
    ['prune of tombstones', SOME, () => store.prune({ deletedBefore: NOW }, step.limit)],
    ['prune of what is not used', SOME, () => store.prune({ unusedSince: NOW - 700 * DAY }, step.limit)],
    ['prune in a scope', SOME, () => store.prune({ scope: '', unusedSince: NOW - 700 * DAY }, step.limit)],
    ['threads of a scope', SOME, () => store.threads({ scope: '' }, keyOf(20_000), step.limit)],
    ['is empty', FEW, () => store.isEmpty('')],
    ['unconfirmed claims', FEW, () => store.unconfirmed()],
  ]
}

async function claimInVain(store: Store): Promise<void> {
  const key = { scope: '', threadId: 'in-vain' }
  const claimed = await store.claim(key, { userId: 'corp:nobody-yet', agentId: 'default', guest: false, now: NOW })
  if (claimed.outcome === 'foreign' || claimed.registration === null) throw new Error('it was not claimed')
  await store.settle(key, 'corp:nobody-yet', claimed.registration, 'not-started')
}

/** Looks at everything. */
async function check(t: Test, table: Table): Promise<void> {
  const bench = await setUp(table, POPULATION, randomFrom(1))
  const store = await table.open(0)
  t.teardown(async () => {
    await store.close()
    await bench.close()
  })
  const hot = bench.operations
    .filter(({ id }) => !TOO_LARGE.includes(id))
    .map(({ id, run }: Operation) => [id, bounds[id] ?? FEW, run] as const)
  for (const [name, most, work] of [...hot, ['claim in vain', FEW, () => claimInVain(store)] as const, ...seldom(store)]) {
    const sent = onRows(await sentBy(work))
    for (const statement of sent) {
      for (const { table: read, index, rows } of await table.accesses(statement)) {
        const isSmall = rows !== null && read !== 'threads' && rows <= SMALL
        if (isSmall) continue
        t.ok(index !== null, `${name} finds rows of ${read} by an index`, { statement })
        t.ok((rows ?? 0) <= most, `${name} looks at no more rows of ${read} than it is about`, { statement, rows, most })
      }
    }
  }
}

/** Threads that were seen before they had owners. */
async function seeSome(table: Table): Promise<void> {
  const store = await table.open(0)
  for (let at = 0; at < 200; at += 1) await store.observe({ scope: '', threadId: `seen-${at}` }, `corp:u${at}`, '', 'run', NOW)
  await store.close()
}

void test('SQLite', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const table = await buildSqliteTable(join(folder, 'ownership.db'), POPULATION)
  await seeSome(table)
  await t.test('as it is', (t) => check(t, table))
  const database = new Database(table.place)
  database.exec('ANALYZE')
  database.close()
  await t.test('after ANALYZE', (t) => check(t, table))
})

void test('PostgreSQL', async (t) => {
  const { url, admin } = await startPostgres(t)
  const table = await buildPostgresTable(url, POPULATION)
  await seeSome(table)
  // As autovacuum does some time after rows were written: what it knows of pages decides between an index and the table.
  await admin('VACUUM ANALYZE')
  await check(t, table)
})
