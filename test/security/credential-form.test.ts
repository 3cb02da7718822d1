/**
 * A credential in another form or another place than the one that is read: a scheme in other letters, a tab, two spaces,
 * quotes, several credentials, a token in the query, in a cookie or in the body. Where two readers differ about what the
 * credential is, one of them lets somebody else in. Here it is one header, exactly `Bearer`, one space and a token.
 *
 * RFC 6750 §2.1-2.3 and §5.3, RFC 9110 §11.4 and §5.5; the specification's "Authentication" 6.
 */
import { test } from 'tap'
import { bearerToken } from '../../src/auth/authenticate.ts'
import { rsaToken } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { claims, PAIRS, pemOf } from '../../testing/support/signing.ts'

const CORP = { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } }
const MALFORMED = '400 header-malformed, nothing upstream'
const MISSING = '401 credential-missing, nothing upstream'

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

const basic = (text: string): string => Buffer.from(text).toString('base64')

/** Values of the header that hold a good token, and are no credential. */
const valuesWith = (good: string): readonly string[] => [
  // Another scheme, or another spelling of it.
  ...['bearer', 'BEARER', 'bEARER', 'Bearer:', 'Bearer=', 'Bearer;', '"Bearer"', 'Bearers', 'Beare', 'B', 'OAuth', 'Token', 'JWT', 'DPoP', 'MAC', 'GNAP', 'Basic', 'Digest', 'Negotiate', 'Bearer Bearer', 'Basic Bearer', 'Bearer Basic', 'Authorization:', '\ufeffBearer'].map((scheme) => `${scheme} ${good}`), // oxfmt-ignore
  good,
  `Bearer${good}`,
  `Basic ${basic(`alice:${good}`)}`,
  `Basic ${basic(`${good}:`)}`,
  `Basic ${basic(`Bearer:${good}`)}`,
  `${good} Bearer`,
  // Other white space, or more of it, or what only some take for it.
  ...['  ', '\t', ' \t', '\t ', '   ', '\u00a0', ' \u00a0', '\u0085', '%20', '+', '_', '-', '/', ' /'].map(
    (space) => `Bearer${space}${good}`,
  ),
  // Wrapped, quoted, followed or divided.
  ...[`"${good}"`, `'${good}'`, `<${good}>`, `[${good}]`, `(${good})`, `{${good}}`, `token=${good}`, `token="${good}"`, `access_token=${good}`, `${good};`, `${good}; charset=utf-8`, `${good} x`, `${good} ${good}`, `${good}&x=1`, `${good}?`, `${good}#`, `${good}\u00e9`, `\u00ff${good}`, `${good}\u00ad`, `${good.slice(0, 20)} ${good.slice(20)}`, `${good.slice(0, 20)}\t${good.slice(20)}`, `${encodeURIComponent(good)}%00`, `.${good}`, `=${good}`].map((value) => `Bearer ${value}`), // oxfmt-ignore
]

/** Values that hold nothing. */
const EMPTY = ['', ' ', '\t', 'Bearer', 'Bearer ', 'Bearer\t', 'Bearer  ', 'Bearer .', 'Bearer ..', 'Bearer null', 'Bearer undefined', 'Bearer [object Object]', 'Bearer false', 'null', 'anonymous', 'Bearer anonymous', 'Bearer -', 'Bearer *', '*', 'Bearer {}', 'Basic', 'Basic Og=='] // oxfmt-ignore

void testFirstPair('a credential in any other form is none, and nothing reaches the upstream', async (t, pair) => {
  const good = rsaToken(claims())
  const { fateOf, upstream } = await guarded(t, CORP, { pair })
  for (const value of [...valuesWith(good), ...EMPTY])
    t.equal(await fateOf(`Authorization: ${value}`), REFUSED, value.replace(good, 'TOKEN'))
  t.equal(await fateOf(), MISSING)
  t.same(upstream.requests, [])
})

void testFirstPair(
  'what is left open in HTTP is left open: the case of the name, and space around the value',
  async (t, pair) => {
    const good = rsaToken(claims())
    const { fateOf, upstream } = await guarded(t, CORP, { pair })
    const lines = [`Authorization: Bearer ${good}`, `authorization: Bearer ${good}`, `AUTHORIZATION: Bearer ${good}`, `Authorization:Bearer ${good}`, `Authorization: \t Bearer ${good} \t `] // oxfmt-ignore
    for (const line of lines) t.equal(await fateOf(line), PASSED, line.replace(good, 'TOKEN'))
    t.same(
      upstream.requests.map((request) => request.headers.get('authorization')),
      lines.map(() => [`Bearer ${good}`]),
      'the upstream gets it once, as it was verified',
    )
  },
)

void testFirstPair('several credentials are refused, whichever of them is good', async (t, pair) => {
  const good = rsaToken(claims())
  const { fateOf, upstream } = await guarded(t, CORP, { pair })
  const [one, bad, basicOne] = [`Authorization: Bearer ${good}`, 'Authorization: Bearer a.b.c', 'Authorization: Basic YTpi']
  for (const lines of [
    [one, one],
    [one, bad],
    [bad, one],
    [one, basicOne],
    [basicOne, one],
    [one, 'Authorization:'],
    ['Authorization:', one],
    [one, one.replace('Authorization', 'authorization')],
    [one, 'X-Between: 1', 'AUTHORIZATION: Bearer a.b.c'],
    [`${one}, Bearer a.b.c`],
    [`Authorization: Bearer a.b.c, Bearer ${good}`],
    [`Authorization: Basic YTpi,Bearer ${good}`],
    [`${one},`],
    [`Authorization: ,Bearer ${good}`],
  ]) {
    t.equal(await fateOf(...lines), MALFORMED, lines.join(' | ').replaceAll(good, 'TOKEN'))
  }
  t.same(upstream.requests, [])
  t.equal(await fateOf(one), PASSED)
})

void testFirstPair('a header line that is none is no credential', async (t, pair) => {
  const good = rsaToken(claims())
  const { fateOf, upstream } = await guarded(t, CORP, { pair })
  for (const line of [
    `Authorization:\r\n Bearer ${good}`,
    `Authorization: Bearer\r\n ${good}`,
    `Authorization: Bearer ${good.slice(0, 30)}\r\n\t${good.slice(30)}`,
    `Authorization : Bearer ${good}`,
    ` Authorization: Bearer ${good}`,
    `Authorization\t: Bearer ${good}`,
    `Authorization: Bearer ${good}\0`,
    `Authorization: Bearer \0${good}`,
    `Authorization\0: Bearer ${good}`,
    `Authorization: Bearer ${good}\u0001`,
    `Authorization: Bearer\u000b${good}`,
    `Authorization: Bearer\u000c${good}`,
    `Authorization= Bearer ${good}`,
    `(Authorization): Bearer ${good}`,
    `Author\u00efzation: Bearer ${good}`,
  ]) {
    t.equal(await fateOf(line), MALFORMED, JSON.stringify(line.replace(good, 'TOKEN')))
  }
  t.same(upstream.requests, [])
  t.equal(await fateOf(`Authorization: Bearer ${good}`), PASSED)
})

void testFirstPair('a token in another place is not looked for', async (t, pair) => {
  const good = rsaToken(claims())
  const { fateOf, gateway, upstream } = await guarded(t, CORP, { pair })
  // oxfmt-ignore
  const names = [
    'Proxy-Authorization', 'X-Authorization', 'X-Forwarded-Authorization', 'X-Original-Authorization', 'Authentication', 'Authorization-', 'X-Access-Token', 'X-Auth-Token',
    'X-Amzn-Oidc-Data', 'X-Api-Key', 'X-Goog-Iap-Jwt-Assertion', 'Cf-Access-Jwt-Assertion', 'Cf-Access-Token', 'DPoP', 'Sec-WebSocket-Protocol', 'Authorization_', 'HTTP_AUTHORIZATION', 'WWW-Authenticate',
  ]
  for (const name of names) {
    t.equal(await fateOf(`${name}: Bearer ${good}`), MISSING, name)
    t.equal(await fateOf(`${name}: ${good}`), MISSING, name)
  }
  for (const cookie of ['access_token', 'token', 'jwt', 'session', 'Authorization', '__Host-token', 'CF_Authorization'])
    t.equal(await fateOf(`Cookie: ${cookie}=${good}`), MISSING, cookie)
  for (const who of [
    'X-User-Id: corp:alice',
    'X-Cpki-User-Id: alice',
    'X-Forwarded-User: alice',
    'X-Remote-User: alice',
    'From: alice@example.com',
  ])
    t.equal(await fateOf(who), MISSING, who)
  for (const name of ['access_token', 'token', 'id_token', 'jwt', 'authorization', 'Authorization', 'auth', 'bearer']) {
    const { status } = await gateway.ask({ target: `/api/copilotkit/info?${name}=${good}` })
    t.equal(status, 401, `?${name}=`)
  }
  const form = `access_token=${good}`
  const framing = ['Content-Type: application/x-www-form-urlencoded', `Content-Length: ${form.length}`]
  t.equal((await gateway.ask({ target: '/api/copilotkit/threads/clear', body: form, framing })).status, 401, 'a form')
  const body = JSON.stringify({ method: 'info', access_token: good, token: good, authorization: `Bearer ${good}` })
  t.equal((await gateway.ask({ target: '/api/copilotkit', body })).status, 401, 'a body')
  t.equal(upstream.beginnings(), 0)
  t.equal(await fateOf(`Authorization: Bearer ${good}`, 'Proxy-Authorization: Bearer a.b.c', 'Cookie: token=a.b.c'), PASSED)
  t.same(
    upstream.requests.map(({ headers }) => [
      headers.get('authorization'),
      headers.get('proxy-authorization'),
      headers.get('cookie'),
    ]),
    [[[`Bearer ${good}`], undefined, undefined]],
  )
})

void testFirstPair('where nobody has to sign in, a header that is no good credential is still refused', async (t, pair) => {
  const good = rsaToken(claims())
  const { fateOf, upstream } = await guarded(t, CORP, { pair, authentication: { mode: 'optional' } })
  t.equal(await fateOf(), '403 not-allowed, nothing upstream', 'anonymous, and the policy opens nothing to them')
  for (const value of [...valuesWith(good), ...EMPTY])
    t.equal(await fateOf(`Authorization: ${value}`), REFUSED, value.replace(good, 'TOKEN'))
  t.equal(await fateOf(`Authorization: Bearer ${good}`, 'Authorization:'), MALFORMED)
  t.same(upstream.requests, [])
  t.equal(await fateOf(`Authorization: Bearer ${good}`), PASSED)
})
