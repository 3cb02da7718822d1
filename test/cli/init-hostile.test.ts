/** `threadwarden init` trusts neither an upstream nor an issuer: nothing that they answer reaches the terminal or the file unchecked. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { AUTHORITY, SERVER } from '../../testing/support/certificates.ts'
import type { Ended } from '../../testing/support/decided.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { jwkOf, PAIRS } from '../../testing/support/signing.ts'
import { INFO, json, startUpstream, type Answering, type Upstream } from '../../testing/support/upstream.ts'
import { initScene, isAccepted, plainIssuer, type InitScene } from './init-scene.ts'

/** Escape sequences of a terminal, a line of YAML, a reference, and a change of direction. */
const EVIL = '\u001b[2J\u001b]0;x\u0007\nadmin: { host: 0.0.0.0 }\n# ${file:/etc/passwd} \u202egnp.'

async function hostileUpstream(t: Test, answering: Answering): Promise<Upstream> {
  const upstream = await startUpstream(answering)
  t.teardown(() => upstream.close())
  upstream.answerQuestions(answering)
  return upstream
}

/** Nothing that a terminal obeys but line ends, nothing that the configuration would fill in, and no key of another. */
function isClean(t: Test, { stdout, stderr }: Ended, { isWritten, text, written }: InitScene): void {
  t.notMatch(stdout + stderr, /[^\P{C}\n]/u)
  t.notMatch(stdout + stderr, /gnp|passwd/)
  if (!isWritten()) return
  t.notMatch(text(), /[^\P{C}\n]|\$\{|gnp/u)
  t.notOk('admin' in written())
}

const INFOS: readonly (readonly [name: string, info: unknown])[] = [
  ['a version', { ...INFO, version: EVIL }],
  ['a long version', { ...INFO, version: '1'.repeat(100_000) }],
  ['agents', { ...INFO, agents: { [EVIL]: { name: EVIL } } }],
  ['a mode', { ...INFO, mode: EVIL, intelligence: EVIL }],
  ['endpoints', { ...INFO, threadEndpoints: { list: EVIL, inspect: EVIL, [EVIL]: true } }],
  ['no version', { agents: {} }],
  ['a list', [EVIL]],
]

for (const [name, info] of INFOS) {
  void test(`an upstream with ${name} of its own`, async (t) => {
    const [issuer, upstream] = [await plainIssuer(t), await hostileUpstream(t, json(info))]
    const scene = initScene(t)
    const ended = await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url)
    t.equal(ended.code, scene.isWritten() ? 0 : 1)
    isClean(t, ended, scene)
    t.notMatch(ended.stdout, '1'.repeat(50))
  })
}

void test('a plain address of another issuer is shown, as the operator may have meant it', async (t) => {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  const body = { issuer: 'https://login.example.com/tenant/', jwks_uri: `${issuer.url}/jwks` }
  issuer.answers.set('/.well-known/openid-configuration', { body })
  const { code, stderr } = await initScene(t).init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url)
  t.equal(code, 1)
  t.match(stderr, /names another issuer: https:\/\/login\.example\.com\/tenant\/\n  → pass the issuer exactly/)
})

void test('threads with hostile ids are counted, and not shown', async (t) => {
  const threads = Array.from({ length: 3 }, () => ({ id: EVIL, name: EVIL }))
  const upstream = await hostileUpstream(t, (request, response) =>
    json(request.target.endsWith('/info') ? INFO : { threads }, 200)(request, response),
  )
  const [issuer, scene] = [await plainIssuer(t), initScene(t)]
  const ended = await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url)
  t.match(ended.stdout, 'the runtime has 3 threads or more')
  isClean(t, ended, scene)
})

void test('an upstream that redirects is not followed, and its headers are not shown', async (t) => {
  const elsewhere = await hostileUpstream(t, json(INFO))
  const upstream = await hostileUpstream(t, (_request, response) => {
    response.writeHead(302, { location: `${elsewhere.url}/api/info`, 'x-evil': 'gnp' }).end(EVIL)
  })
  const [issuer, scene] = [await plainIssuer(t), initScene(t)]
  const ended = await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url)
  t.match(ended, { code: 1, stderr: /is not a runtime at this path: GET \/api\/info answered 302/ })
  t.equal(elsewhere.connections(), 0)
  isClean(t, ended, scene)
})

void test('an upstream that never answers, or never ends', async (t) => {
  const silent = await hostileUpstream(t, () => {})
  const endless = await hostileUpstream(t, (request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    if (request.method === 'GET') return void response.write('{"version":"')
    const more = (): void => {
      while (response.write('x'.repeat(64 * 1024))) if (response.destroyed) return
    }
    response.on('drain', more)
    more()
  })
  const issuer = await plainIssuer(t)
  for (const [{ url }, message] of [
    [silent, /gives no answer in time\n  → .*increase --timeout/],
    [endless, /gives no usable answer: GET \/api\/info/],
  ] as const) {
    const scene = initScene(t)
    const ended = await scene.init('--upstream', `${url}/api`, '--issuer', issuer.url, '--timeout', '100ms')
    t.match(ended, { code: 1, stderr: message })
    t.notOk(scene.isWritten())
  }
})

const METADATA: readonly (readonly [name: string, metadata: (url: string) => object, code: 0 | 1])[] = [
  ['another issuer', (url) => ({ issuer: `https://evil.example/${EVIL}`, jwks_uri: `${url}/jwks` }), 1],
  ['no issuer', (url) => ({ issuer: [EVIL], jwks_uri: `${url}/jwks` }), 1],
  ['an issuer that only begins like it', (url) => ({ issuer: `${url}/\${file:/etc/passwd}`, jwks_uri: `${url}/jwks` }), 1],
  ['a key set that is no URL', (url) => ({ issuer: url, jwks_uri: EVIL }), 1],
  ['a key set on another machine by http', (url) => ({ issuer: url, jwks_uri: 'http://evil.example/jwks' }), 1],
  ['a key set with a password', (url) => ({ issuer: url, jwks_uri: 'https://gnp:passwd@evil.example/jwks' }), 1],
  [
    'hostile algorithms',
    (url) => ({ issuer: url, jwks_uri: `${url}/jwks`, id_token_signing_alg_values_supported: [EVIL, 'none'] }),
    0,
  ],
  [
    'a hostile introspection endpoint',
    (url) => ({ issuer: url, jwks_uri: `${url}/jwks`, introspection_endpoint: `${url}/\n${EVIL}` }),
    0,
  ],
  [
    'a reference as introspection endpoint',
    (url) => ({ issuer: url, jwks_uri: `${url}/jwks`, introspection_endpoint: `${url}/?\${env:HOME}` }),
    0,
  ],
  [
    'an introspection endpoint that is no URL',
    (url) => ({ issuer: url, jwks_uri: `${url}/jwks`, introspection_endpoint: EVIL }),
    0,
  ],
]

for (const [name, metadata, code] of METADATA) {
  void test(`an issuer with ${name}`, async (t) => {
    const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
    t.teardown(() => upstream.close())
    issuer.answers.set('/.well-known/openid-configuration', { body: metadata(issuer.url) })
    const scene = initScene(t)
    const ended = await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url)
    t.equal(ended.code, code)
    t.equal(scene.isWritten(), code === 0)
    isClean(t, ended, scene)
    if (code === 0)
      t.match(scene.written(), { authentication: { issuers: { corp: { issuer: issuer.url, algorithms: ['RS256'] } } } })
  })
}

const KEY_SETS: readonly (readonly [name: string, keys: unknown])[] = [
  ['no keys', {}],
  ['keys of another type', { keys: [{ kty: 'oct', k: 'c2VjcmV0' }, null, EVIL, { kty: 'RSA', n: EVIL, e: 'AQAB' }] }],
  ['too many keys', { keys: Array(101).fill(jwkOf(PAIRS.rsa.publicKey)) }],
  ['too much', { keys: [jwkOf(PAIRS.rsa.publicKey)], more: 'x'.repeat(600 * 1024) }],
  ['hostile text', EVIL],
]

for (const [name, body] of KEY_SETS) {
  void test(`a key set with ${name}`, async (t) => {
    const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
    t.teardown(() => upstream.close())
    issuer.answers.set('/jwks', { body })
    const scene = initScene(t)
    const ended = await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url)
    t.equal(ended.code, 1)
    t.notOk(scene.isWritten())
    isClean(t, ended, scene)
  })
}

void test('an issuer that redirects is not followed', async (t) => {
  const [issuer, elsewhere, upstream] = [await plainIssuer(t), await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  const location = `${elsewhere.url}/.well-known/openid-configuration`
  issuer.answers.set('/.well-known/openid-configuration', { status: 302, headers: { location } })
  const scene = initScene(t)
  t.match(await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url), { code: 1, stderr: /answered 302/ })
  t.same(elsewhere.fetched, [])
})

void test('TLS is verified, and a private certificate authority named in the configuration', async (t) => {
  const issuer = await startKeyServer(t, SERVER)
  issuer.keys(jwkOf(PAIRS.rsa.publicKey))
  const server = createServer(SERVER, (request, response) => {
    const status = request.headers['x-key'] === 'secret' ? 200 : 401
    const body = request.url?.endsWith('/info') === true ? INFO : { threads: [] }
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const upstream = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const scene = initScene(t)
  const [ca, key] = [join(scene.folder, 'ca.pem'), join(scene.folder, 'key')]
  writeFileSync(ca, AUTHORITY)
  writeFileSync(key, 'secret')
  const args = ['--upstream', `${upstream}/api`, '--issuer', issuer.url, '--upstream-header', `x-key=${key}`]
  const { code, stderr } = await scene.init(...args)
  t.equal(code, 1)
  t.match(stderr, /the certificate of .* is not trusted .*\n  → write its certificate authority to --upstream-ca/)
  t.match(
    stderr,
    /gives no answer \(\w*(?:CERT|SIGNATURE|ISSUER)\w*\)\n  → name its private certificate authority with --issuer-ca/,
  )
  t.match(await scene.init(...args, '--upstream-ca', ca, '--issuer-ca', ca), { code: 0 })
  t.match(scene.written(), { upstream: { ca }, authentication: { issuers: { corp: { ca } } } })
  await isAccepted(t, scene)
})
