/** What is remembered of verified tokens: one whole credential each, a bounded number, until its end. */
import { test } from 'tap'
import { makeTokenCache } from '../../src/auth/token-cache.ts'

/** Somebody, told from others by name, until a time. */
const of = (name: string, until = Number.POSITIVE_INFINITY) => ({ name, until })

void test('a token is remembered whole', (t) => {
  const cache = makeTokenCache<ReturnType<typeof of>>(10)
  cache.put('head.body.one', of('alice'))
  t.same(cache.get('head.body.one', 0), of('alice'))
  for (const other of ['head.body.two', 'head.body.', 'head.body', 'head.body.one ', 'head.body.onE', 'ead.body.one', ''])
    t.equal(cache.get(other, 0), null, other)
  cache.put('head.body.two', of('bob'))
  t.same([cache.get('head.body.one', 0), cache.get('head.body.two', 0)], [of('alice'), of('bob')])
  t.end()
})

void test('until its end, and not at it', (t) => {
  const cache = makeTokenCache<ReturnType<typeof of>>(10)
  cache.put('a', of('alice', 1000))
  t.same(cache.get('a', 999), of('alice', 1000))
  t.equal(cache.get('a', 1000), null)
  t.equal(cache.get('a', 999), null, 'what was over is not there again when the clock goes back')
  t.end()
})

void test('a bounded number: the one that was used least recently goes first', (t) => {
  const cache = makeTokenCache<ReturnType<typeof of>>(3)
  for (const name of ['a', 'b', 'c']) cache.put(name, of(name))
  t.same(cache.get('a', 0), of('a'))
  cache.put('d', of('d'))
  t.equal(cache.get('b', 0), null)
  cache.put('c', of('c again'))
  cache.put('e', of('e'))
  t.equal(cache.get('a', 0), null)
  t.same(
    ['c', 'd', 'e'].map((name) => cache.get(name, 0)),
    [of('c again'), of('d'), of('e')],
  )
  for (let at = 0; at < 1000; at += 1) cache.put(`more-${at}`, of('x'))
  const left = Array.from({ length: 1000 }, (_, at) => cache.get(`more-${at}`, 0)).filter((one) => one !== null)
  t.equal(left.length, 3)
  t.end()
})

void test('none at all where the number is 0', (t) => {
  const cache = makeTokenCache<ReturnType<typeof of>>(0)
  cache.put('a', of('alice'))
  t.equal(cache.get('a', 0), null)
  t.end()
})
