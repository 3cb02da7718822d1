/** The credential of a request: exactly `Bearer`, one space and a token. Any other form is no second way in. */
import { test } from 'tap'
import { bearerToken } from '../../src/auth/bearer.ts'

void test('one bearer token is read', (t) => {
  for (const token of ['a', 'a.b.c', 'A-z0.9_~+/', 'abc==']) t.same(bearerToken(`Bearer ${token}`), { token })
  t.end()
})

void test('no header is credential-missing', (t) => {
  t.match(bearerToken(undefined), { outcome: 'refused', code: 'credential-missing' })
  t.end()
})

for (const header of [
  '',
  'Bearer',
  'bearer a.b.c',
  'BEARER a.b.c',
  ' Bearer a.b.c',
  'Bearer\ta.b.c',
  'Basic YTpi',
  'Token a.b.c',
  'a.b.c',
  'DPoP a.b.c',
  'Bearera.b.c',
]) {
  void test(`"${header}" is another scheme: credential-invalid`, (t) => {
    t.match(bearerToken(header), { outcome: 'refused', code: 'credential-invalid', reason: 'scheme-not-bearer' })
    t.end()
  })
}

for (const header of [
  'Bearer ',
  'Bearer  a',
  'Bearer a ',
  'Bearer a b',
  'Bearer a,b',
  'Bearer "a"',
  'Bearer =',
  'Bearer a=b',
  'Bearer a\n',
  'Bearer ä',
  'Bearer a\0',
]) {
  void test(`${JSON.stringify(header)} holds no token: credential-invalid`, (t) => {
    t.match(bearerToken(header), { outcome: 'refused', code: 'credential-invalid', reason: 'token-malformed' })
    t.end()
  })
}

void test('a token beyond all bounds is not looked at', (t) => {
  t.match(bearerToken(`Bearer ${'a'.repeat(8185)}`), { token: /^a+$/ })
  t.match(bearerToken(`Bearer ${'a'.repeat(8186)}`), { code: 'credential-invalid', reason: 'token-too-long' })
  t.end()
})
