/** What the cache in front of a shared store answers, and what never. */
import { test } from 'tap'
import { makeAccessCache } from '../../src/store/access-cache.ts'

const KEY = { scope: '', threadId: 't' }
const ALICE = { userId: 'corp:alice', groups: ['corp:staff'] }
const BOB = { userId: 'corp:bob', groups: [] }
const CAROL = { userId: 'corp:carol', groups: ['corp:team', 'corp:other'] }

const OWNED = { owner: 'corp:alice', grants: [] }
const SHARED = {
  owner: 'corp:alice',
  grants: [
    { kind: 'user', id: 'corp:bob', right: 'write' },
    { kind: 'group', id: 'corp:team', right: 'read' },
  ],
} as const

const fresh = () => makeAccessCache(3, () => true)

void test('the owner is answered, and everybody whom the thread was granted to', (t) => {
  const cache = fresh()
  cache.begin()(KEY, SHARED)
  t.same(cache.find(KEY, ALICE), { row: { owner: 'corp:alice', deleted: false, provisional: false, granted: null }, runners: [] })
  t.match(cache.find(KEY, BOB), { row: { granted: 'write' } })
  t.match(cache.find(KEY, CAROL), { row: { granted: 'read' } })
  t.end()
})

void test('nobody else is, whether the thread is known or not', (t) => {
  const cache = fresh()
  cache.begin()(KEY, SHARED)
  t.equal(cache.find(KEY, { userId: 'corp:mallory', groups: ['corp:staff'] }), null)
  // A user is no group of the same name, and the other way round.
  t.equal(cache.find(KEY, { userId: 'corp:team', groups: ['corp:bob', 'corp:alice'] }), null)
  t.equal(cache.find({ scope: '', threadId: 'T' }, ALICE), null)
  t.equal(cache.find({ scope: 't', threadId: '' }, ALICE), null)
  t.end()
})

void test('keys are told apart by both of their parts', (t) => {
  const cache = fresh()
  cache.begin()({ scope: 'a', threadId: 'b:c' }, OWNED)
  t.equal(cache.find({ scope: 'a:b', threadId: 'c' }, ALICE), null)
  t.equal(cache.find({ scope: 'a","b', threadId: 'c' }, ALICE), null)
  t.end()
})

void test('it answers nothing while changes may have been missed', (t) => {
  let isFresh = true
  const cache = makeAccessCache(3, () => isFresh)
  cache.begin()(KEY, OWNED)
  isFresh = false
  t.equal(cache.find(KEY, ALICE), null)
  isFresh = true
  t.not(cache.find(KEY, ALICE), null)
  t.end()
})

void test('what was dropped is asked for again', (t) => {
  const cache = fresh()
  cache.begin()(KEY, OWNED)
  cache.drop({ scope: '', threadId: 'another' })
  t.not(cache.find(KEY, ALICE), null)
  cache.drop(KEY)
  t.equal(cache.find(KEY, ALICE), null)
  cache.begin()(KEY, OWNED)
  cache.drop(null)
  t.equal(cache.find(KEY, ALICE), null)
  t.end()
})

void test('a look-up that began before something was dropped puts nothing in', (t) => {
  const cache = fresh()
  const put = cache.begin()
  cache.drop(KEY)
  put(KEY, OWNED)
  t.equal(cache.find(KEY, ALICE), null)
  const late = cache.begin()
  cache.drop(null)
  late(KEY, OWNED)
  t.equal(cache.find(KEY, ALICE), null)
  t.end()
})

void test('it holds so many threads, those that were used last', (t) => {
  const cache = fresh()
  const at = (threadId: string) => ({ scope: '', threadId })
  for (const id of ['a', 'b', 'c']) cache.begin()(at(id), OWNED)
  cache.find(at('a'), ALICE)
  cache.begin()(at('d'), OWNED)
  cache.begin()(at('d'), OWNED)
  const held = ['a', 'b', 'c', 'd'].filter((id) => cache.find(at(id), ALICE) !== null)
  t.same(held, ['a', 'c', 'd'])
  t.end()
})

void test('it goes on so, whatever was dropped and put in again', (t) => {
  const cache = fresh()
  const at = (number: number) => ({ scope: '', threadId: `t${number}` })
  const held = (): number[] =>
    Array.from({ length: 40 }, (_, number) => number).filter((one) => cache.find(at(one), ALICE) !== null)
  for (let number = 0; number < 20; number += 1) cache.begin()(at(number), OWNED)
  t.same(held(), [17, 18, 19])
  cache.drop(null)
  for (let number = 20; number < 30; number += 1) cache.begin()(at(number), OWNED)
  t.same(held(), [27, 28, 29])
  for (const number of [27, 28, 29]) cache.drop(at(number))
  for (let number = 30; number < 34; number += 1) cache.begin()(at(number), OWNED)
  t.same(held(), [31, 32, 33])
  t.end()
})
