/** The seal of the list's cursors, by itself: what a cursor is good for, and how much it shows. */
import { test } from 'tap'
import { makeCursorSeal } from '../../src/http/lists/cursor.ts'

const SECRET = Buffer.alloc(32, 7)
const BOUND = ['corp:alice', [['agentId', 'd']]]

void test('a cursor gives its place back, for the same secret, the same upstream and the same bound', (t) => {
  const seal = makeCursorSeal(SECRET, '')
  for (const place of [
    { page: null, offset: 0 },
    { page: '', offset: 1 },
    { page: 'p-ü-漢-\u0000', offset: 12_345 },
    { page: 'x'.repeat(5000), offset: 2 },
    { page: 'p', offset: 2, between: ['t-1', 't-2'] },
  ] as const) {
    const cursor = seal.seal(place, BOUND)
    t.strictSame(seal.open(cursor, BOUND), place)
    t.equal(seal.open(cursor, ['corp:bob', [['agentId', 'd']]]), null)
    t.equal(seal.open(cursor, ['corp:alice', []]), null)
    t.equal(makeCursorSeal(SECRET, 'other').open(cursor, BOUND), null, 'of another upstream')
    t.equal(makeCursorSeal(Buffer.alloc(32, 8), '').open(cursor, BOUND), null)
  }
  t.end()
})

void test('a cursor outlives the process that sealed it, also where the next one is newer', (t) => {
  // Sealed once by this version: another key or another form would break every list that is being read during an upgrade.
  const cursor =
    'iyFxJ3Ds4kwTqFWrF3BKtenirkeWgd-Y5RvaRaYsL-6iSE9Wcs9rN13cH8WBebNbFAVdUHvePdFLSQL1xHjaTvSjRAzuWqjN8Z9z' +
    'f40qKHpx6ZhqAdjuYwszfWomVRgIpqQ6cICs_kcT3bUFZ25Hn6oNAzWEshUVHQC7BGGxS9gQ60l6cKZXRmbnqUnOWfbRoZUd-7za' +
    'xE0Yjnf9'
  t.same(makeCursorSeal(SECRET, '').open(cursor, BOUND), { page: 'p-ü', offset: 3 })
  t.end()
})

void test('the length of a cursor tells its place to within a block of 128 bytes, and no more', (t) => {
  const seal = makeCursorSeal(SECRET, '')
  const sealed = (page: string, offset: number): number => Buffer.from(seal.seal({ page, offset }, BOUND), 'base64url').length
  // 12 bytes before and 16 behind what is sealed: ["…",0] is the page and six bytes more.
  for (const [page, blocks] of [
    ['', 1],
    ['x'.repeat(121), 1],
    ['x'.repeat(122), 2],
    ['ü'.repeat(60), 1],
    ['ü'.repeat(61), 2],
    ['x'.repeat(249), 2],
    ['x'.repeat(250), 3],
  ] as const) {
    t.equal(sealed(page, 0), 12 + blocks * 128 + 16, `${page.slice(0, 1)} ${page.length}`)
  }
  t.end()
})
