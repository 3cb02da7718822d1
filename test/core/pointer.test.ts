/** JSON pointers over claims: RFC 6901, own properties only. */
import { test } from 'tap'
import { isPointer, valueAt } from '../../src/core/json/pointer.ts'

const DOCUMENT = { a: { 'b/c': 1, 'd~e': 2, '': 3, '~1': 4 }, list: ['x'], text: 'abc', nothing: null, '': { '': 5 } }

void test('a pointer finds what RFC 6901 says', (t) => {
  const found: readonly (readonly [string, unknown])[] = [
    ['', DOCUMENT],
    ['/a', DOCUMENT.a],
    ['/a/b~1c', 1],
    ['/a/d~0e', 2],
    ['/a/', 3],
    ['/a/~01', 4],
    ['/', { '': 5 }],
    ['//', 5],
    ['/list/0', 'x'],
    ['/nothing', null],
  ]
  for (const [pointer, value] of found) t.strictSame(valueAt(DOCUMENT, pointer), value, pointer)
  t.equal(valueAt('text', ''), 'text', 'the whole document, whatever it is')
  t.equal(valueAt({ '/': 'slash', a: 'letter' }, '/a'), 'letter')
  t.end()
})

void test('nothing is found on a prototype, in a text, or below what is no object; a list has no length', (t) => {
  const missing = ['/constructor', '/a/toString', '/__proto__', '/text/length', '/text/0', '/list/0/length', '/list/length', '/list/length/x', '/nothing/x', '/x/y', '/list/1'] // oxfmt-ignore
  for (const pointer of missing) t.equal(valueAt(DOCUMENT, pointer), undefined, pointer)
  for (const document of [null, undefined, 'text', 5]) t.equal(valueAt(document, '/length'), undefined, String(document))
  t.end()
})

void test('pointers are told from other texts', (t) => {
  for (const text of ['', '/', '//', '/sub', '/a~0b/c~1d', '/a b/é', '/https:~1~1example.com~1roles']) t.ok(isPointer(text), text)
  for (const text of ['a', 'a/b', ' /a', '/~2', '/a~', '~0', '/~', '/a/~x/b']) t.notOk(isPointer(text), text)
  t.end()
})
