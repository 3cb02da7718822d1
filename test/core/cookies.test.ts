/** Which page sent a request with a credential cookie, and what the Cookie header says. */
import { test } from 'tap'
import { cookieValues } from '../../src/core/wire/cookies.ts'
import { headerLines } from '../../src/core/wire/headers.ts'
import { makeIsFromTrustedPage } from '../../src/core/wire/trusted-pages.ts'

const OWN = 'https://chat.example.com'
const LISTED = 'https://app.example.com'
const OTHER = 'https://evil.example.com'
const HOST = 'chat.example.com'

/** `-`: the header is absent. */
const CASES: readonly (readonly [method: string, site: string, origin: string, host: string, accepted: boolean])[] = [
  // Same origin: browsers send no Origin with GET, and Host says which name of the gateway it was.
  ['GET', 'same-origin', '-', HOST, true],
  ['GET', 'same-origin', '-', 'CHAT.example.com', true],
  ['GET', 'same-origin', '-', `${HOST}:443`, true],
  ['GET', 'same-origin', '-', `${HOST}:8443`, false],
  ['GET', 'same-origin', '-', 'other.example.com', false],
  ['GET', 'same-origin', '-', '', false],
  ['GET', 'same-origin', '-', '-', false],
  ['GET', 'same-origin', OWN, 'anything', true],
  ['POST', 'same-origin', OWN, HOST, true],
  ['DELETE', 'same-origin', OWN, HOST, true],
  ['POST', 'same-origin', '-', HOST, false],
  ['DELETE', 'same-origin', '-', HOST, false],
  ['HEAD', 'same-origin', '-', HOST, false],
  ['POST', 'same-origin', OTHER, HOST, false],
  ['GET', 'same-origin', OTHER, HOST, false],
  // A name that leads to the gateway but is not configured: its page is of the same origin as itself only.
  ['POST', 'same-origin', 'https://other.example.com', 'other.example.com', false],
  // A listed origin is never the gateway's own.
  ['POST', 'same-origin', LISTED, HOST, false],
  ['GET', 'same-site', LISTED, HOST, true],
  ['POST', 'same-site', LISTED, HOST, true],
  ['POST', 'same-site', OWN, HOST, true],
  ['POST', 'same-site', OTHER, HOST, false],
  ['POST', 'same-site', '-', HOST, false],
  ['GET', 'same-site', '-', HOST, false],
  ['GET', 'same-site', 'null', HOST, false],
  // Cross-site is refused even for origins that may call with a header.
  ...['-', OWN, LISTED, OTHER, 'null'].flatMap((origin) =>
    ['GET', 'POST', 'DELETE'].map((method) => [method, 'cross-site', origin, HOST, false] as const),
  ),
  // An address that was typed, or anything that is not a page.
  ...['-', OWN, LISTED].flatMap((origin) => ['GET', 'POST'].map((method) => [method, 'none', origin, HOST, false] as const)),
  // Browsers without Sec-Fetch-Site: nothing tells whether a listed origin is of the same site.
  ['GET', '-', '-', HOST, false],
  ['POST', '-', '-', HOST, false],
  ['POST', '-', OWN, HOST, true],
  ['GET', '-', OWN, HOST, true],
  ['POST', '-', LISTED, HOST, false],
  ['POST', '-', OTHER, HOST, false],
  ['POST', '-', 'null', HOST, false],
  // Other spellings.
  ...['', 'Same-Origin', 'SAME-ORIGIN', 'same-origin ', 'same-origin, same-origin', 'same-origin,cross-site', 'same-origin;x', '?1', 'same_origin'].map(
    (site) => ['POST', site, OWN, HOST, false] as const,
  ), // oxfmt-ignore
  ...[`${OWN}/`, `${OWN}:443`, OWN.toUpperCase(), `${OWN} `, `${OWN}, ${OWN}`, `${OWN} ${OTHER}`, 'http://chat.example.com', 'chat.example.com', '', '*', `${OWN}.evil.example`, 'https://xchat.example.com'].map(
    (origin) => ['POST', 'same-origin', origin, HOST, false] as const,
  ), // oxfmt-ignore
]

void test('a credential cookie is accepted from pages of the own origin and of listed origins of the same site', (t) => {
  const isFromTrustedPage = makeIsFromTrustedPage({ own: [OWN], listed: [LISTED] })
  for (const [method, site, origin, host, accepted] of CASES) {
    const sent = { 'Sec-Fetch-Site': site, Origin: origin, Host: host }
    const lines = headerLines(Object.entries(sent).flatMap(([name, value]) => (value === '-' ? [] : [name, value])))
    t.equal(isFromTrustedPage(method, lines), accepted, JSON.stringify([method, sent]))
  }
  t.end()
})

void test('a repeated Sec-Fetch-Site is refused', (t) => {
  const isFromTrustedPage = makeIsFromTrustedPage({ own: [OWN], listed: [] })
  for (const pair of [
    ['same-origin', 'cross-site'],
    ['cross-site', 'same-origin'],
    ['same-origin', 'same-origin'],
  ]) {
    const lines = headerLines(['origin', OWN, ...pair.flatMap((site) => ['sec-fetch-site', site])])
    t.notOk(isFromTrustedPage('POST', lines), pair.join())
  }
  t.end()
})

void test('an own origin with a port, and one by plain http', (t) => {
  const isFromTrustedPage = makeIsFromTrustedPage({ own: ['https://chat.example.com:8443', 'http://localhost'], listed: [] })
  const get = (host: string) => isFromTrustedPage('GET', headerLines(['sec-fetch-site', 'same-origin', 'host', host]))
  for (const host of ['chat.example.com:8443', 'localhost', 'localhost:80']) t.ok(get(host), host)
  for (const host of ['chat.example.com', 'chat.example.com:443', 'localhost:443', 'localhost:8080']) t.notOk(get(host), host)
  t.end()
})

void test('without origins no page is trusted', (t) => {
  const isFromTrustedPage = makeIsFromTrustedPage({ own: [], listed: [] })
  for (const site of ['same-origin', 'same-site', 'none', 'cross-site', null]) {
    for (const origin of [OWN, 'null', null]) {
      const sent = [...(site === null ? [] : ['sec-fetch-site', site]), ...(origin === null ? [] : ['origin', origin])]
      for (const method of ['GET', 'POST']) {
        t.notOk(isFromTrustedPage(method, headerLines(['host', HOST, ...sent])), JSON.stringify([method, sent]))
      }
    }
  }
  t.end()
})

void test('cookies are read by their exact name, and all of them', (t) => {
  const read = (...lines: string[]) => cookieValues(lines, '__Host-s')
  t.strictSame(read('__Host-s=a'), ['a'])
  t.strictSame(read('x=1; __Host-s=a; y=2'), ['a'])
  t.strictSame(read('x=1;__Host-s=a;y'), ['a'])
  t.strictSame(read(' \t__Host-s = a\t ; '), ['a'])
  t.strictSame(read('__Host-s=a=b=='), ['a=b=='])
  t.strictSame(read('__Host-s='), [''])
  t.strictSame(read('__Host-s="a"'), ['"a"'])
  t.strictSame(read('__Host-s=%61'), ['%61'])
  t.strictSame(read('__Host-s=a; __Host-s=b'), ['a', 'b'])
  t.strictSame(read('__Host-s=a', '__Host-s=b'), ['a', 'b'])
  for (const none of [
    '',
    ';',
    '=',
    '__Host-s',
    '__host-s=a',
    '__Host-s2=a',
    'x__Host-s=a',
    '"__Host-s"=a',
    '__Host%2Ds=a',
    '=__Host-s',
    'x="; y',
    '\u00a0__Host-s=a',
    '__Host-s\u000b=a',
  ])
    // oxfmt-ignore
    t.strictSame(read(none), [], none)
  t.strictSame(cookieValues(undefined, '__Host-s'), [])
  t.end()
})
