/** The upstream's list of threads: what of it is read, and what a caller gets of it. */
import { test } from 'tap'
import type { Json } from '../../src/core/json/read.ts'
import { gather, readThreadPage, startIn, type Gathering, type ThreadPage } from '../../src/core/wire/thread-page.ts'

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
  t.equal(gather(threads, notX, gathering)?.at, 4)
  t.strictSame(gathering.items, [{ id: 'a' }, { id: 'b' }])
  t.end()
})

void test('gathering goes on with a part of a page, without losing or repeating an item', (t) => {
  const gathering: Gathering = { items: [{ id: 'earlier' }], limit: 3 }
  t.equal(gather(threads.slice(3), [true, true], gathering), null)
  t.strictSame(gathering.items, [{ id: 'earlier' }, { id: 'b' }, { id: 'c' }])
  t.equal(gather(threads.slice(2), [false, false, true], gathering)?.at, 4, 'the place is that on the page')
  t.end()
})

void test('a page is done where nothing of the caller is left in it', (t) => {
  const full: Gathering = { items: [], limit: 0 }
  t.equal(gather(threads, [false, false, false, false, false], full), null)
  t.equal(gather([], [], full), null)
  t.strictSame(full.items, [])
  t.end()
})

void test('a place is where its threads stand now, or where it was if they are gone, or if nothing says where they stood', (t) => {
  const start = (ids: string, place: { offset: number; between?: readonly [string, string] }): number =>
    startIn(
      [...ids].map((id, at) => ({ id, at, item: { id } })),
      { page: null, ...place },
    )
  t.equal(start('xaxbc', { offset: 3 }), 3)
  t.equal(start('xaxbc', { offset: 3, between: ['a', 'b'] }), 3)
  t.equal(start('abc', { offset: 3, between: ['a', 'b'] }), 1)
  t.equal(start('xxxabc', { offset: 3, between: ['a', 'b'] }), 4)
  t.equal(start('bxac', { offset: 3, between: ['a', 'b'] }), 3, 'behind the last one')
  t.equal(start('xxxxc', { offset: 3, between: ['a', 'b'] }), 3, 'both are gone')
  t.equal(start('c', { offset: 3, between: ['a', 'b'] }), 3, 'and so is most of the page')
  t.equal(start('aaa', { offset: 2, between: ['a', 'a'] }), 2, 'an upstream that lists a thread again and again')
  t.end()
})
