/**
 * Issuers decide who is who. What would give a token two meanings, a shared secret the look of a public key, or keys that
 * anybody on the way could swap, is refused before anything is served.
 */
import { test } from 'tap'
import { accepted, faultsIn } from '../../testing/support/configuration.ts'

const GOOD = { issuer: 'https://login.example.com/', audiences: ['chat'], algorithms: ['RS256'] }
const corp = (changes: Record<string, unknown>) => ({ 'authentication.issuers': { corp: { ...GOOD, ...changes } } })
const at = (key: string): string => `authentication.issuers.corp${key}`

void test('shared secrets and public keys do not mix', (t) => {
  const { algorithms } = { algorithms: at('.algorithms') }
  t.match(faultsIn(corp({ algorithms: ['HS256'] })), [{ path: algorithms, message: 'HS256 needs secretFile' }])
  t.match(faultsIn(corp({ algorithms: ['RS256', 'HS512'] })), [{ path: algorithms, message: 'HS512 needs secretFile' }])
  t.match(faultsIn(corp({ algorithms: ['HS256'], publicKeyFile: 'a.pem' })), [{ path: algorithms }])
  t.match(faultsIn(corp({ algorithms: ['HS256'], jwksUri: 'https://a.example/jwks' })), [{ path: algorithms }])
  t.match(faultsIn(corp({ algorithms: ['RS256'], secretFile: 's' })), [{ path: algorithms, message: /^secretFile serves HS256/ }])
  t.match(faultsIn(corp({ algorithms: ['HS256', 'ES256'], secretFile: 's' })), [{ path: algorithms }])
  t.ok(accepted(corp({ algorithms: ['HS256', 'HS384', 'HS512'], secretFile: 's' })))
  t.ok(accepted(corp({ algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'] })))
  t.end()
})

void test('keys come from one place', (t) => {
  const places = { jwksUri: 'https://a.example/jwks', publicKeyFile: 'a.pem' }
  t.match(faultsIn(corp(places)), [{ path: at(''), message: 'names more than one source of keys' }])
  t.match(faultsIn(corp({ algorithms: ['HS256'], secretFile: 's', publicKeyFile: 'a.pem' })), [{ path: at('') }])
  t.end()
})

void test('keys are fetched by https, or from this very machine', (t) => {
  const fault = { message: 'keys are fetched by https only', hint: 'http is for loopback addresses' }
  for (const issuer of [
    'http://login.example.com',
    'http://10.0.0.1',
    'http://127.0.0.1.example.com',
    'http://localhost.example.com',
    'urn:corp',
    'corp',
    'ftp://127.0.0.1',
  ]) {
    t.match(faultsIn(corp({ issuer })), [{ path: at('.issuer'), ...fault }], issuer)
  }
  t.match(faultsIn(corp({ jwksUri: 'http://login.example.com/jwks' })), [{ path: at('.jwksUri'), ...fault }])
  for (const issuer of ['http://127.0.0.1:3000', 'http://localhost:3000/', 'http://[::1]:3000'])
    t.ok(accepted(corp({ issuer })), issuer)
  t.end()
})

void test('where keys are not discovered, the issuer may be any string', (t) => {
  t.ok(accepted(corp({ issuer: 'urn:corp', jwksUri: 'https://a.example/jwks' })))
  t.ok(accepted(corp({ issuer: 'corp', publicKeyFile: 'a.pem' })))
  t.end()
})

void test('two entries with the same issuer are refused: a token must have one meaning', (t) => {
  const fault = {
    path: 'authentication.issuers',
    message: 'two entries have the same issuer',
    hint: 'a token must have one meaning',
  }
  t.match(faultsIn({ 'authentication.issuers': { a: GOOD, b: { ...GOOD, audiences: ['other'] } } }), [fault])
  t.ok(accepted({ 'authentication.issuers': { a: GOOD, b: { ...GOOD, issuer: 'https://login.example.com' } } }), 'to the letter')
  t.end()
})

void test('an issuer key is of a-z, 0-9 and -: it is split off the user id at the first ":"', (t) => {
  for (const key of ['Corp', 'a:b', 'a_b', 'a.b', '', 'ä']) {
    t.match(faultsIn({ 'authentication.issuers': { [key]: GOOD } }), [{ path: `authentication.issuers.${key}` }], key)
  }
  t.ok(accepted({ 'authentication.issuers': { 'corp-2': GOOD } }))
  t.end()
})

void test('claims are found by JSON pointers', (t) => {
  for (const id of ['', 'sub', '/a~2', '/a~'])
    t.match(faultsIn(corp({ claims: { id } })), [{ path: at('.claims.id'), message: 'is not a JSON pointer' }])
  t.match(faultsIn(corp({ audienceClaim: 'aud' })), [{ path: at('.audienceClaim'), message: 'is not a JSON pointer' }])
  const claims = {
    id: '/https:~1~1example.com~1id',
    name: '/',
    role: '/realm_access/roles',
    permissions: '/scope',
    groups: '/groups',
  }
  t.same(accepted(corp({ claims })).config.authentication.issuers['corp']?.claims, claims)
  t.end()
})

void test('an exception to https is named, and draws a warning', (t) => {
  const path = at('.insecureHttp')
  for (const changes of [{ issuer: 'http://idp.cluster.local' }, { jwksUri: 'http://10.0.0.1/jwks' }]) {
    const { warnings } = accepted(corp({ ...changes, insecureHttp: true }))
    t.match(warnings, [{ path, message: /can forge tokens for every user/ }])
  }
  t.match(faultsIn(corp({ issuer: 'ftp://10.0.0.1', insecureHttp: true })), [{ path: at('.issuer') }])
  t.end()
})

const INTROSPECTION = { url: 'https://login.example.com/introspect', clientId: 'gateway', clientSecret: '${env:SECRET}' }
const SECRET = { environment: { SECRET: 'hush' } }

void test('an issuer of opaque tokens needs no algorithms, and there is one at most', (t) => {
  const opaque = { algorithms: undefined, introspection: INTROSPECTION }
  const { config, warnings } = accepted(corp(opaque), SECRET)
  t.match(config.authentication.issuers['corp'], { introspection: { clientAuthentication: 'basic', cacheFor: 30_000 } })
  t.same(warnings, [])
  t.ok(accepted(corp({ introspection: INTROSPECTION }), SECRET), 'or takes both')
  t.match(faultsIn(corp({ algorithms: undefined })), [{ path: at('.algorithms'), message: 'must name at least one algorithm' }])
  t.match(faultsIn(corp({ ...opaque, jwksUri: 'https://a.example/jwks' }), SECRET), [{ path: at('.algorithms') }])
  t.match(faultsIn(corp({ introspection: { ...INTROSPECTION, url: 'http://login.example.com/i' } }), SECRET), [
    { path: at('.introspection.url'), message: 'keys are fetched by https only' },
  ])
  const two = { a: { ...GOOD, introspection: INTROSPECTION }, b: { ...GOOD, issuer: 'https://b/', introspection: INTROSPECTION } }
  t.match(faultsIn({ 'authentication.issuers': two }, SECRET), [
    { path: 'authentication.issuers', message: /two entries have introspection/ },
  ])
  t.match(accepted(corp({ introspection: { ...INTROSPECTION, clientSecret: 'plain' } })).warnings, [
    { path: at('.introspection.clientSecret'), message: 'is a secret in plain text' },
  ])
  t.end()
})

void test('required claims are pointers with a value, several, or none', (t) => {
  t.ok(accepted(corp({ requiredClaims: { '/hd': 'example.com', '/tid': ['a', 'b'], '/email_verified': true, '/azp': null } })))
  for (const requiredClaims of [{ hd: 'example.com' }, { '/hd': [] }, { '/hd': {} }, ['/hd']]) {
    t.not(faultsIn(corp({ requiredClaims })).length, 0, JSON.stringify(requiredClaims))
  }
  t.end()
})
