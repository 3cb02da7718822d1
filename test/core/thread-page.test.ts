/** The upstream's list of threads: what of it is read, and what a caller gets of it. */
import { test } from 'tap'
import type { Json } from '../../src/core/json.ts'
import { gather, readThreadPage, type Gathering, type ThreadPage } from '../../src/core/thread-page.ts'

void test('of a page only the threads, the cursor and the join codes are read', (t) => {
  const item = { id: 'a', name: 'Holidays' }
  t.strictSame(readThreadPage({ threads: [item], nextCursor: 'c', joinCode: 'code', joinToken: 'token', total: 7, note: 'n' }), {
    threads: [{ id: 'a', at: 0, item }],
    next: 'c',
    joinCodes: { joinCode: 'code', joinToken: 'token' },
  })
  t.strictSame(readThreadPage({ threads: [], joinCode: 5, joinToken: null }), { threads: [], next: null, joinCodes: {} })
  t.end()
})

void test('the list ends where no cursor is given: none, null or an empty one', (t) => {
  for (const end of [{}, { nextCursor: null }, { nextCursor: '' }])
    t.strictSame(readThreadPage({ threads: [], ...end }), { threads: [], next: null, joinCodes: {} }, JSON.stringify(end))
  t.end()
})

void test('a page is read only if every item can be decided', (t) => {
  const pages: readonly Json[] = [
    null,
    5,
    'threads',
    [],
    {},
    { threads: {} },
    { threads: 'a' },
    { threads: [{}] },
    { threads: [{ id: 5 }] },
    { threads: ['a'] },
    { threads: [null] },
    { threads: [{ id: 'a' }, {}] },
    { threads: [], nextCursor: 5 },
    { threads: [], nextCursor: false },
  ]
  for (const page of pages) t.equal(readThreadPage(page), null, JSON.stringify(page))
  t.end()
})

const { threads } = readThreadPage({ threads: ['x', 'a', 'x', 'b', 'c'].map((id) => ({ id })) }) as ThreadPage
const notX = [false, true, false, true, true]

void test('gathering stops at the first item of the caller without room, and says where', (t) => {
  const gathering: Gathering = { items: [], limit: 2 }
  t.equal(gather(threads, notX, gathering), 4)
  t.strictSame(gathering.items, [{ id: 'a' }, { id: 'b' }])
  t.end()
})

void test('gathering goes on with a part of a page, without losing or repeating an item', (t) => {
  const gathering: Gathering = { items: [{ id: 'earlier' }], limit: 3 }
  t.equal(gather(threads.slice(3), [true, true], gathering), null)
  t.strictSame(gathering.items, [{ id: 'earlier' }, { id: 'b' }, { id: 'c' }])
  t.equal(gather(threads.slice(2), [false, false, true], gathering), 4, 'the place is that on the page')
  t.end()
})

void test('a page is done where nothing of the caller is left in it', (t) => {
  const full: Gathering = { items: [], limit: 0 }
  t.equal(gather(threads, [false, false, false, false, false], full), null)
  t.equal(gather([], [], full), null)
  t.strictSame(full.items, [])
  t.end()
})
