/**
 * Cookie sessions: browsers add a cookie to requests of any page, so a token in a cookie is accepted only with proof that the
 * gateway's own page, or a listed one of the same site, sent the request (CWE-352). Two credentials must be of one user.
 */
import { test, type Test } from 'tap'
import { PASSED, REFUSED, guarded, type Guarded } from '../../testing/support/guarded.ts'
import { rsaToken } from '../../testing/support/gates.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { claims, PAIRS, pemOf, type Part } from '../../testing/support/signing.ts'

const OWN = 'https://chat.example.com'
const LISTED = 'https://app.example.com'
const NAME = '__Host-session'
const RSA = { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) }
const OTHER_ISSUER = 'https://other.example.com/'
const CORS = { origins: [LISTED], credentials: true }
const FORBIDDEN = '403 not-allowed, nothing upstream'
const MISSING = '401 credential-missing, nothing upstream'

const alice = rsaToken(claims())
const bob = rsaToken(claims({ sub: 'bob' }))
const OWN_PAGE = ['Sec-Fetch-Site: same-origin', `Origin: ${OWN}`]

const cookie = (token: string, name = NAME): string => `Cookie: ${name}=${token}`

function sessions(t: Test, credential: Part, more: Part = {}) {
  const { authentication, upstream, ...config } = more
  return guarded(
    t,
    { corp: { ...RSA, credential } },
    {
      authentication: authentication as Part,
      config: { listen: { host: '127.0.0.1', port: 0, publicOrigins: [OWN] }, cors: CORS, ...config },
      upstream: upstream as Part,
    },
  )
}

function lastReason({ gateway }: Guarded): unknown {
  return gateway.lines.findLast(({ msg }) => msg === 'request')?.['reason']
}

void test('a cookie counts only from a trusted page, before its token is read', async (t) => {
  const { fateOf, gateway, upstream } = await sessions(t, { cookie: NAME })
  for (const page of [OWN_PAGE, ['Sec-Fetch-Site: same-site', `Origin: ${LISTED}`], [`Origin: ${OWN}`]])
    t.equal(await fateOf(cookie(alice), ...page), PASSED, page.join(' | '))
  const { length } = upstream.requests
  for (const page of [
    [],
    ['Sec-Fetch-Site: none'],
    ['Sec-Fetch-Site: same-origin'],
    ['Sec-Fetch-Site: same-site'],
    ['Sec-Fetch-Site: cross-site'],
    ['Sec-Fetch-Site: cross-site', `Origin: ${LISTED}`],
    ['Sec-Fetch-Site: cross-site', `Origin: ${OWN}`],
    ['Sec-Fetch-Site: same-site', 'Origin: https://evil.example.com'],
    ['Sec-Fetch-Site: same-site', 'Origin: null'],
    ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site', `Origin: ${OWN}`],
    ['Sec-Fetch-Site: cross-site', 'sec-fetch-site: same-origin', `Origin: ${OWN}`],
    ['Sec-Fetch-Site: same-origin, cross-site', `Origin: ${OWN}`],
    [`Origin: ${LISTED}`],
    ['Origin: null'],
    ['Origin: https://gateway', 'Sec-Fetch-Site: same-origin'],
    ['Sec-Fetch-Site : same-origin'],
    [`Referer: ${OWN}/`],
    [`X-Forwarded-Host: chat.example.com`, 'Sec-Fetch-Site: same-origin'],
    [`Forwarded: host=chat.example.com`, 'Sec-Fetch-Site: same-origin'],
  ]) {
    for (const token of [alice, 'nonsense', '']) {
      const fate = await fateOf(cookie(token), ...page)
      const expected = page.join().includes('Site :') ? '400 header-malformed, nothing upstream' : FORBIDDEN
      t.equal(fate, expected, page.join(' | '))
    }
  }
  t.equal(await fateOf(cookie(alice), `Origin: ${OWN}`, `Origin: ${OWN}`), '400 header-malformed, nothing upstream')
  t.equal(upstream.requests.length, length)
  t.ok(gateway.lines.some(({ reason }) => reason === 'cookie-cross-site'))
  t.notOk(gateway.lines.some(({ reason, principal }) => reason === 'cookie-cross-site' && principal !== undefined))
})

void test('a GET of the own page has no Origin: its Host is the one that is configured', async (t) => {
  const { gateway } = await sessions(t, { cookie: NAME })
  const lines = [cookie(alice), 'Sec-Fetch-Site: same-origin']
  const status = async (host: string | null, version = 'HTTP/1.1') =>
    (await gateway.ask({ target: '/api/copilotkit/info', host, version, lines })).status
  t.equal(await status('chat.example.com'), 200)
  t.equal(await status('chat.example.com:443'), 200)
  for (const host of ['app.example.com', 'evil.example.com', '127.0.0.1', 'chat.example.com.evil.example', 'chat.example.com@evil', ''])
    t.equal(await status(host), 403, host) // oxfmt-ignore
  t.equal(await status(null, 'HTTP/1.0'), 403)
})

void testEachPair('a run of another page starts nothing', async (t, pair) => {
  const { gateway, upstream } = await guarded(
    t,
    { corp: { ...RSA, credential: { cookie: NAME } } },
    {
      pair,
      config: { listen: { host: '127.0.0.1', port: 0, publicOrigins: [OWN] } },
    },
  )
  const body = JSON.stringify({
    threadId: 't-1',
    runId: 'r-1',
    state: {},
    messages: [],
    tools: [],
    context: [],
    forwardedProps: {},
  })
  const run = (...lines: string[]) =>
    gateway.ask({ target: '/api/copilotkit/agent/default/run', body, lines: [cookie(alice), ...lines] })
  for (const page of [
    ['Sec-Fetch-Site: cross-site'],
    ['Sec-Fetch-Site: cross-site', 'Origin: https://evil.example'],
    ['Origin: null'],
    [],
  ])
    t.equal((await run(...page)).status, 403, page.join(' | '))
  t.equal(upstream.beginnings(), 0)
  t.equal((await run(...OWN_PAGE)).status, 200)
  t.equal(upstream.beginnings(), 1)
})

void test('a handshake for a WebSocket and an EventSource are requests like others', async (t) => {
  const { fateOf, upstream } = await sessions(t, { cookie: NAME })
  const socket = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ]
  const stream = ['Accept: text/event-stream', 'Sec-Fetch-Mode: cors', 'Sec-Fetch-Dest: empty']
  for (const kind of [socket, stream]) {
    t.equal(await fateOf(cookie(alice), ...kind, 'Origin: https://evil.example', 'Sec-Fetch-Site: cross-site'), FORBIDDEN)
    t.equal(await fateOf(cookie(alice), ...kind, 'Origin: https://evil.example'), FORBIDDEN)
    t.equal(await fateOf(cookie(alice), ...kind), FORBIDDEN)
  }
  t.equal(upstream.beginnings(), 0)
})

void test('each issuer says where its tokens may be', async (t) => {
  const by = (credential?: Part) => (credential === undefined ? guarded(t, { corp: RSA }) : sessions(t, credential))
  const header = `Authorization: Bearer ${alice}`
  const only = await by()
  t.equal(await only.fateOf(cookie(alice), ...OWN_PAGE), MISSING, 'the default is the header alone')
  t.equal(await only.fateOf(header, cookie(bob)), PASSED, 'other cookies mean nothing')
  const inCookie = await by({ cookie: NAME })
  t.equal(await inCookie.fateOf(header), REFUSED, 'a cookie in place of the header')
  t.equal(lastReason(inCookie), 'credential-place')
  t.equal(await inCookie.fateOf(header, cookie(alice), ...OWN_PAGE), REFUSED)
  t.equal(await inCookie.fateOf(cookie(alice), ...OWN_PAGE), PASSED)
  t.equal(await inCookie.fateOf(), MISSING)
  for (const other of ['session', '__host-session', '__Host-session2', '"__Host-session"', '__Host%2Dsession'])
    t.equal(await inCookie.fateOf(cookie(alice, other), ...OWN_PAGE), MISSING, other)
  const both = await by({ header: true, cookie: NAME })
  t.equal(await both.fateOf(header), PASSED)
  t.equal(await both.fateOf(cookie(alice), ...OWN_PAGE), PASSED)
})

void test('with header and cookie, both are valid and of one user', async (t) => {
  const guard = await sessions(t, { header: true, cookie: NAME })
  const { fateOf, upstream } = guard
  const header = (token: string): string => `Authorization: Bearer ${token}`
  t.equal(await fateOf(header(alice), cookie(alice), ...OWN_PAGE), PASSED)
  t.equal(await fateOf(header(rsaToken(claims({ jti: '2' }))), cookie(alice), ...OWN_PAGE), PASSED, 'another token of theirs')
  t.equal(upstream.requests.length, 2)
  for (const pair of [
    [alice, bob],
    [bob, alice],
  ] as const) {
    t.equal(await fateOf(header(pair[0]), cookie(pair[1]), ...OWN_PAGE), REFUSED)
    t.equal(lastReason(guard), 'credentials-differ')
  }
  const expired = rsaToken(claims({ exp: 1 }))
  const EXPIRED = '401 credential-expired, nothing upstream'
  t.equal(await fateOf(header(alice), cookie(expired), ...OWN_PAGE), EXPIRED, 'a bad cookie beside a good header')
  t.equal(await fateOf(header(expired), cookie(alice), ...OWN_PAGE), EXPIRED, 'no way back to the cookie')
  for (const bad of ['Bearer nonsense', 'Basic YTpi', 'bearer x', '', 'Bearer'])
    t.equal(await fateOf(`Authorization: ${bad}`, cookie(alice), ...OWN_PAGE), REFUSED, bad)
  t.equal(await fateOf(header(alice), cookie(alice), 'Sec-Fetch-Site: cross-site', `Origin: ${LISTED}`), FORBIDDEN)
  t.equal(upstream.requests.length, 2)
})

void test('a cookie that is there twice, in two lines or in another form is refused', async (t) => {
  const guard = await sessions(t, { header: true, cookie: NAME })
  const { fateOf, upstream } = guard
  for (const [name, ...lines] of [
    ['twice', `Cookie: ${NAME}=${alice}; ${NAME}=${bob}`],
    ['the same twice', `Cookie: ${NAME}=${alice}; ${NAME}=${alice}`],
    ['empty and good', `Cookie: ${NAME}=; ${NAME}=${alice}`],
    ['two lines', cookie(alice), cookie(bob)],
    ['two lines, one without it', cookie(alice), 'Cookie: theme=dark'],
    ['two lines, and a header', `Authorization: Bearer ${alice}`, 'Cookie: a=1', 'cookie: b=2'],
  ] as const) {
    t.equal(await fateOf(...lines, ...OWN_PAGE), REFUSED, name)
    t.equal(lastReason(guard), 'cookie-repeated', name)
  }
  for (const value of [
    '',
    `"${alice}"`,
    `Bearer ${alice}`,
    `${alice},${alice}`,
    `${alice} x`,
    `base64-${alice}!`,
    `%20${alice}`,
    encodeURIComponent(`"${alice}"`),
    'x'.repeat(8300),
    `${alice.slice(0, -6)}AAAAAA`,
  ])
    t.equal(await fateOf(cookie(value), ...OWN_PAGE), REFUSED, value.replaceAll(alice, 'TOKEN').slice(0, 40))
  t.equal(upstream.requests.length, 0)
  t.equal(await fateOf(`Cookie: a=1; ${NAME}=${alice}; b="x, y"`, ...OWN_PAGE), PASSED)
})

void test('a token of another issuer is refused, in whichever cookie it is', async (t) => {
  const other = { ...RSA, issuer: OTHER_ISSUER }
  const { fateOf } = await guarded(
    t,
    { corp: { ...RSA, credential: { cookie: 'one' } }, other: { ...other, credential: { cookie: 'two' } } },
    {
      config: { listen: { host: '127.0.0.1', port: 0, publicOrigins: [OWN] } },
    },
  )
  const others = rsaToken(claims({ iss: OTHER_ISSUER }))
  t.equal(await fateOf(cookie(alice, 'one'), ...OWN_PAGE), PASSED)
  t.equal(await fateOf(cookie(others, 'two'), ...OWN_PAGE), PASSED)
  t.equal(await fateOf(cookie(others, 'one'), ...OWN_PAGE), REFUSED)
  t.equal(await fateOf(cookie(alice, 'two'), ...OWN_PAGE), REFUSED)
  t.equal(await fateOf(`Cookie: one=${alice}; two=${others}`, ...OWN_PAGE), REFUSED)
  t.equal(await fateOf(`Cookie: one=${alice}; two=${alice}`, ...OWN_PAGE), REFUSED)
})

void test('where nobody has to sign in, a cookie is still no way round the rules', async (t) => {
  const { fateOf } = await sessions(t, { cookie: NAME }, { authentication: { mode: 'optional' } })
  const anonymous = FORBIDDEN
  t.equal(await fateOf(), anonymous)
  t.equal(await fateOf(cookie(alice), ...OWN_PAGE), PASSED)
  t.equal(await fateOf(cookie('nonsense'), ...OWN_PAGE), REFUSED)
  t.equal(await fateOf(cookie(alice), 'Sec-Fetch-Site: cross-site'), FORBIDDEN)
})

void test('no cookie is forwarded, unless it is the credential and is named', async (t) => {
  const sent = `Cookie: theme=dark; ${NAME}=${alice}; other=1`
  const silent = await sessions(t, { header: true, cookie: NAME })
  t.equal(await silent.fateOf(sent, ...OWN_PAGE), PASSED)
  t.equal(await silent.fateOf(sent, `Authorization: Bearer ${alice}`, ...OWN_PAGE), PASSED)
  t.same(
    silent.upstream.requests.map(({ headers }) => [headers.get('cookie'), headers.get('authorization')]),
    [
      [undefined, undefined],
      [undefined, [`Bearer ${alice}`]],
    ],
    'the token of a cookie does not become a header',
  )
  const named = await sessions(t, { header: true, cookie: NAME }, { upstream: { forwardCookies: [NAME] } })
  t.equal(await named.fateOf(sent, ...OWN_PAGE), PASSED)
  t.equal(await named.fateOf(`Authorization: Bearer ${alice}`, 'Cookie: theme=dark'), PASSED)
  t.same(
    named.upstream.requests.map(({ headers }) => headers.get('cookie')),
    [[`${NAME}=${alice}`], undefined],
  )
})

void test('log and audit say where the credential was, and never what it was', async (t) => {
  const { fateOf, gateway } = await sessions(t, { header: true, cookie: NAME })
  await fateOf(cookie(alice), ...OWN_PAGE)
  await fateOf(`Authorization: Bearer ${alice}`)
  await fateOf(cookie(alice), 'Sec-Fetch-Site: cross-site')
  const lines = gateway.lines.filter(({ msg }) => msg === 'request')
  t.same(
    lines.map(({ principal, credential, reason }) => [principal, credential, reason]),
    [
      ['corp:alice', 'cookie', 'permitted'],
      ['corp:alice', undefined, 'permitted'],
      [undefined, undefined, 'cookie-cross-site'],
    ],
  )
  t.notOk(JSON.stringify(gateway.lines).includes(alice))
})
