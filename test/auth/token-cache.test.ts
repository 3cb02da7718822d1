/** What is remembered of verified tokens: one whole token each, a bounded number, under one generation, until its end. */
import { test } from 'tap'
import type { Verified } from '../../src/auth/claim-rules.ts'
import { makeTokenCache } from '../../src/auth/token-cache.ts'

/** Somebody, told from others by name. */
const of = (name: string): Verified => ({ name }) as unknown as Verified
const NEVER = Number.POSITIVE_INFINITY

void test('a token is remembered whole', (t) => {
  const cache = makeTokenCache(10)
  cache.put('head.body.one', 'g', of('alice'), NEVER)
  t.same(cache.get('head.body.one', 'g', 0), of('alice'))
  for (const other of ['head.body.two', 'head.body.', 'head.body', 'head.body.one ', 'head.body.onE', 'ead.body.one', ''])
    t.equal(cache.get(other, 'g', 0), null, other)
  cache.put('head.body.two', 'g', of('bob'), NEVER)
  t.same([cache.get('head.body.one', 'g', 0), cache.get('head.body.two', 'g', 0)], [of('alice'), of('bob')])
  t.end()
})

void test('until its end, and not at it', (t) => {
  const cache = makeTokenCache(10)
  cache.put('a', 'g', of('alice'), 1000)
  t.same(cache.get('a', 'g', 999), of('alice'))
  t.equal(cache.get('a', 'g', 1000), null)
  t.equal(cache.get('a', 'g', 999), null, 'what was over is not there again when the clock goes back')
  t.end()
})

void test('under one generation', (t) => {
  const cache = makeTokenCache(10)
  cache.put('a', 'corp 1', of('alice'), NEVER)
  t.equal(cache.get('a', 'corp 2', 0), null)
  t.equal(cache.get('a', 'corp 1', 0), null, 'and it is forgotten')
  cache.put('a', 'corp 1', of('alice'), NEVER)
  t.equal(cache.get('a', 'other 1', 0), null, 'nor is it for another issuer')
  t.end()
})

void test('a bounded number: the one that was used least recently goes first', (t) => {
  const cache = makeTokenCache(3)
  for (const name of ['a', 'b', 'c']) cache.put(name, 'g', of(name), NEVER)
  t.same(cache.get('a', 'g', 0), of('a'))
  cache.put('d', 'g', of('d'), NEVER)
  t.equal(cache.get('b', 'g', 0), null)
  cache.put('c', 'g', of('c again'), NEVER)
  cache.put('e', 'g', of('e'), NEVER)
  t.equal(cache.get('a', 'g', 0), null)
  t.same(
    ['c', 'd', 'e'].map((name) => cache.get(name, 'g', 0)),
    [of('c again'), of('d'), of('e')],
  )
  for (let at = 0; at < 1000; at += 1) cache.put(`more-${at}`, 'g', of('x'), NEVER)
  const left = Array.from({ length: 1000 }, (_, at) => cache.get(`more-${at}`, 'g', 0)).filter((one) => one !== null)
  t.equal(left.length, 3)
  t.end()
})

void test('none at all where the number is 0', (t) => {
  const cache = makeTokenCache(0)
  cache.put('a', 'g', of('alice'), NEVER)
  t.equal(cache.get('a', 'g', 0), null)
  t.end()
})
