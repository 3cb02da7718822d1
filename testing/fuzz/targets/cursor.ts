/**
 * Cursors of lists. The input says what is sealed for whom, and what becomes of the cursor: one that was changed, or is of another
 * user, query, upstream or secret, opens nothing; one that was not opens what was sealed.
 */
import assert from 'node:assert/strict'
import { isScope } from '../../../src/core/route/ids.ts'
import type { Place } from '../../../src/core/wire/thread-page.ts'
import { makeCursorSeal } from '../../../src/http/lists/cursor.ts'

export const words = [
  '\n',
  'corp:alice',
  'corp:bob',
  'agentId=d',
  '&limit=2',
  'main',
  '=',
  '==',
  '-',
  '_',
  '%',
  ' ',
  '\u0000',
  '["',
  '"]',
  ',',
]

// A page, an offset, the threads on both sides; twice upstream, user and query; then the changes.
export const seeds = [
  'p\n0\n\n\n\nalice\nagentId=d\n\nalice\nagentId=d\n',
  'page\n12\nt-1\nt-2\nmain\nalice\nagentId=d&limit=2\n\nalice\nagentId=d&limit=2\n\x10\0A',
  'p\n1\nt\n\nmain\na\n\nmain\nb\n\n\x80\x01B',
  'p\n1\n\n\n\na\nb\n\na\nb\n\xc0\x03D',
  'p\n1\n\n\n\na\nb\n\na\nb\n\xff\x01=\xff\x01=',
  'p\n1\n\n\n\na\nb\n\na\nb\n\xff\x02=',
]

const SECRET = Buffer.alloc(32, 7)

export function examine(input: Buffer): void {
  const [page = '', offset = '', last, next, ...lines] = input.toString('latin1').split('\n')
  const number = Number.parseInt(offset, 36)
  const place: Place = {
    page: page === '' ? null : page,
    offset: Number.isSafeInteger(number) ? Math.max(0, number) : 0,
    ...(last === undefined || next === undefined || last === '' || next === '' ? {} : { between: [last, next] }),
  }
  const [one, other] = [boundOf(lines.slice(0, 3)), boundOf(lines.slice(3, 6))]
  const cursor = makeCursorSeal(SECRET, one.scope).seal(place, one.bound)
  assert.match(cursor, /^[A-Za-z0-9_-]+$/)
  assert.deepEqual(makeCursorSeal(SECRET, one.scope).open(cursor, one.bound), place, 'its own cursor')
  assert.equal(makeCursorSeal(Buffer.alloc(32, 8), one.scope).open(cursor, one.bound), null, 'another secret')

  const isSame = JSON.stringify(one) === JSON.stringify(other)
  const opened = makeCursorSeal(SECRET, other.scope).open(cursor, other.bound)
  assert.deepEqual(opened, isSame ? place : null, 'another user, query or upstream')

  const changed = edited(cursor, lines.slice(6).join('\n'))
  const expected = changed === cursor ? place : null
  assert.deepEqual(makeCursorSeal(SECRET, one.scope).open(changed, one.bound), expected, 'a changed cursor')
  // What a caller makes up.
  for (const forged of [page, lines.join('')]) assert.equal(makeCursorSeal(SECRET, one.scope).open(forged, one.bound), null)
}

/** What a cursor is good for, as lists say it: a user id has a colon, a scope has none. */
function boundOf([scope = '', user = '', query = '']: readonly string[]) {
  const pairs = query.split('&').map((pair) => pair.split('='))
  return { scope: isScope(scope) ? scope : '', bound: [`corp:${user}`, pairs] }
}

/** Changes a text: each three characters say where, what to do, and with which character. */
function edited(cursor: string, edits: string): string {
  let text = cursor
  for (const [, where = '', how = '', what = ''] of edits.matchAll(/([^])([^])([^])/g)) {
    const at = Math.floor((where.charCodeAt(0) / 256) * (text.length + 1))
    const kind = how.charCodeAt(0) % 4
    if (kind === 0) text = text.slice(0, at) + what + text.slice(at + 1)
    else if (kind === 1) text = text.slice(0, at) + what + text.slice(at)
    else if (kind === 2) text = text.slice(0, at) + text.slice(at + 1)
    else text = text.slice(at) + text.slice(0, at)
  }
  return text
}
