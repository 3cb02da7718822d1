/** Who is asking, as the upstream is told: headers that no caller can send, and an assertion that anybody can verify. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { makeAssertionVerifier } from '../../src/sdk/agent/index.ts'
import { makeIdentity } from '../../src/http/pipeline/identity.ts'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { EVERYBODY, type User } from '../../src/core/decide/principal.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ask } from '../../testing/support/raw.ts'

const BASE = '/api/copilotkit'
const HEADERS = { id: 'X-User-Id', name: 'x-user-name', role: 'x-user-role', permissions: 'x-user-permissions' }
const ALICE: User = {
  kind: 'user',
  id: 'corp:alice',
  issuer: 'corp',
  subject: 'alice',
  name: 'Alice Ångström',
  roles: ['member', 'a,b'],
  permissions: ['threads:operate', 'x y'],
  groups: ['corp:staff'],
  claims: {},
}
const RUN = classify('POST', ['agent', 'default', 'run'], new Map()) as RouteDescriptor

function pem(curve = 'P-256'): string {
  return generateKeyPairSync('ec', { namedCurve: curve }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

function rules(keys: readonly string[] = [pem()]) {
  const header = 'x-threadwarden-assertion'
  return { keys, issuer: 'https://chat.example.com', audience: 'agents', lifetime: 60_000, header, replaceAuthorization: false }
}

/** A gateway that signs, before an upstream that records. */
async function asserting(t: Test, more: object = {}): Promise<GatedUpstream & { readonly origin: string }> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  writeFileSync(join(folder, 'key.pem'), pem())
  const assertion = { keyFiles: [join(folder, 'key.pem')], issuer: 'https://chat.example.com', audience: 'agents', ...more }
  const gate = await gated(t, undefined, { config: { identity: { headers: HEADERS, assertion } } })
  return { ...gate, origin: gate.gateway.url }
}

void test('names that are configured carry the user, whatever characters are in it', (t) => {
  const names = { id: 'x-id', name: 'x-name', role: 'x-role', permissions: 'x-permissions' }
  const identity = makeIdentity(names, null, () => 0)
  t.strictSame(identity.headersTo()(ALICE, RUN), {
    'x-id': 'corp:alice',
    'x-name': 'Alice%20%C3%85ngstr%C3%B6m',
    'x-role': 'member,a%2Cb',
    'x-permissions': 'threads:operate,x%20y',
  })
  t.strictSame(identity.headersTo()({ ...ALICE, id: 'corp:a%b\ud800\n', name: undefined, roles: [], permissions: [] }, RUN), {
    'x-id': 'corp:a%25b%EF%BF%BD%0A',
  })
  t.strictSame(identity.headersTo()(EVERYBODY, RUN), { 'x-id': 'anonymous' })
  t.strictSame(makeIdentity({}, null, () => 0).headersTo()(ALICE, RUN), {})
  t.equal(identity.keySet, null)
  t.end()
})

void test('what a caller sends under these names does not pass, in any spelling', async (t) => {
  const { gateway, alice, upstream } = await asserting(t)
  const lines = [
    'X-User-Id: corp:bob',
    'x-user-id: corp:bob',
    'X_User_Id: corp:bob',
    'X-USER-ROLE: operator',
    'X-Threadwarden-Assertion: forged',
  ]
  for (const line of lines) {
    const target = `${BASE}/info`
    t.equal((await ask(gateway.url, { target, lines: [`Authorization: Bearer ${alice}`, line] })).status, 200)
    const { headers, rawHeaders } = upstream.requests.at(-1)!
    t.same(headers.get('x-user-id'), ['corp:alice'], line)
    t.equal(headers.has('x-user-role'), false, line)
    t.equal(headers.get('x-threadwarden-assertion')?.length, 1, line)
    t.notOk(
      rawHeaders.some((value) => /corp:bob|forged/.test(value)),
      line,
    )
  }
})

void test('the assertion says who asks for what, and is good for the package’s own verifier with the published keys', async (t) => {
  const { base, origin, alice, upstream } = await asserting(t)
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 200)
  const verify = makeAssertionVerifier({
    issuer: 'https://chat.example.com',
    audience: 'agents',
    jwksUri: `${origin}/.well-known/jwks.json`,
  })
  const headers = Object.fromEntries(upstream.requests.at(-1)!.headers) as Record<string, string[]>
  t.match(await verify(headers), { user_id: 'corp:alice', thread: 't1' })
  const { claims, header } = parts(headers['x-threadwarden-assertion']![0]!)
  t.match(header, { alg: 'ES256', typ: 'threadwarden+jwt', kid: /^[\w-]{43}$/ })
  t.match(claims, { idp: 'corp', route: 'agent/run', jti: /^[0-9a-f-]{36}$/, role: [] })
  t.equal(Number(claims['exp']) - Number(claims['iat']), 60)
  t.same(headers['authorization'], [`Bearer ${alice}`], 'the token passes beside it')
  await t.rejects(verify({ authorization: `Bearer ${alice}` }), 'a token is no assertion')
})

void test('it takes the place of the token where that is wished', async (t) => {
  const { base, alice, upstream } = await asserting(t, { replaceAuthorization: true })
  await call(`${base}/info`, { token: alice })
  const { headers } = upstream.requests.at(-1)!
  const [value = ''] = headers.get('authorization') ?? []
  t.equal(headers.get('authorization')?.length, 1)
  t.match(parts(value.replace('Bearer ', '')).claims, { sub: 'corp:alice', route: 'info' })
  t.notOk(headers.has('x-threadwarden-assertion'))
  t.notOk(JSON.stringify([...headers]).includes(alice))
})

void test('the keys are public, and nothing else is', async (t) => {
  const { origin, gateway } = await asserting(t)
  const answer = await call(`${origin}/.well-known/jwks.json`)
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('content-type'), 'application/jwk-set+json')
  t.match(answer.json, { keys: [{ kty: 'EC', crv: 'P-256', use: 'sig', alg: 'ES256' }] })
  t.notOk(answer.text.includes('"d"'), 'no private half')
  for (const [method, target] of [
    ['POST', '/.well-known/jwks.json'],
    ['HEAD', '/.well-known/jwks.json'],
    ['GET', '/.well-known/jwks.json?x=1'],
    ['GET', '/.well-known/openid-configuration'],
    ['GET', '/.well-known/jwks.json/'],
    ['GET', `${BASE}/.well-known/jwks.json`],
  ] as const) {
    t.match(
      [400, 401],
      [(await ask(gateway.url, { method, target })).status].filter((status) => ![400, 401].includes(status)),
      target,
    )
  }
  const without = await gated(t)
  t.equal(codeOf(await call(`${without.gateway.url}/.well-known/jwks.json`)), 'credential-missing')
})

void test('keys rotate: the first signs, both are published', async (t) => {
  const [old, next] = [pem(), pem()]
  const before = makeIdentity({}, rules([old, next]), Date.now)
  const after = makeIdentity({}, rules([next, old]), Date.now)
  const kids = (JSON.parse(before.keySet!) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid)
  t.equal(kids.length, 2)
  t.equal(parts(before.headersTo()(ALICE, RUN)['x-threadwarden-assertion']!).header['kid'], kids[0])
  t.equal(parts(after.headersTo()(ALICE, RUN)['x-threadwarden-assertion']!).header['kid'], kids[1])
  const verify = makeAssertionVerifier({
    issuer: 'https://chat.example.com',
    audience: 'agents',
    keys: (JSON.parse(before.keySet!) as { keys: object[] }).keys,
  })
  t.match(await verify(after.headersTo()(ALICE, RUN)), { user_id: 'corp:alice' })
})

void test('keys that can’t sign are refused', (t) => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const shown = publicKey.export({ type: 'spki', format: 'pem' }) as string
  t.throws(() => makeIdentity({}, rules([shown]), Date.now), /private key/)
  t.throws(() => makeIdentity({}, rules([pem('P-384')]), Date.now), /P-256/)
  t.throws(() => makeIdentity({}, rules(['nonsense']), Date.now), /no key in PEM/)
  t.doesNotThrow(() => makeIdentity({}, rules([pem(), shown]), Date.now), 'one that is only published may be public')
  t.end()
})

function parts(token: string): { readonly header: Record<string, unknown>; readonly claims: Record<string, unknown> } {
  const [header, claims] = token
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>)
  return { header: header!, claims: claims! }
}
