/** CORS: exact origins, header names echoed one by one, nothing at all without configuration. */
import { test } from 'tap'
import { corsHeaders, isPreflight, preflightHeaders } from '../../src/core/wire/cors.ts'
import { headerLines } from '../../src/core/wire/headers.ts'

const APP = 'https://app.test'
const LISTED = { origins: ['https://other.test', APP], credentials: false }
const ANY = { origins: ['*'], credentials: false }
const EXPOSED = {
  'access-control-expose-headers':
    'x-request-id, retry-after, www-authenticate, content-location, x-pagination-next, x-pagination-total',
}

const lines = (...pairs: string[]) => headerLines(pairs)

/** A preflight of the app that asks for these header names, a line each. */
const preflight = (...asked: string[]) =>
  lines(
    'Origin',
    APP,
    'Access-Control-Request-Method',
    'POST',
    ...asked.flatMap((line) => ['Access-Control-Request-Headers', line]),
  )

const allowed = (...asked: string[]) => preflightHeaders(preflight(...asked), LISTED)?.['access-control-allow-headers']

void test('a preflight is OPTIONS with Origin and Access-Control-Request-Method', (t) => {
  t.ok(isPreflight('OPTIONS', preflight()))
  t.notOk(isPreflight('POST', preflight()))
  t.notOk(isPreflight('OPTIONS', lines('Origin', APP)))
  t.notOk(isPreflight('OPTIONS', lines('Access-Control-Request-Method', 'POST')))
  t.end()
})

void test('a listed origin may read every answer', (t) => {
  const headers = { vary: 'Origin', 'access-control-allow-origin': APP, ...EXPOSED }
  t.strictSame(corsHeaders(lines('Origin', APP), LISTED), headers)
  t.strictSame(corsHeaders(lines('Origin', APP), { ...LISTED, credentials: true }), {
    ...headers,
    'access-control-allow-credentials': 'true',
  })
  t.end()
})

void test('other origins may read none, and caches keep their answers apart', (t) => {
  for (const origin of [`${APP}.evil`, 'http://app.test', 'https://APP.test', 'null', `${APP}:444`, '*', '']) {
    const foreign = lines('Origin', origin, 'Access-Control-Request-Method', 'GET')
    t.strictSame(corsHeaders(foreign, LISTED), { vary: 'Origin' }, origin)
    t.equal(preflightHeaders(foreign, LISTED), null, origin)
  }
  t.strictSame(corsHeaders(lines(), LISTED), { vary: 'Origin' }, 'no origin')
  t.end()
})

void test('"*" lets every origin read, and answers to requests without one stay as they are', (t) => {
  t.strictSame(corsHeaders(lines('Origin', 'https://any.test'), ANY), { 'access-control-allow-origin': '*', ...EXPOSED })
  t.strictSame(corsHeaders(lines(), ANY), {})
  t.end()
})

void test('without configured origins there are no CORS headers, and no preflight is granted', (t) => {
  const none = { origins: [], credentials: false }
  t.strictSame(corsHeaders(preflight(), none), {})
  t.equal(preflightHeaders(preflight(), none), null)
  t.end()
})

void test('a granted preflight names methods and headers, and how long it holds', (t) => {
  const granted = {
    'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
    'access-control-allow-headers': 'authorization, content-type',
    'access-control-max-age': '600',
    ...EXPOSED,
  }
  const asked = preflight('authorization,content-type')
  t.strictSame(preflightHeaders(asked, LISTED), {
    ...granted,
    'access-control-allow-origin': APP,
    vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
  })
  t.strictSame(preflightHeaders(asked, ANY), {
    ...granted,
    'access-control-allow-origin': '*',
    vary: 'Access-Control-Request-Method, Access-Control-Request-Headers',
  })
  t.end()
})

void test('requested header names are echoed one by one, and only names', (t) => {
  t.equal(allowed("Authorization ,\tx-app, a!#$%&'*+-.^_`|~0"), "Authorization, x-app, a!#$%&'*+-.^_`|~0")
  t.equal(allowed('authorization', 'x-app'), 'authorization, x-app', 'two lines')
  t.equal(allowed('b@d, @bad, bad@, a b, x:y, é, x-app'), 'x-app')
  t.equal(allowed(`${'a'.repeat(128)}, ${'b'.repeat(129)}`), 'a'.repeat(128), 'names of a sane length')
  for (const asked of [[], [''], [' , '], ['@']])
    t.notOk('access-control-allow-headers' in preflightHeaders(preflight(...asked), LISTED)!, JSON.stringify(asked))
  t.end()
})
