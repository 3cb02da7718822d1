/**
 * How much work a list is in the SQLite file, where everything else in the process waits for each statement. It is counted and not
 * timed: the ranges of indexes that are read, what each statement gives, and how often the others have their turn.
 */
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import type { Reader } from '../../src/core/decide/sharing.ts'
import type { ListWindow } from '../../src/store/port/lists.ts'
import type { Store } from '../../src/store/port/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { onRows, sentBy, type Sent } from '../../testing/support/statements.ts'

const FIRST: ListWindow = { agentId: null, includeArchived: false, after: null, limit: 50 }
const reader = (userId: string, ...groups: string[]): Reader => ({ userId, groups })

/** Threads of one user and grants on them, written past the store. */
async function filled(t: Test, work: (run: (text: string) => void) => void): Promise<{ store: Store; file: string }> {
  const { folder, remove } = makeFolder()
  const file = join(folder, 'ownership.db')
  const store = await openSqliteStore(file)
  t.teardown(async () => {
    await store.close()
    remove()
  })
  const database = new Database(file)
  work((text) => database.exec(text))
  database.close()
  return { store, file }
}

/** So many threads of a user's, of which a column is the same for all. */
const threads = (count: number, name: string, more: Record<string, string> = {}): string => {
  const values = { last_used_at: 'n', agent_id: "'a'", deleted_at: 'NULL', archived: '0', ...more }
  const columns = Object.keys(values).join(', ')
  return `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})
    INSERT INTO threads (scope, thread_id, user_id, created_at, ${columns})
    SELECT '', '${name}-' || printf('%06d', n), 'corp:${name}', 1, ${Object.values(values).join(', ')} FROM numbers`
}

const grants = (name: string, kind: string, grantee: string): string =>
  `INSERT INTO grants SELECT scope, thread_id, '${kind}', '${grantee}', 'read', user_id, 1 FROM threads WHERE user_id = 'corp:${name}'`

/** How SQLite goes about a statement, a line for each table that it reads. */
function planOf(file: string, { text, values }: Sent): readonly string[] {
  const database = new Database(file, { readonly: true })
  try {
    const plan = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`).all(...values)
    return plan.map(({ detail }) => detail)
  } finally {
    database.close()
  }
}

const WINDOWS: readonly ListWindow[] = [null, 'a'].flatMap((agentId) =>
  [false, true].flatMap((includeArchived) =>
    [null, { updatedAt: 7, threadId: 'x' }].map((after) => ({ agentId, includeArchived, after, limit: 50 })),
  ),
)

void test('a page is made of ranges of indexes, of which every row is on the page or behind it', async (t) => {
  const { store, file } = await filled(t, (run) => {
    run(threads(1000, 'alice'))
    run(grants('alice', 'user', 'corp:bob'))
  })
  for (const whose of ['everybody', reader('corp:alice', 'corp:team')] as const) {
    for (const window of WINDOWS) {
      const sent = onRows(await sentBy(() => store.listed('', whose, window)))
      const plans = sent.flatMap((one) => planOf(file, one))
      const read = plans.filter((line) => /^(?:SEARCH|SCAN) (?:threads|there|grants)\b/.test(line))
      const prefix = [
        ...(whose === 'everybody' ? [] : ['user_id=\\?']),
        'scope=\\?',
        ...(window.agentId === null ? [] : ['agent_id=\\?']),
        'archived=\\?',
      ].join(' AND ')
      const range = new RegExp(
        `^SEARCH threads USING COVERING INDEX listed_by_\\w+ \\(${prefix} AND last_used_at(?:=\\? AND thread_id>\\?|<\\?)\\)$`,
      )
      const ranges = read.filter((line) => range.test(line))
      t.equal(ranges.length, window.includeArchived ? 4 : 2, 'all conditions are in the index', { plans })
      const others = read.filter((line) => !range.test(line))
      t.ok(
        others.every((line) =>
          /^SEARCH there USING PRIMARY KEY \(scope=\? AND thread_id=\?\)|^SEARCH grants USING COVERING INDEX/.test(line),
        ),
        'the rest is looked up by keys',
        { others },
      )
    }
  }
})

void test('what is not listed costs nothing: a statement gives no more than a page of threads', async (t) => {
  const { store } = await filled(t, (run) => {
    run(threads(3000, 'archived', { archived: '1' }))
    run(threads(3000, 'deleted', { deleted_at: 'n' }))
    run(threads(3000, 'agents'))
    run(threads(3000, 'ties', { last_used_at: '7' }))
  })
  const windows = { archived: FIRST, deleted: FIRST, agents: { ...FIRST, agentId: 'b' }, ties: { ...FIRST, limit: 3 } }
  for (const [name, window] of Object.entries(windows)) {
    const got = await store.listed('', reader(`corp:${name}`), window)
    t.equal(got.length, name === 'ties' ? 3 : 0, name)
  }
})

void test('many grants are looked at in steps, between which others have their turn', async (t) => {
  const { store } = await filled(t, (run) => {
    run(threads(5000, 'alice'))
    run(grants('alice', 'user', 'corp:bob'))
    run(grants('alice', 'group', 'corp:team'))
  })
  for (const [whose, least] of [
    [reader('corp:bob'), 10],
    [reader('corp:carol', 'corp:team'), 10],
    [reader('corp:bob', 'corp:none', 'corp:team', 'corp:other'), 20],
  ] as const) {
    const meanwhile = { turns: 0, goesOn: true }
    const others = (async () => {
      for (; meanwhile.goesOn; meanwhile.turns += 1) await setImmediate()
    })()
    const given: number[] = []
    const sent = onRows(
      await sentBy(async () => {
        const page = await store.listed('', whose, FIRST)
        t.same(
          page.map(({ threadId }) => threadId),
          Array.from({ length: 50 }, (_, at) => `alice-00${5000 - at}`),
        )
        meanwhile.goesOn = false
      }),
    )
    await others
    for (const { values } of sent) {
      const { limit, threadIds } = values[0] as { limit?: number; threadIds?: string }
      given.push(limit ?? (threadIds === undefined ? 0 : (JSON.parse(threadIds) as unknown[]).length))
    }
    t.ok(given.length >= 2 * least, 'there are many statements')
    t.ok(Math.max(...given) <= 500, 'each looks at a bounded number of rows', { most: Math.max(...given) })
    t.ok(meanwhile.turns >= least, 'others have their turn after each step', meanwhile)
  }
})

void test('of an owner of more threads than are told, no more are looked at, whatever state they are in', async (t) => {
  const { store, file } = await filled(t, (run) => {
    run(threads(1000, 'alice'))
    run("UPDATE threads SET deleted_at = 1 WHERE thread_id = 'alice-001000'")
  })
  const limits = async (most: number): Promise<readonly unknown[]> => {
    const sent = onRows(await sentBy(() => store.accessOfReader('', reader('corp:alice'), most)))
    const own = sent.filter(({ text }) => text.includes('FROM threads'))
    for (const one of own)
      t.match(planOf(file, one).join(), /^SEARCH threads USING COVERING INDEX \w+ \(user_id=\? AND scope=\?\)$/)
    return own.map(({ values }) => (values[0] as { limit: number }).limit)
  }
  t.same(await limits(100), [101], 'the rest is not searched for more that are deleted')
  t.same(await limits(1000), [1001, 1001])
  t.equal((await store.accessOfReader('', reader('corp:alice'), 1000))?.size, 1000)
  t.equal(await store.accessOfReader('', reader('corp:alice'), 999), null)
})

void test('the rows of a long page are looked up a hundred at a time: names make them wide', async (t) => {
  const { store } = await filled(t, (run) => run(threads(1200, 'alice', { name: "printf('%.*c', 1000, 'n')" })))
  for (const whose of ['everybody', reader('corp:alice')] as const) {
    const sent = onRows(await sentBy(() => store.listed('', whose, { ...FIRST, limit: 1001 })))
    const looked = sent
      .filter(({ text }) => /\bname\b/.test(text))
      .map(({ values }) => (values[0] as { threadIds: string }).threadIds)
    t.ok(looked.length >= 10, 'there are many statements')
    t.ok(
      looked.every((ids) => (JSON.parse(ids) as unknown[]).length <= 100),
      'each looks at a bounded number of rows',
    )
  }
})

void test('a page from which threads are taken while it is read is full, and in its order; one that is used keeps its place', async (t) => {
  const { store, file } = await filled(t, (run) => run(threads(1000, 'alice')))
  for (const [at, whose] of [reader('corp:alice'), 'everybody' as const].entries()) {
    const reading = store.listed('', whose, { ...FIRST, limit: 300 })
    // The keys are read; the rows are not.
    await setImmediate()
    const database = new Database(file)
    const gone = 1000 - 200 * at
    database.exec(`UPDATE threads SET deleted_at = 1 WHERE last_used_at BETWEEN ${gone - 99} AND ${gone}`)
    database.exec(`UPDATE threads SET last_used_at = 5000 WHERE thread_id = 'alice-000750'`)
    database.close()
    const page = await reading
    t.equal(page.length, 300)
    const numbers = page.map(({ threadId }) => Number(threadId.slice(-6)))
    t.strictSame(numbers, at === 0 ? range(900, 601) : [750, ...range(900, 801), ...range(700, 502)])
    t.ok(page.every(({ updatedAt }, where) => where === 0 || updatedAt <= page[where - 1]!.updatedAt))
  }
})

const range = (from: number, to: number): number[] => Array.from({ length: from - to + 1 }, (_, at) => from - at)

void test('on each of many threads the groups of a reader are not looked up one by one', async (t) => {
  const { store } = await filled(t, (run) => {
    run(threads(100, 'alice'))
    run(grants('alice', 'group', 'corp:team-7'))
  })
  const groups = Array.from({ length: 1000 }, (_, at) => `corp:team-${at}`)
  const ids = Array.from({ length: 100 }, (_, at) => `alice-${String(at + 1).padStart(6, '0')}`)
  let access: ReadonlyMap<string, unknown> = new Map()
  const sent = onRows(
    await sentBy(async () => void (access = await store.accessToSeveral('', ids, reader('corp:bob', ...groups)))),
  )
  t.equal([...access.values()].filter((one) => (one as { row: { granted: string } }).row.granted === 'read').length, 100)
  for (const { text, values } of sent) {
    const { threadIds, groups: asked = '[]' } = values[0] as { threadIds?: string; groups?: string }
    t.notOk(threadIds !== undefined && /named/.test(text) && asked !== '[]', 'no statement has threads times groups')
  }
  const few = onRows(await sentBy(() => store.accessToSeveral('', ids, reader('corp:bob', 'corp:team-7'))))
  t.ok(
    few.some(({ values }) => (values[0] as { groups?: string }).groups === '["corp:team-7"]'),
    'few groups are looked up, whatever was granted to others',
  )
})

void test('every page of a long list of grants is whole, whatever the order of ids, groups and uses', async (t) => {
  const { store } = await filled(t, (run) => {
    run(
      threads(1300, 'alice', {
        last_used_at: '(n * 7919) % 13',
        archived: 'n % 5 = 0',
        agent_id: "CASE n % 3 WHEN 0 THEN 'b' ELSE 'a' END",
      }),
    )
    run(threads(40, 'bob', { last_used_at: 'n % 13' }))
    for (const [kind, grantee, rest] of [
      ['user', 'corp:bob', 0],
      ['group', 'corp:one', 1],
      ['group', 'corp:two', 2],
    ] as const)
      run(`INSERT INTO grants SELECT scope, thread_id, '${kind}', '${grantee}', 'read', user_id, 1 FROM threads
        WHERE user_id = 'corp:alice' AND substr(thread_id, -1) % 4 IN (${rest}, ${rest + 1})`)
  })
  const bob = reader('corp:bob', 'corp:none', 'corp:two', 'corp:one', 'corp:two', 'corp:last')
  for (const [agentId, includeArchived, count] of [
    [null, true, 1340],
    [null, false, 1080],
    ['b', true, 433],
  ] as const) {
    for (const limit of [70, 500, 2000]) {
      const ids: string[] = []
      for (let after: ListWindow['after'] = null; ;) {
        const page = await store.listed('', bob, { agentId, includeArchived, after, limit })
        ids.push(...page.map(({ threadId }) => threadId))
        const last = page.at(-1)
        if (last === undefined || page.length < limit) break
        after = last
      }
      t.equal(ids.length, count, `by ${limit}`)
      t.equal(new Set(ids).size, count)
    }
  }
})
