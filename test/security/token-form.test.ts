/**
 * Tokens that are no signed JWT of three parts, and headers that ask for more than an algorithm: extensions that a reader
 * has to know, keys that the token brings along or points to, key ids that somebody might look up in a file system, a
 * database or an object. None of it is done, and no address of a token's is ever asked.
 *
 * RFC 8725 §2.4-2.5, §3.10 and RFC 7515 §4.1.11; CVE-2026-35042 (fast-jwt, unknown `crit` was accepted), CVE-2026-48525
 * (PyJWT, `b64: false`), RFC 7515 §4.1.2-4.1.6 with §10.4 (`jku`, `jwk`, `x5u`, `x5c` of anybody's).
 */
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'tap'
import { gate, heard, rsaGate, rsaToken } from '../../testing/support/gates.ts'
import { guarded, PASSED, REFUSED } from '../../testing/support/guarded.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { testUnbridged } from '../../testing/support/pairs.ts'
import { assembled, claims, jwkOf, PAIRS, pemOf, signature, signedAs, token, type Part } from '../../testing/support/signing.ts'

const encoded = (text: string): string => Buffer.from(text).toString('base64url')

/** Tokens of the wrong form, made of a good one. */
function misshapen(): readonly (readonly [name: string, token: string])[] {
  const good = rsaToken(claims())
  const [header = '', payload = '', signature = ''] = good.split('.')
  const jwe = encoded('{"alg":"RSA-OAEP","enc":"A256GCM"}')
  return [
    ['one part', header],
    ['one part with a stop', `${header}.`],
    ['two parts', `${header}.${payload}`],
    ['a payload and a signature', `${payload}.${signature}`],
    ['no signature', `${header}.${payload}.`],
    ['a stop too many', `${good}.`],
    ['a stop before it', `.${good}`],
    ['four parts', `${good}.${signature}`],
    ['five parts', `${good}.a.b`],
    ['an encrypted token', `${jwe}.${signature}.AAAAAAAAAAAAAAAA.${payload}.AAAAAAAAAAAAAAAAAAAAAA`],
    ['an encrypted token with the header of a signed one', `${header}..AAAAAAAAAAAAAAAA.${payload}.${signature}`],
    ['a direct encryption', `${encoded('{"alg":"dir","enc":"A128GCM"}')}..AAAA.${payload}.${signature}`],
    ['an encrypted header with three parts', `${jwe}.${payload}.${signature}`],
    ['two stops', '..'],
    ['three stops', '...'],
    ['no header', `.${payload}.${signature}`],
    ['a detached payload', `${header}..${signature}`],
    ['only a signature', `..${signature}`],
    ['a signature in another place', `${header}.${signature}.${payload}`],
    ['a payload twice', `${header}.${payload}.${payload}.${signature}`],
    ['the whole token as header', `${encoded(good)}.${payload}.${signature}`],
    ['the header twice', `${header}${header}.${payload}.${signature}`],
    ['padding after the signature', `${good}=`],
    ['two of them', `${good}==`],
    ['padding after the header', `${header}=.${payload}.${signature}`],
    ['padding after the payload', `${header}.${payload}=.${signature}`],
    ['padding in the middle', `${header}.${payload.slice(0, 8)}==${payload.slice(8)}.${signature}`],
    ['the other alphabet', `${header}.${payload}.${signature.slice(0, -4)}+/+/`],
    ['a tilde', `${header}.${payload}.${signature}~`],
    ['percent-encoding', `${header}%2E${payload}%2E${signature}`],
    ['a character too few in the header', `${header.slice(0, -1)}.${payload}.${signature}`],
    ['a character too few in the payload', `${header}.${payload.slice(0, -1)}.${signature}`],
    ['a character too few in the signature', `${header}.${payload}.${signature.slice(0, -2)}`],
    ['a character too many in the header', `${header}A.${payload}.${signature}`],
    ['a character too many in the payload', `${header}.${payload}A.${signature}`],
    ['a character too many in the signature', `${header}.${payload}.${signature}A`],
    ['small letters', good.toLowerCase()],
    ['hexadecimal', Buffer.from(good).toString('hex')],
    ['base64 of the whole', encoded(good)],
    ['SAML', Buffer.from('<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"/>').toString('base64')],
    ['PASETO', `v4.public.${payload}`],
    ['an opaque token', 'gho_16C7e42F292c6912E7710c838347Ae178B4a'],
    ['JSON serialization', encoded(JSON.stringify({ payload, protected: header, signature }))],
  ]
}

/** Tokens whose parts are well encoded, and well signed where they can be, and are no JSON objects. */
const NO_OBJECTS: readonly (readonly [name: string, token: string])[] = [
  ...['', '[]', 'null', '"alice"', '1', 'true', '{', '{"iss":', '{}}', '{} {}', '[{}]', "{'iss':1}", '{"a":1,}', '\ufeff{}', '{}\0', 'iss=1'].map(
    (text) => [`the payload ${JSON.stringify(text)}`, rsaToken(text)] as const,
  ),
  ...['', '[]', 'null', '"RS256"', '1', '{', '[{"alg":"RS256"}]', '\ufeff{"alg":"RS256"}', '{"alg":"RS256"}x', '{"alg":"RS256",}', "{alg:'RS256'}"].map(
    (text) => [`the header ${JSON.stringify(text)}`, signedAs('RS256', text, claims(), PAIRS.rsa.privateKey)] as const,
  ),
  ['a token within a token', rsaToken(rsaToken(claims()), { cty: 'JWT' })],
  ['a token within a token, as a JSON string', rsaToken(JSON.stringify(rsaToken(claims())), { cty: 'JWT' })],
  ['the claims under the payload of another form', rsaToken({ payload: claims() })],
  ['good claims behind a byte order mark', rsaToken(`\ufeff${JSON.stringify(claims())}`)],
  ['a good header behind a byte order mark', signedAs('RS256', '\ufeff{"alg":"RS256"}', claims(), PAIRS.rsa.privateKey)],
  ['the claims in a list', rsaToken(JSON.stringify([claims()]))],
] // oxfmt-ignore

/** The last character of a part with the bits set that stand for nothing: the same bytes, spelled otherwise. */
function respelled(part: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return part.slice(0, -1) + (alphabet[alphabet.indexOf(part.at(-1) ?? '') + 1] ?? '')
}

void testUnbridged('one token has one spelling: a part that decodes to the same bytes is another', async (t, pair) => {
  const { fate, upstream } = await guarded(
    t,
    { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } },
    { pair },
  )
  // A length of one byte more than a multiple of three leaves bits over.
  const pad = (text: string): string => text + ' '.repeat((4 - (text.length % 3)) % 3)
  const good = signedAs('RS256', pad('{"alg":"RS256"}'), pad(JSON.stringify(claims())), PAIRS.rsa.privateKey)
  t.equal(await fate(good), PASSED)
  const [header = '', payload = '', signature = ''] = good.split('.')
  for (const other of [
    `${header}.${payload}.${respelled(signature)}`,
    `${header}.${respelled(payload)}.${signature}`,
    `${respelled(header)}.${payload}.${signature}`,
  ]) {
    t.same(
      other.split('.').map((part) => Buffer.from(part, 'base64url')),
      good.split('.').map((part) => Buffer.from(part, 'base64url')),
    )
    t.equal(await fate(other), REFUSED)
  }
  t.equal(upstream.requests.length, 1)
  const secret = 'a shared secret of forty-eight bytes, as HS384 asks'
  const shared = gate(t, { corp: { algorithms: ['HS384'], secret } })
  const hmac = token({ alg: 'HS384' }, claims(), secret)
  t.equal(await heard(shared, hmac), 'corp:alice')
  t.match(await heard(shared, `${hmac}A`), /^credential-invalid/, 'a character that decodes to nothing')
})

void testUnbridged('a subject that is not UTF-8 is no user: two of them were one user', async (t, pair) => {
  const { fate, upstream, gateway } = await guarded(
    t,
    { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } },
    { pair },
  )
  const named = (bytes: string) => Buffer.from(JSON.stringify(claims({ sub: 'JosX' })).replace('JosX', bytes), 'latin1')
  const signed = (payload: Buffer) => signedAs('RS256', '{"alg":"RS256"}', payload, PAIRS.rsa.privateKey)
  for (const bytes of ['Jos\xe9', 'Jos\xe8', 'Jos\xff', 'Jos\xc3', 'Jos\xc0\xaf', 'Jos\xed\xa0\x80', 'Jos\xf4\x90\x80\x80']) {
    t.equal(await fate(signed(named(bytes))), REFUSED, Buffer.from(bytes, 'latin1').toString('hex'))
  }
  const inHeader = Buffer.from('{"alg":"RS256","x":"\xe9"}', 'latin1')
  t.equal(await fate(assembled(inHeader, JSON.stringify(claims()), signature('RS256', `${inHeader.toString('base64url')}.${encoded(JSON.stringify(claims()))}`, PAIRS.rsa.privateKey))), REFUSED) // oxfmt-ignore
  t.equal(upstream.requests.length, 0)
  t.equal(await fate(signed(named('Jos\xc3\xa9'))), PASSED)
  t.match(
    gateway.lines.findLast((line) => line['msg'] === 'request'),
    { principal: 'corp:José' },
  )
})

void test('whatever is not three parts of JSON objects is refused', async (t) => {
  const authenticate = rsaGate(t)
  t.equal(await heard(authenticate, rsaToken(claims())), 'corp:alice')
  for (const [name, bad] of [...misshapen(), ...NO_OBJECTS]) t.match(await heard(authenticate, bad), /^credential-invalid/, name)
})

void testUnbridged('over the real gateway, none of them reaches the upstream', async (t, pair) => {
  const { fate, fateOf, upstream } = await guarded(
    t,
    { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } },
    { pair },
  )
  const good = rsaToken(claims())
  t.equal(await fate(good), PASSED)
  for (const [name, bad] of [...misshapen(), ...NO_OBJECTS]) t.equal(await fate(bad), REFUSED, name)
  const [header = '', payload = '', signature = ''] = good.split('.')
  for (const space of [' ', '\t', '\u00a0', '\u00ad', '\u0085']) {
    for (const parts of [
      `${header}${space}.${payload}.${signature}`,
      `${header}.${space}${payload}.${signature}`,
      `${header}.${payload}.${signature.slice(0, 9)}${space}${signature.slice(9)}`,
    ])
      // oxfmt-ignore
      t.equal(await fateOf(`Authorization: Bearer ${parts}`), REFUSED, JSON.stringify(space))
  }
  t.equal(upstream.requests.length, 1)
})

void test('the spelling of good JSON is free', async (t) => {
  const authenticate = rsaGate(t)
  const text = JSON.stringify(claims(), null, '\t')
  t.equal(await heard(authenticate, rsaToken(` ${text}\r\n`)), 'corp:alice', 'space between its tokens')
  t.equal(
    await heard(authenticate, rsaToken(text.replaceAll('/', '\\/').replace('alice', '\\u0061lice'))),
    'corp:alice',
    'escapes',
  )
  t.equal(await heard(authenticate, rsaToken(claims(), { typ: undefined })), 'corp:alice', 'no type')
  t.equal(await heard(authenticate, rsaToken(claims(), { typ: 'at+jwt', x5t: 'abc', nonce: 'n' })), 'corp:alice', 'unknown names')
})

const EXTENSIONS: readonly (readonly [name: string, header: Part])[] = [
  ['crit', { crit: ['exp'] }],
  ['an empty crit', { crit: [] }],
  ['a crit that is null', { crit: null }],
  ['a crit that is false', { crit: false }],
  ['a crit that is no list', { crit: 'exp' }],
  ['a crit that is an empty text', { crit: '' }],
  ['a crit that is an object', { crit: {} }],
  ['a crit of standard names', { crit: ['alg'] }],
  ['a crit of itself', { crit: ['crit'] }],
  ['a crit of what is there', { crit: ['cnf'], cnf: { jkt: 'abc' } }],
  ['a crit of a prototype', { crit: ['toString', '__proto__'] }],
  ['b64', { b64: false }],
  ['b64 that changes nothing', { b64: true }],
  ['b64 that is null', { b64: null }],
  ['crit and b64', { crit: ['b64'], b64: false }],
  ['crit and b64 that changes nothing', { crit: ['b64'], b64: true }],
]

void testUnbridged(
  'a header with an extension that has to be understood is refused, however well it is signed',
  async (t, pair) => {
    const authenticate = rsaGate(t)
    const { fate, upstream } = await guarded(
      t,
      { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } },
      { pair },
    )
    t.equal(await fate(rsaToken(claims())), PASSED)
    for (const [name, header] of EXTENSIONS) {
      const extended = rsaToken(claims(), header)
      t.equal(await heard(authenticate, extended), 'credential-invalid: token-critical-extension', name)
      t.equal(await fate(extended), REFUSED, name)
    }
    // RFC 7797 §3: with b64 the payload stands as it is, and is signed so.
    const bare = Buffer.from(JSON.stringify(claims())).toString('latin1').replaceAll('.', '')
    const header = '{"alg":"RS256","b64":false,"crit":["b64"]}'
    t.match(await heard(authenticate, `${encoded(header)}.${bare}.AAAA`), /^credential-invalid/)
    for (const twice of ['{"alg":"RS256","crit":["x"],"crit":null}', '{"alg":"RS256","\\u0063rit":["x"]}'])
      t.equal(await fate(signedAs('RS256', twice, claims(), PAIRS.rsa.privateKey)), REFUSED, twice)
    t.equal(upstream.requests.length, 1)
  },
)

/** A listener that counts who comes: a connection is enough, whatever is said on it. */
async function startTrap(t: Parameters<typeof guarded>[0]): Promise<{ readonly url: string; readonly visits: () => number }> {
  let visits = 0
  const server = createServer((socket) => {
    visits += 1
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`, visits: () => visits }
}

void testUnbridged('keys that a token brings along or points to are not used, and nothing is fetched', async (t, pair) => {
  const trap = await startTrap(t)
  const server = await startKeyServer(t)
  server.keys(jwkOf(PAIRS.rsa.publicKey, { kid: 'k', alg: 'RS256' }))
  const own = jwkOf(PAIRS.otherRsa.publicKey)
  const chain = [pemOf(PAIRS.otherRsa.publicKey).replace(/-----.*?-----|\n/g, '')]
  const temptations: readonly (readonly [name: string, header: Part])[] = [
    ['jku', { jku: trap.url }],
    ['a list of jku', { jku: [trap.url] }],
    ['jku with a user', { jku: trap.url.replace('//', '//login.example.com@') }],
    ['jku with the address of the issuer in its query', { jku: `${trap.url}?${server.url}/jwks` }],
    ['jku with https', { jku: trap.url.replace('http:', 'https:') }],
    ['jku of a file', { jku: 'file:///etc/passwd' }],
    ['jku with the key in it', { jku: `data:application/json,${encodeURIComponent(JSON.stringify({ keys: [own] }))}` }],
    ['x5u', { x5u: trap.url }],
    ['jwk', { jwk: own }],
    ['jwk with the key id of the issuer', { jwk: { ...own, kid: 'k' } }],
    ['a list of jwk', { jwk: [own] }],
    ['jwk that is a shared secret', { jwk: { kty: 'oct', k: 'AAAA' } }],
    ['a key set', { jwks: { keys: [own] }, jwks_uri: trap.url }],
    ['x5c', { x5c: chain }],
    ['a thumbprint', { x5t: 'abc', 'x5t#S256': 'abc' }],
    ['an issuer', { iss: trap.url, jwks_uri: trap.url }],
    ['all of it', { jku: trap.url, x5u: trap.url, jwk: own, x5c: chain, iss: trap.url }],
  ]
  const sources = [{ publicKey: pemOf(PAIRS.rsa.publicKey) }, { jwksUri: `${server.url}/jwks` }, { issuer: server.url }]
  for (const source of sources) {
    const { fate, upstream } = await guarded(t, { corp: { algorithms: ['RS256'], ...source } }, { pair })
    const said = claims('issuer' in source ? { iss: server.url } : {})
    const signedBy = (pair: typeof PAIRS.rsa, header: Part) => token({ alg: 'RS256', kid: 'k', ...header }, said, pair.privateKey)
    for (const [name, header] of temptations) {
      t.equal(await fate(signedBy(PAIRS.otherRsa, header)), REFUSED, name)
      t.equal(await fate(signedBy(PAIRS.otherRsa, { ...header, kid: undefined })), REFUSED, `${name}, no key id`)
      t.equal(await fate(signedBy(PAIRS.rsa, header)), PASSED, `${name} hinders no good token`)
    }
    // The claims, too, can name an address.
    t.equal(
      await fate(token({ alg: 'RS256', kid: 'k' }, { ...said, iss: trap.url, jku: trap.url }, PAIRS.otherRsa.privateKey)),
      REFUSED,
    )
    t.equal(upstream.requests.length, temptations.length)
  }
  t.equal(trap.visits(), 0)
})

/** Key ids that would find something if they were looked up anywhere but in the set. */
function keyIds(address: string): readonly string[] {
  return [
    '../../../../../../etc/passwd', '/dev/null', 'file:///dev/null', String.raw`..\..\windows\win.ini`, '/proc/self/environ', 'k/../k', './k', 'k\0.pem',
    "k' OR '1'='1", "' UNION SELECT 'AAAA' --", 'k"; DROP TABLE keys; --', '$(id)', '`id`', '|id', '${jndi:ldap://127.0.0.1/a}', '{{7*7}}', '%s%s%n',
    address, `${address}#k`, '//evil.example', '__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'length', '0', '-1', 'undefined', 'null',
    '', ' ', 'k ', ' k', 'K', 'k\n', 'k\t', 'k\0', 'k,k', '*', '.*', '^k$', '/k/', '[k]', 'k%00', '\u212a', 'k\u0301', '\ud83d\udd11', '\u202ek', 'k'.repeat(4000),
  ] // oxfmt-ignore
}

void testUnbridged('a key id is compared with those of the set, and does nothing else', async (t, pair) => {
  const trap = await startTrap(t)
  const server = await startKeyServer(t)
  server.keys(jwkOf(PAIRS.rsa.publicKey, { kid: 'k' }))
  const { fate, gateway, upstream } = await guarded(
    t,
    { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } },
    { pair },
  )
  t.equal(await fate(rsaToken(claims(), { kid: 'k' })), PASSED)
  const hostile = keyIds(trap.url)
  for (const kid of hostile) t.equal(await fate(rsaToken(claims(), { kid })), REFUSED, kid.slice(0, 40))
  t.equal(upstream.requests.length, 1)
  t.equal(trap.visits(), 0)
  t.same(
    server.fetched.filter((path) => path !== '/jwks'),
    [],
  )
  const log = JSON.stringify(gateway.lines)
  for (const kid of hostile.filter((one) => one.length > 6 && !one.includes('"')))
    t.notOk(log.includes(JSON.stringify(kid).slice(1, -1)), `${kid.slice(0, 40)} is in no log line`)
})

void test('a set may hold a key with such an id, and then it is that key and no other', async (t) => {
  const server = await startKeyServer(t)
  const hostile = keyIds('http://127.0.0.1:1/jwks').filter((kid) => kid.length < 100)
  server.keys(...hostile.map((kid) => jwkOf(PAIRS.rsa.publicKey, { kid })), jwkOf(PAIRS.otherRsa.publicKey, { kid: 'good' }))
  const authenticate = gate(t, { corp: { algorithms: ['RS256'], jwksUri: `${server.url}/jwks` } })
  for (const kid of hostile) {
    t.equal(await heard(authenticate, rsaToken(claims(), { kid })), 'corp:alice', kid.slice(0, 40))
    const other = token({ alg: 'RS256', kid }, claims(), PAIRS.otherRsa.privateKey)
    t.equal(await heard(authenticate, other), 'credential-invalid: signature-invalid', kid.slice(0, 40))
  }
})

void testUnbridged('a key id that is no string is refused', async (t, pair) => {
  const { fate, upstream } = await guarded(
    t,
    { corp: { algorithms: ['RS256'], publicKey: pemOf(PAIRS.rsa.publicKey) } },
    { pair },
  )
  const authenticate = rsaGate(t)
  for (const kid of [0, 1, -1, 1e21, true, false, null, [], ['k'], [['k']], {}, { toString: 'k' }, { kid: 'k' }]) {
    t.equal(await heard(authenticate, rsaToken(claims(), { kid })), 'credential-invalid: token-malformed', JSON.stringify(kid))
    t.equal(await fate(rsaToken(claims(), { kid })), REFUSED, JSON.stringify(kid))
  }
  t.same(upstream.requests, [])
  t.equal(await fate(rsaToken(claims(), { kid: 'any' })), PASSED, 'where there is one key, its name does not matter')
})
