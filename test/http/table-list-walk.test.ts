/**
 * How the list is gathered from the table: whose threads are looked at, one query for a page of candidates, each of them
 * decided, and a bound on it all. The store is played, to see what it is asked for.
 */
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type OwnerRecord, type Permit } from '../../src/core/decide/decide.ts'
import { EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import type { Rules } from '../../src/core/decide/rules.ts'
import { AnswerMemory } from '../../src/http/lists/answer-memory.ts'
import { makeCursorSeal } from '../../src/http/lists/cursor.ts'
import { makeBudget } from '../../src/http/pipeline/request-body.ts'
import { makeTableList, type TableListParts } from '../../src/http/lists/table-list.ts'
import type { ListedThread, ListWindow } from '../../src/store/port/lists.ts'
import { rule, rulesOf } from '../../testing/support/rules-of.ts'
import { user } from '../../testing/support/callers.ts'
import { authorized } from '../../testing/support/requests.ts'

const FACTS = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' } as const
const ALICE = user('alice')
const OLGA = user('olga', { roles: ['operator'] })
const READING = [rule({ threads: ['own', 'shared'] }), rule({ who: ['operator'], threads: ['foreign'] })]
const RULES = rulesOf({ 'threads/list': [rule({ who: ['signed-in', 'anonymous'] })], 'threads/messages': READING })

/** Threads used one after the other, the last first. */
function threads(count: number, of: (at: number) => Partial<ListedThread> = () => ({})): ListedThread[] {
  return Array.from({ length: count }, (_, at) => ({
    threadId: `t${at}`,
    owner: 'corp:alice',
    provisional: false,
    granted: null,
    agentId: 'default',
    name: null,
    archived: false,
    createdAt: 0,
    updatedAt: count - at,
    ...of(at),
  }))
}

type Listed = Parameters<TableListParts['store']['listed']>

/** A store that gives these, and what it was asked. */
function playing(rows: readonly ListedThread[]) {
  const asked: Listed[] = []
  const listed = async (...given: Listed) => {
    asked.push(given)
    const { after, limit } = given[2]
    const from = after === null ? 0 : rows.findIndex(({ threadId }) => threadId === after.threadId) + 1
    return rows.slice(from, from + limit)
  }
  return { asked, store: { listed } }
}

/** Asks for a page, through a permit that decide made. */
async function page(
  store: TableListParts['store'],
  query: string,
  who: Principal = ALICE,
  rules: Rules = RULES,
  records: TableListParts['records']['records'] = () => Promise.reject(new Error('one query is enough')),
  room = Number.POSITIVE_INFINITY,
) {
  const descriptor = classify('GET', ['threads'], new Map(new URLSearchParams(query))) as RouteDescriptor
  const permit = decide(descriptor, who, rules, FACTS) as Permit
  const list = makeTableList({
    store,
    records: { records },
    scope: 'one',
    rules,
    facts: FACTS,
    seal: makeCursorSeal(Buffer.alloc(32, 1), ''),
  })
  const answer = await list.page(authorized(permit), new AnswerMemory(makeBudget(room)))
  if (answer.outcome !== 'rewritten') throw new Error(JSON.stringify(answer))
  const { threads: items, nextCursor } = JSON.parse(String(answer.body)) as {
    threads: { id: string }[]
    nextCursor: string | null
  }
  return { ids: items.map(({ id }) => id), nextCursor, goesOn: list.goesOn(permit) }
}

const windows = (asked: readonly Listed[]): ListWindow[] => asked.map(([, , window]) => window)

void test('a page is one query, whatever its size, for the caller’s own threads and those granted to them', async (t) => {
  for (const limit of [1, 99, 100, 500, 1000]) {
    const { store, asked } = playing(threads(1200))
    const { ids } = await page(store, `limit=${limit}`)
    t.equal(ids.length, limit)
    t.match(asked, [['one', { userId: 'corp:alice', groups: [] }, { agentId: null, includeArchived: false, after: null }]])
    t.equal(asked.length, 1, `limit ${limit}`)
  }
})

void test('everybody’s threads are looked at for those alone whom the policy lets read them', async (t) => {
  const rows = threads(4, (at) => (at % 2 === 0 ? { owner: 'corp:bob' } : {}))
  const operator = playing(rows)
  t.strictSame((await page(operator.store, '', OLGA)).ids, ['t0', 't1', 't2', 't3'])
  t.equal(operator.asked[0]?.[1], 'everybody')
  const everybody = playing(rows)
  t.strictSame((await page(everybody.store, '', EVERYBODY)).ids, [])
  t.strictSame(everybody.asked[0]?.[1], { userId: EVERYBODY.id, groups: [] })
})

void test('a thread of which no run is confirmed is in nobody’s list', async (t) => {
  const rows = threads(4, (at) => ({
    provisional: at === 1,
    ...(at === 2 ? { owner: 'corp:bob', granted: 'write' as const } : {}),
  }))
  t.strictSame((await page(playing(rows).store, '')).ids, ['t0', 't2', 't3'])
  const granted = rows.map((row) => ({ ...row, provisional: row.threadId === 't2' }))
  t.strictSame((await page(playing(granted).store, '')).ids, ['t0', 't1', 't3'])
  t.strictSame((await page(playing(granted).store, '', OLGA)).ids, ['t0', 't1', 't3'])
})

void test('every candidate is decided: what the store gives too much of is not shown', async (t) => {
  const rows = threads(
    8,
    (at) =>
      [
        {},
        { owner: 'corp:bob' },
        { owner: 'corp:bob', granted: 'read' as const },
        { owner: 'corp:bob', granted: 'write' as const },
        { owner: '' },
        { owner: '', granted: 'read' as const },
        { threadId: 'clear' },
        { owner: 'corp:ALICE' },
      ][at]!,
  )
  t.strictSame((await page(playing(rows).store, '')).ids, ['t0', 't2', 't3'])
  t.strictSame((await page(playing(rows).store, '', ALICE, { ...RULES, sharing: false })).ids, ['t0'], 'grants don’t count')
  const notShared = rulesOf({ 'threads/list': [{}], 'threads/messages': [{ threads: ['own'] }] })
  t.strictSame((await page(playing(rows).store, '', ALICE, notShared)).ids, ['t0'], 'no rule opens what is shared')
  const denied = rulesOf({
    'threads/list': [{}],
    'threads/messages': [{ threads: ['own', 'shared'] }, { effect: 'deny', threads: ['own'] }],
  })
  t.strictSame((await page(playing(rows).store, '', ALICE, denied)).ids, ['t2', 't3'])
  t.notOk((await page(playing(rows).store, '', OLGA)).ids.includes('t4'), 'a thread without an owner is in nobody’s list')
})

void test('whoever may read everybody’s threads but not what was granted to them: it is asked which those are', async (t) => {
  const rules = rulesOf({
    'threads/list': [{}],
    'threads/messages': [
      { who: ['operator'], threads: ['foreign'] },
      { effect: 'deny', threads: ['shared'] },
    ],
  })
  const { store, asked } = playing(threads(3, () => ({ owner: 'corp:bob' })))
  const questions: unknown[] = []
  const records: TableListParts['records']['records'] = async (scope, ids, principal) => {
    questions.push([scope, ids, principal.id])
    const record = { owner: 'corp:bob', deleted: false }
    const known = new Map<string, OwnerRecord>([
      ['t0', record],
      ['t1', { ...record, granted: 'read' }],
    ])
    return { get: (id) => known.get(id) ?? null }
  }
  t.strictSame((await page(store, '', OLGA, rules, records)).ids, ['t0'], 'what nobody knows of any more is not shown')
  t.strictSame(questions, [['one', ['t0', 't1', 't2'], 'corp:olga']], 'one query more for a page')
  t.equal(asked.length, 1)
})

void test('a page is filled from further candidates, up to its limit and no further', async (t) => {
  const { store, asked } = playing(threads(250, (at) => (at % 100 === 99 ? {} : { owner: 'corp:bob' })))
  t.strictSame(await page(store, 'limit=2'), { ids: ['t99', 't199'], nextCursor: null, goesOn: false })
  t.strictSame(
    windows(asked).map(({ after }) => after?.threadId),
    [undefined, 't99', 't199'],
  )
  const three = await page(playing(threads(350, (at) => (at % 100 === 99 ? {} : { owner: 'corp:bob' }))).store, 'limit=2')
  t.strictSame(three.ids, ['t99', 't199'])
  t.type(three.nextCursor, 'string', 'a third one follows')
})

void test('where hardly anything is the caller’s, a request ends with a bound, and the next goes on from there', async (t) => {
  const rows = threads(2501, (at) => (at === 2500 ? {} : { owner: 'corp:bob' }))
  const { store, asked } = playing(rows)
  const first = await page(store, 'limit=5')
  t.strictSame(first.ids, [])
  t.equal(asked.length, 20, 'queries for one request')
  const second = await page(store, `limit=5&cursor=${first.nextCursor}`)
  t.strictSame(second, { ids: ['t2500'], nextCursor: null, goesOn: true })
  t.equal(windows(asked)[20]?.after?.threadId, 't1999')
})

void test('following the cursors gives each thread once, also where many were used at the same time', async (t) => {
  const rows = threads(23, () => ({ updatedAt: 5 }))
  for (const limit of [1, 2, 7, 22, 23, 24]) {
    const ids: string[] = []
    for (let cursor = ''; ;) {
      const got = await page(playing(rows).store, `limit=${limit}${cursor}`)
      t.ok(got.ids.length > 0 && got.ids.length <= limit)
      ids.push(...got.ids)
      if (got.nextCursor === null) break
      cursor = `&cursor=${got.nextCursor}`
    }
    t.strictSame(
      ids,
      rows.map(({ threadId }) => threadId),
      `limit ${limit}`,
    )
  }
})

void test('agentId and includeArchived are the store’s to look after; the runtime takes "true" alone for a yes', async (t) => {
  for (const [query, agentId, includeArchived] of [
    ['agentId=default', 'default', false],
    ['agentId=other&includeArchived=true', 'other', true],
    ['includeArchived=TRUE', null, false],
    ['includeArchived=1', null, false],
    ['includeArchived=', null, false],
  ] as const) {
    const { store, asked } = playing([])
    await page(store, query)
    t.match(windows(asked), [{ agentId, includeArchived }], query)
  }
})

void test('a caller without threads costs one query', async (t) => {
  const { store, asked } = playing([])
  t.strictSame(await page(store, 'limit=10'), { ids: [], nextCursor: null, goesOn: false })
  t.equal(asked.length, 1)
})

void test('a list for which there is no room is refused; one that is short takes none', async (t) => {
  const named = (count: number, name: string) => playing(threads(count, () => ({ name }))).store
  const asked = (store: TableListParts['store'], room: number) =>
    page(store, '', ALICE, RULES, () => Promise.reject(new Error('one query is enough')), room)
  const wide = named(1000, '\u0001'.repeat(1000))
  await t.rejects(asked(wide, 6_000_000), /bodies-budget-exhausted/, 'less than is written of it')
  t.equal((await asked(wide, 10_000_000)).ids.length, 1000)
  t.equal((await asked(named(20, 'a name'), 0)).ids.length, 20)
})
