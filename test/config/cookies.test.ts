/** Cookie sessions are opt-in, and a configuration that no browser could use, or that opens them to other pages, does not load. */
import { test } from 'tap'
import { accepted, faultPaths, load } from '../../testing/support/configuration.ts'

const CREDENTIAL = 'authentication.issuers.corp.credential'
const OWN = { 'listen.publicOrigins': ['https://chat.example.com'] }
const COOKIE = { [`${CREDENTIAL}.cookie`]: '__Host-session', ...OWN }

void test('the default is the header alone', (t) => {
  t.same(accepted({}).config.authentication.issuers['corp']?.credential, {})
  t.same(accepted({}).config.listen.publicOrigins, [])
  t.same(accepted({}).config.upstream?.forwardCookies, [])
  t.end()
})

void test('names of cookies', (t) => {
  for (const name of ['__Host-session', '__Secure-authjs.session-token', '__session', 'sb-x-auth-token.0', "a!#$%&'*+-.^_`|~9"])
    t.equal(
      accepted({ ...COOKIE, [`${CREDENTIAL}.cookie`]: name }).config.authentication.issuers['corp']?.credential.cookie,
      name,
    )
  for (const name of [
    '',
    ' ',
    'a b',
    'a=b',
    'a;b',
    'a,b',
    '"a"',
    'a\n',
    'ä',
    'a/b',
    'a@b',
    '(a)',
    '[a]',
    'x'.repeat(257),
    1,
    null,
  ])
    t.same(faultPaths({ ...COOKIE, [`${CREDENTIAL}.cookie`]: name }), [`${CREDENTIAL}.cookie`], String(name))
  t.same(faultPaths({ [`${CREDENTIAL}.header`]: false }), [CREDENTIAL], 'no place at all')
  t.end()
})

void test('own origins are exact, and of https or loopback', (t) => {
  for (const origin of [
    'https://chat.example.com',
    'https://chat.example.com:8443',
    'http://localhost:3000',
    'http://127.0.0.1',
    'http://[::1]:1',
  ])
    t.same(accepted({ ...COOKIE, 'listen.publicOrigins': [origin] }).config.listen.publicOrigins, [origin])
  for (const origin of [
    '*',
    'null',
    '',
    'https://chat.example.com/',
    'https://chat.example.com:443',
    'https://Chat.example.com',
    'https://*.example.com',
    'http://chat.example.com',
    'chat.example.com',
    'https://u@chat.example.com',
    'file://',
    'ws://localhost',
  ])
    t.same(faultPaths({ ...COOKIE, 'listen.publicOrigins': [origin] }), ['listen.publicOrigins.0'], origin)
  t.end()
})

void test('a cookie needs a page that may use it, and never all pages', (t) => {
  t.same(faultPaths({ ...COOKIE, 'listen.publicOrigins': undefined }), [`${CREDENTIAL}.cookie`])
  const listed = { ...COOKIE, 'listen.publicOrigins': undefined, 'cors.origins': ['https://app.example.com'] }
  t.same(faultPaths(listed), [`${CREDENTIAL}.cookie`], 'without credentials, listed pages send no cookies')
  t.same(faultPaths({ ...listed, 'cors.credentials': true }), [])
  t.same(faultPaths({ ...COOKIE, 'cors.origins': ['*'] }), ['cors.origins'])
  t.same(faultPaths({ 'cors.origins': ['*'] }), [], 'without a cookie, as before')
  t.end()
})

void test('only verified cookies are forwarded', (t) => {
  t.same(faultPaths({ ...COOKIE, 'upstream.forwardCookies': ['__Host-session'] }), [])
  for (const name of ['session', '__host-session', '*', ''])
    t.same(faultPaths({ ...COOKIE, 'upstream.forwardCookies': ['__Host-session', name] }), ['upstream.forwardCookies.1'], name)
  t.same(faultPaths({ 'upstream.forwardCookies': ['__Host-session'] }), ['upstream.forwardCookies.0'])
  const off = { ...COOKIE, 'authentication.mode': 'off', 'upstream.forwardCookies': ['__Host-session'] }
  t.same(faultPaths(off), ['upstream.forwardCookies.0'])
  const both = { ...COOKIE, 'upstream.forwardCookies': ['__Host-session'], 'upstream.headers': { Cookie: 'a=b' } }
  t.same(faultPaths(both), ['upstream.forwardCookies'])
  t.same(faultPaths({ ...COOKIE, forwardHeaders: ['cookie'] }), ['forwardHeaders.0'])
  t.end()
})

void test('warnings: keys without effect, and pages that cannot send the cookie', (t) => {
  const warned = (changes: object) => {
    const outcome = load(changes as never)
    return outcome.ok ? outcome.value.warnings.map(({ path }) => path) : ['invalid']
  }
  t.same(warned(OWN), ['listen.publicOrigins'])
  t.same(warned(COOKIE), [])
  t.same(warned({ ...COOKIE, 'cors.origins': ['https://app.example.com'] }), ['cors.credentials'])
  t.same(warned({ ...COOKIE, 'cors.origins': ['https://app.example.com'], 'cors.credentials': true }), [])
  t.end()
})
