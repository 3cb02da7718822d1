/** Opaque tokens, of which only their issuer can say what they are worth (RFC 7662): what is asked, and what an answer is worth. */
import { test } from 'tap'
import { heard, gate, ISSUER } from '../../testing/support/gates.ts'
import { active, SECRET, startOpaque } from '../../testing/support/issuer-of-opaque-tokens.ts'
import { claims, jwkOf, PAIRS, token } from '../../testing/support/signing.ts'
import { deferred, until } from '../../testing/support/until.ts'

const INACTIVE = 'credential-invalid: token-inactive'
const jwt = (changes = {}) => token({ alg: 'RS256', kid: 'k1' }, claims(changes), PAIRS.rsa.privateKey)

void test('the issuer is asked by a form that holds the token and nothing of the request', async (t) => {
  const { questions, told } = await startOpaque(t)
  t.equal(await told('opaque~token+/=='), 'corp:alice')
  const [asked, ...more] = questions()
  t.same(more, [])
  t.match(asked, { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' } })
  t.same(
    [...new URLSearchParams(asked?.body)],
    [
      ['token', 'opaque~token+/=='],
      ['token_type_hint', 'access_token'],
    ],
  )
})

void test('the gateway says who it is by basic authentication, form-encoded, or in the form', async (t) => {
  // RFC 6749 §2.3.1 and appendix B: what a colon, a percent sign or a plus would spoil.
  for (const [clientId, clientSecret, encoded] of [
    ['gateway', 'hush', 'gateway:hush'],
    ['a:b', 'c:d%e', 'a%3Ab:c%3Ad%25e'],
    ['a b+c', 'p&q=r/~ü€', 'a+b%2Bc:p%26q%3Dr%2F%7E%C3%BC%E2%82%AC'],
  ] as const) {
    const basic = await startOpaque(t, {}, { clientId, clientSecret })
    t.equal(await basic.told('opaque'), 'corp:alice')
    const header = basic.questions()[0]?.headers.authorization ?? ''
    t.equal(Buffer.from(header.replace(/^Basic /, ''), 'base64').toString(), encoded)
    t.notMatch(basic.questions()[0]?.body, /client/)
    const post = await startOpaque(t, {}, { clientId, clientSecret, clientAuthentication: 'post' })
    t.equal(await post.told('opaque'), 'corp:alice')
    const form = new URLSearchParams(post.questions()[0]?.body)
    t.same([form.get('client_id'), form.get('client_secret'), form.get('token')], [clientId, clientSecret, 'opaque'])
    t.equal(post.questions()[0]?.headers.authorization, undefined)
  }
})

void test('only a token that is active, to the letter, is good', async (t) => {
  const { server, told } = await startOpaque(t)
  // An issuer that does not say yes or no has failed: that is 503, never 401 and never yes.
  for (const value of [undefined, null, 'true', 'false', 1, 0, [true], {}, 'active', '']) {
    server.answers.set('/introspect', { body: active({ active: value }) })
    t.equal(await told('opaque'), 'keys-unavailable: keys-unavailable', JSON.stringify({ value }))
  }
  server.answers.set('/introspect', { body: { Active: true, ...active({ active: undefined }) } })
  t.equal(await told('opaque'), 'keys-unavailable: keys-unavailable')
  server.answers.set('/introspect', { body: { active: false } })
  t.equal(await told('opaque'), INACTIVE)
  server.answers.set('/introspect', { body: active() })
  t.equal(await told('opaque'), 'corp:alice', 'no refusal was remembered')
})

void test('what the answer says of issuer, audience and time has to be right', async (t) => {
  const now = Math.floor(Date.now() / 1000)
  const { says, told } = await startOpaque(t, { maxTokenAge: '1h', requiredClaims: { '/scope': 'chat' }, clockTolerance: '30s' })
  let at = 0
  for (const [changes, answer] of [
    [{}, 'corp:alice'],
    [{ iss: ISSUER }, 'corp:alice'],
    [{ aud: ['chat', 'other'] }, 'corp:alice'],
    [{ exp: undefined }, 'corp:alice'],
    [{ nbf: now - 1 }, 'corp:alice'],
    [{ nbf: now + 20 }, 'corp:alice'],
    [{ exp: now - 20 }, 'corp:alice'],
    [{ nbf: now + 3600 }, 'credential-invalid: token-not-yet-valid'],
    [{ nbf: 'soon' }, 'credential-invalid: token-not-yet-valid'],
    [{ iss: 'https://evil.example.com/' }, 'credential-invalid: issuer-unknown'],
    [{ iss: null }, 'credential-invalid: issuer-unknown'],
    [{ iss: [ISSUER] }, 'credential-invalid: issuer-unknown'],
    [{ aud: 'other' }, 'credential-invalid: audience-mismatch'],
    [{ aud: undefined }, 'credential-invalid: audience-mismatch'],
    [{ aud: null }, 'credential-invalid: audience-mismatch'],
    [{ exp: now - 3600 }, 'credential-expired: token-expired'],
    [{ exp: 0 }, 'credential-expired: token-expired'],
    [{ exp: null }, 'credential-invalid: claim-missing'],
    [{ exp: '4102444800' }, 'credential-invalid: claim-missing'],
    [{ exp: 1e300 }, 'credential-invalid: claim-missing'],
    [{ iat: undefined }, 'credential-invalid: claim-missing'],
    [{ iat: now - 2 * 3600 }, 'credential-invalid: token-too-old'],
    [{ scope: undefined }, 'credential-invalid: claim-missing'],
    [{ scope: 'mail' }, 'credential-invalid: claim-missing'],
    [{ sub: undefined }, 'user-id-invalid: user-id-invalid'],
    [{ sub: '' }, 'user-id-invalid: user-id-invalid'],
    [{ sub: undefined, username: 'alice' }, 'user-id-invalid: user-id-invalid'],
  ] as const) {
    at += 1
    says({ scope: 'chat', ...changes })
    t.match(await told(`opaque-${at}`), answer, JSON.stringify(changes))
  }
})

void test('an answer is taken as it was for cacheFor, and never past the end of the token', async (t) => {
  const time = { now: Date.now() }
  const clocks = { clock: () => time.now, now: () => time.now }
  const { questions, server, says, told } = await startOpaque(t, {}, { cacheFor: '30s' }, clocks)
  t.same([await told('opaque'), await told('opaque')], ['corp:alice', 'corp:alice'])
  t.equal(questions().length, 1)
  server.answers.set('/introspect', { body: { active: false } })
  time.now += 29_999
  t.equal(await told('opaque'), 'corp:alice')
  time.now += 1
  t.equal(await told('opaque'), INACTIVE)
  says({ exp: Math.floor(time.now / 1000) + 10 })
  t.equal(await told('other'), 'corp:alice')
  t.equal(questions().length, 3)
  time.now += 10_000 + 30_000
  t.equal(await told('other'), 'credential-expired: token-expired', 'with the tolerance of clocks')
  t.equal(questions().length, 4)
})

void test('with a cacheFor of nothing, or no tokenCache, each request is a question', async (t) => {
  for (const { questions, told } of [
    await startOpaque(t, {}, { cacheFor: '0s' }),
    await startOpaque(t, {}, {}, { tokenCache: 0 }),
  ]) {
    for (let at = 0; at < 3; at += 1) t.equal(await told('opaque'), 'corp:alice')
    t.equal(questions().length, 3)
  }
})

void test('twenty requests with one token are one question', async (t) => {
  const { server, questions, told } = await startOpaque(t, {}, { cacheFor: '0s' })
  const held = deferred<object>()
  server.answers.set('/introspect', () => held.promise)
  const waiting = Promise.all(Array.from({ length: 20 }, () => told('opaque')))
  await until(() => questions().length === 1)
  held.resolve({ body: active() })
  t.same(new Set(await waiting), new Set(['corp:alice']))
  t.equal(questions().length, 1)
})

void test('a JWT goes to the issuer that it names: by its keys where it has some, else by asking', async (t) => {
  const other = 'https://other.example'
  const { server, questions, told } = await startOpaque(t, {}, {}, {
    others: { other: { issuer: other, algorithms: ['RS256'], publicKey: PAIRS.rsa.publicKey.export({ type: 'spki', format: 'pem' }) } },
  }) // oxfmt-ignore
  t.equal(await told(jwt({ iss: other })), 'other:alice')
  t.match(await told(token({ alg: 'RS256' }, claims({ iss: other }), PAIRS.otherRsa.privateKey)), 'signature-invalid')
  t.match(await told(jwt({ iss: 'https://evil.example.com/' })), 'issuer-unknown')
  t.match(await told(jwt({ iss: undefined })), 'issuer-unknown')
  for (const bad of ['a.b.c', 'a.b.c.d.e', '..', '....']) t.match(await told(bad), /^credential-invalid/, bad)
  t.same(questions(), [], 'none of these is asked about')
  const asked = jwt()
  t.equal(await told(asked), 'corp:alice')
  t.equal(new URLSearchParams(questions()[0]?.body).get('token'), asked)
  server.answers.set('/introspect', { body: { active: false } })
  t.equal(await told(jwt({ sub: 'bob' })), INACTIVE, 'what the token says of itself counts for nothing')
})

void test('an issuer that has keys, too, is asked about its opaque tokens alone', async (t) => {
  const { server, questions, told, config } = await startOpaque(t)
  server.keys(jwkOf(PAIRS.rsa.publicKey, { kid: 'k1' }))
  const both = gate(t, { corp: { ...config, algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } })
  t.equal(await heard(both, jwt()), 'corp:alice')
  t.match(await heard(both, token({ alg: 'RS256', kid: 'k1' }, claims(), PAIRS.otherRsa.privateKey)), 'signature-invalid')
  t.equal(questions().length, 0)
  t.equal(await heard(both, 'opaque'), 'corp:alice')
  t.equal(await told('opaque'), 'corp:alice')
  t.equal(questions().length, 2)
})

void test('an answer is taken as it was also while the keys of the same issuer cannot be had', async (t) => {
  const { server, questions, config } = await startOpaque(t)
  server.answers.set('/jwks', { status: 500 })
  const both = gate(t, { corp: { ...config, algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } }, { tokenCache: 100 })
  t.match(await heard(both, jwt()), 'keys-unavailable')
  t.same([await heard(both, 'opaque'), await heard(both, 'opaque')], ['corp:alice', 'corp:alice'])
  t.equal(questions().length, 1)
})

void test('where no issuer can be asked, an opaque token is no token, and nobody is asked anything', async (t) => {
  const { server } = await startOpaque(t)
  const authenticate = gate(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } })
  for (const opaque of ['opaque', 'a.b', 'a.b.c.d', 'A'.repeat(8000), SECRET.replace(' ', '')])
    t.equal(await heard(authenticate, opaque), 'credential-invalid: token-malformed')
  t.same(server.fetched, [])
})

void test('an issuer that takes no cookie is not asked about what is in one, and an issuer of cookies about no header', async (t) => {
  const { server, questions, config } = await startOpaque(t)
  const both = gate(t, {
    corp: config,
    other: { issuer: 'other', algorithms: ['RS256'], jwksUri: `${server.url}/jwks`, credential: { cookie: 'session' } },
  })
  t.match(await both('Bearer opaque', undefined, { cookie: 'session' }), { reason: 'credential-place' })
  t.equal(questions().length, 0)
  t.match(await both('Bearer opaque', undefined, 'header'), { principal: { id: 'corp:alice' } })
  const inCookie = gate(t, { corp: { ...config, credential: { cookie: 'session' } } }, { tokenCache: 100 })
  t.match(await inCookie('Bearer opaque', undefined, 'header'), { reason: 'credential-place' })
  t.equal(questions().length, 1)
  t.match(await inCookie('Bearer opaque', undefined, { cookie: 'session' }), { principal: { id: 'corp:alice' } })
  t.match(await inCookie('Bearer opaque', undefined, 'header'), { reason: 'credential-place' }, 'although it is cached')
  t.equal(questions().length, 2)
})
