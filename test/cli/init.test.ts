/** `threadwarden init`: what it finds out about real runtimes, agents and issuers, and that the gateway accepts what it writes. */
import { readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { startAgent } from '../../examples/agent.ts'
import { startIssuer } from '../../examples/issuer.ts'
import { startPlatformStandIn } from '../../examples/platform-stand-in.ts'
import { clearThreads, startRuntime } from '../../examples/runtime.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { jwkOf, PAIRS } from '../../testing/support/signing.ts'
import { INFO, json, startUpstream } from '../../testing/support/upstream.ts'
import { hush } from '../doctor/examination.ts'
import { run } from './in-process.ts'
import { initScene, isAccepted, plainIssuer, recognises } from './init-scene.ts'

for (const mode of ['multi-route', 'single-route'] as const) {
  void test(`a ${mode} runtime`, (t) => recognises(t, '1.75 node', mode))
}

void test('a URL without a path, or with the path of /info', async (t) => {
  hush(t)
  const [issuer, runtime] = [await plainIssuer(t), await startRuntime()]
  t.teardown(() => runtime.close())
  for (const path of ['', '/', '/api/copilotkit/info', '/api/copilotkit/']) {
    const scene = initScene(t)
    t.match(await scene.init('--upstream', `${runtime.url}${path}`, '--issuer', issuer.url), { code: 0 })
    t.match(scene.written(), { upstream: { url: runtime.url, basePath: '/api/copilotkit' } }, path)
  }
})

void test('a runtime that has threads', async (t) => {
  clearThreads()
  const [issuer, runtime] = [await plainIssuer(t), await startRuntime()]
  t.teardown(() => runtime.close())
  await call(`${runtime.url}/api/copilotkit/agent/default/run`, { body: runInput('old') })
  const scene = initScene(t)
  const { stdout } = await scene.init('--upstream', runtime.url, '--issuer', issuer.url)
  t.match(stdout, 'the runtime has 1 thread without an owner: only threads without a history can be claimed')
  t.match(stdout, 'import them: docs/how-to/operate/migrate.md')
  t.match(scene.written(), { ownership: { unknownThread: 'verify' } })
  const wished = initScene(t)
  await wished.init('--upstream', runtime.url, '--issuer', issuer.url, '--unknown-thread', 'deny')
  t.match(wished.written(), { ownership: { unknownThread: 'deny' } })
  clearThreads()
})

void test('a runtime that has threads, and cannot tell which ones are new', async (t) => {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  const info = { ...INFO, threadEndpoints: { list: true, inspect: true } }
  upstream.answerQuestions((request, response) => {
    if (request.target.endsWith('/info')) return json(info)(request, response)
    if (request.target.endsWith('/threads')) return json({ threads: [{ id: 'a' }, { id: 'b' }] })(request, response)
    return json({ error: 'no' }, 422)(request, response)
  })
  const scene = initScene(t)
  const { stdout } = await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url)
  t.match(stdout, 'the runtime has 2 threads or more without an owner, and does not say which ones are new')
  t.match(scene.written(), { ownership: { unknownThread: 'deny' } })
  t.same(upstream.requests, [], 'it asks only what the gateway asks for itself')
})

for (const [why, answer] of [
  ['is refused', json({ error: 'no' }, 401)],
  ['cannot be read', json({ threads: 'none' })],
] as const) {
  void test(`a runtime whose list ${why} may have threads`, async (t) => {
    const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
    t.teardown(() => upstream.close())
    let history = 422
    upstream.answerQuestions((request, response) => {
      if (request.target.endsWith('/info'))
        return json({ ...INFO, threadEndpoints: { list: true, inspect: true } })(request, response)
      if (request.target.endsWith('/threads')) return answer(request, response)
      return json({ error: 'no' }, history)(request, response)
    })
    const asked = async (): Promise<unknown> => {
      const scene = initScene(t)
      const { stdout } = await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url)
      t.match(stdout, 'the runtime did not give its list of threads, and may have threads without an owner')
      return scene.written()
    }
    t.match(await asked(), { ownership: { unknownThread: 'deny' } })
    history = 404
    t.match(await asked(), { ownership: { unknownThread: 'verify' } })
  })
}

void test('a runtime without lists gets those of the table', async (t) => {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  upstream.answerQuestions((request, response) =>
    json(request.target.endsWith('/info') ? { ...INFO, threadEndpoints: { list: false, inspect: false } } : {}, 200)(
      request,
      response,
    ),
  )
  const scene = initScene(t)
  const { stdout } = await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url)
  t.match(stdout, 'no thread is older than the gateway (unknownThread: claim); otherwise pass --unknown-thread deny')
  t.match(scene.written(), { ownership: { unknownThread: 'claim', lists: 'table' } })
  await isAccepted(t, scene)
})

void test('a runtime of the managed platform', async (t) => {
  const [issuer, platform] = [await plainIssuer(t), await startPlatformStandIn()]
  t.teardown(() => platform.close())
  const { apiUrl, wsUrl, apiKey } = platform
  const keys = [PAIRS.p256.publicKey.export({ format: 'jwk' })]
  const assertion = { issuer: 'https://chat.example.com', audience: 'copilot-runtime', keys }
  const runtime = await startRuntime({ platform: { apiUrl, wsUrl, apiKey, assertion } })
  t.teardown(() => runtime.close())
  const scene = initScene(t)
  const { stdout } = await scene.init('--upstream', runtime.url, '--issuer', issuer.url)
  t.match(stdout, /is a multi-route runtime of version \S+ of the managed platform/)
  t.match(scene.written(), { policy: 'builtin:managed-platform', ownership: { unknownThread: 'claim' } })
  t.match(scene.text(), 'docs/how-to/connect/managed-platform.md')
  await isAccepted(t, scene)
})

void test('an agent without a runtime', async (t) => {
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  const agent = await startAgent({ issuer: issuer.issuer, audience: 'agent-chat' })
  t.teardown(() => agent.close())
  const scene = initScene(t)
  const asRuntime = await scene.init('--upstream', agent.url, '--issuer', issuer.issuer)
  t.match(asRuntime, { code: 1, stderr: /requires a credential: POST \/ .* answered 401/ })
  t.match(asRuntime.stderr, 'for an AG-UI agent without a runtime, add --agent ID')
  t.notOk(scene.isWritten())
  const { code, stdout } = await scene.init('--upstream', agent.url, '--agent', 'research', '--issuer', issuer.issuer)
  t.equal(code, 0)
  t.match(stdout, 'the server is an AG-UI agent that accepts runs at /: agents do not say what they are')
  t.match(scene.written(), {
    agents: { research: { url: agent.url.slice(0, -1), path: '/' } },
    ownership: { unknownThread: 'claim' },
  })
  t.ok(
    agent.requests.every(({ input }) => input === undefined),
    'nothing was run',
  )
  await isAccepted(t, scene)
})

void test('the algorithms are those of the keys', async (t) => {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  const rsa = jwkOf(PAIRS.rsa.publicKey, { kid: 'r', alg: undefined })
  const ec = jwkOf(PAIRS.p256.publicKey, { kid: 'e' })
  const listed = (values: unknown) => ({
    body: { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks`, id_token_signing_alg_values_supported: values },
  })
  for (const [keys, values, expected] of [
    [[rsa], undefined, ['RS256']],
    [[rsa], ['PS256', 'none', 'HS256'], ['PS256']],
    [[rsa], ['ES512'], ['RS256']],
    [[rsa, ec], ['RS256'], ['RS256', 'ES256']],
    [[jwkOf(PAIRS.rsa.publicKey, { alg: 'RS512' }), { kty: 'oct', k: 'c2VjcmV0' }], ['RS256'], ['RS512']],
  ] as const) {
    const scene = initScene(t)
    issuer.keys(...keys)
    issuer.answers.set('/.well-known/openid-configuration', listed(values))
    t.match(await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url), { code: 0 })
    t.same(scene.written().authentication.issuers['corp']?.['algorithms'], expected)
  }
})

void test('the issuer is written as it spells itself, and introspection is mentioned', async (t) => {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  const metadata = {
    issuer: `${issuer.url}/`,
    jwks_uri: `${issuer.url}/jwks`,
    introspection_endpoint: `${issuer.url}/introspect`,
  }
  issuer.answers.set('/.well-known/openid-configuration', { body: metadata })
  for (const given of [issuer.url, `${issuer.url}/`, `${issuer.url}/.well-known/openid-configuration`]) {
    const scene = initScene(t)
    const { stdout } = await scene.init('--upstream', `${upstream.url}/api`, '--issuer', given)
    t.match(scene.written(), { authentication: { issuers: { corp: { issuer: `${issuer.url}/` } } } }, given)
    t.equal(stdout.includes('tokens have its spelling'), given !== `${issuer.url}/`)
    t.match(stdout, 'the issuer has an introspection endpoint')
    t.match(scene.text(), `# It also introspects tokens, at ${issuer.url}/introspect\n`)
  }
})

void test('an issuer without discovery', async (t) => {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  issuer.answers.delete('/.well-known/openid-configuration')
  const scene = initScene(t)
  const args = ['--upstream', `${upstream.url}/api`, '--issuer', issuer.url]
  t.match(await scene.init(...args), { code: 1, stderr: /answered 404\n.*--jwks-uri/ })
  t.match(await scene.init(...args, '--jwks-uri', `${issuer.url}/jwks`), { code: 0 })
  t.match(scene.written(), { authentication: { issuers: { corp: { issuer: issuer.url, jwksUri: `${issuer.url}/jwks` } } } })
})

void test('a server that is away writes nothing, and both failures are reported', async (t) => {
  const scene = initScene(t)
  const [one, two] = [await freePort(), await freePort()]
  const args = ['--upstream', `http://127.0.0.1:${one}/api`, '--issuer', `http://127.0.0.1:${two}`]
  const { code, stdout, stderr } = await scene.init(...args)
  t.match({ code, stdout }, { code: 1, stdout: '' })
  t.match(stderr, `error: nothing listens on http://127.0.0.1:${one}\n  → start the runtime, or correct --upstream\n`)
  t.match(stderr, `error: http://127.0.0.1:${two}/.well-known/openid-configuration gives no answer (ECONNREFUSED)\n  → `)
  t.match(stderr, 'nothing was written; --offline writes a configuration without asking\n')
  t.notOk(scene.isWritten())
  const offline = await scene.init(...args, '--offline')
  t.match(offline, { code: 0, stderr: '' })
  t.match(offline.stdout, `a runtime serves its routes at http://127.0.0.1:${one}/api: it was not asked`)
  t.match(offline.stdout, `http://127.0.0.1:${two} signs with RS256 or ES256: it was not asked`)
  t.notMatch(offline.stdout, 'Found out')
  t.match(await run(t, ['validate', '--strict', '--config', scene.file]), { code: 0 })
})

void test('a file is not replaced unasked, and nothing is asked before', async (t) => {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  const scene = initScene(t)
  writeFileSync(scene.file, 'mine')
  const args = ['--upstream', `${upstream.url}/api`, '--issuer', issuer.url]
  t.match(await scene.init(...args), { code: 1, stdout: '', stderr: /exists already: pass --force/ })
  t.equal(scene.text(), 'mine')
  t.same([upstream.connections(), issuer.fetched], [0, []])
  t.match(await scene.init(...args, '--force'), { code: 0 })
  t.match(scene.written(), { upstream: { url: upstream.url } })
  t.equal(statSync(scene.file).mode & 0o137, 0, 'not for others, and not executable')
  const link = join(scene.folder, 'link.yaml')
  symlinkSync(join(scene.folder, 'elsewhere'), link)
  t.match(await scene.init(...args, '--out', link), { code: 1, stderr: /exists already/ })
  t.match(await scene.init(...args, '--out', join(scene.folder, 'no/such/file.yaml')), {
    code: 1,
    stderr: /cannot be written \(ENOENT\)/,
  })
})

void test('a file that has the name of the draft is not removed', async (t) => {
  const scene = initScene(t)
  const draft = join(scene.folder, `.threadwarden.yaml.${process.pid}.draft`)
  writeFileSync(draft, 'mine')
  const args = ['--upstream', 'http://127.0.0.1:4000/api', '--issuer', 'https://login.example.com', '--offline']
  t.match(await scene.init(...args), { code: 1, stderr: `error: ${draft} exists already: remove it` })
  t.equal(readFileSync(draft, 'utf8'), 'mine')
  t.notOk(scene.isWritten())
  rmSync(draft)
  t.match(await scene.init(...args), { code: 0 })
  t.same(readdirSync(scene.folder), ['threadwarden.yaml'], 'nor is one left')
})

void test('stdout gets the configuration alone', async (t) => {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  const scene = initScene(t)
  const { code, stdout, stderr } = await scene.init('--upstream', `${upstream.url}/api`, '--issuer', issuer.url, '--out', '-')
  t.equal(code, 0)
  writeFileSync(scene.file, stdout)
  t.match(scene.written(), { version: 1, upstream: { url: upstream.url } })
  t.match(stderr, /Found out:\n/)
})

void test('a header is sent and stays in its file, which the configuration names from its own folder', async (t) => {
  const issuer = await plainIssuer(t)
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answerQuestions((request, response) =>
    json(
      request.target.endsWith('/info') ? INFO : { threads: [] },
      request.headers.get('x-key')?.[0] === 'open sesame' ? 200 : 401,
    )(request, response),
  )
  const scene = initScene(t)
  const args = ['--upstream', `${upstream.url}/api`, '--issuer', issuer.url]
  const without = await scene.init(...args)
  t.match(without, { code: 1, stderr: /requires a credential: GET \/api\/info answered 401\n.*--upstream-header/ })
  const secret = join(scene.folder, 'key.txt')
  writeFileSync(secret, 'open sesame\n')
  const { code, stdout, stderr } = await scene.init(...args, '--upstream-header', `X-Key=${secret}`)
  t.match({ code, stderr }, { code: 0, stderr: '' })
  t.match(scene.written(), { upstream: { headers: { 'x-key': `\${file:${secret}}` } } })
  t.notMatch(stdout + scene.text(), 'sesame')
  await isAccepted(t, scene)
})

void test('values of the operator are written as values', async (t) => {
  const audience = `a: "b'c"\n# d: [e] &f *g !h`
  const scene = initScene(t)
  const { code } = await scene.init(
    ...['--offline', '--upstream', 'http://127.0.0.1:4000', '--issuer', 'https://login.example.com', '--issuer-id', 'on'],
    ...['--audience', audience, '--audience', 'true', '--origin', 'https://app.example.com', '--store', 'sqlite:./a: b.db'],
  )
  t.equal(code, 0)
  t.match(scene.written(), {
    upstream: { basePath: '/api/copilotkit' },
    cors: { origins: ['https://app.example.com'] },
    authentication: { issuers: { on: { audiences: [audience, 'true'] } } },
    ownership: { store: 'sqlite:./a: b.db' },
  })
})

void test('an upstream on another machine is a warning until it requires a header', async (t) => {
  const scene = initScene(t)
  const args = ['--offline', '--upstream', 'https://runtime.internal/api', '--issuer', 'https://login.example.com/']
  const { code, stdout } = await scene.init(...args)
  t.equal(code, 0)
  t.match(stdout, /Warnings, as of threadwarden validate:\n.*threadwarden\.yaml:\d+: upstream\.url: is on another machine/)
  writeFileSync(join(scene.folder, 'token'), 'x'.repeat(40))
  const safe = await scene.init(...args, '--force', '--upstream-header', `x-service-token=${join(scene.folder, 'token')}`)
  t.notMatch(safe.stdout, 'Warnings')
})

void test('an invalid configuration is not written', async (t) => {
  const scene = initScene(t)
  const args = ['--offline', '--upstream', 'http://127.0.0.1:4000/a%20b', '--issuer', 'http://login.example.com/']
  const { code, stderr } = await scene.init(...args, '--origin', 'app.example.com')
  t.equal(code, 1)
  for (const path of ['upstream.basePath', 'cors.origins.0', 'authentication.issuers.corp.issuer']) {
    t.match(stderr, `error: ${scene.file}: ${path}: `)
  }
  t.notOk(scene.isWritten())
  t.match(await run(t, ['init', ...args, '--out', '-', '--origin', 'x']), { code: 1, stdout: '' })
})

const UPSTREAM = ['--upstream', 'http://127.0.0.1:4000']
const BOTH = [...UPSTREAM, '--issuer', 'https://login.example.com']

const WRONG: readonly (readonly [args: readonly string[], message: RegExp])[] = [
  [[], /--upstream URL and --issuer URL are required without a terminal/],
  [UPSTREAM, /are required without a terminal/],
  [['--upstream', 'ftp://x', '--issuer', 'https://x'], /--upstream must be a URL that begins with http/],
  [['--upstream', 'http://alice:geheim@x', '--issuer', 'https://x'], /--upstream contains a user name or a password/],
  [['--upstream', 'http://x/?a=1', '--issuer', 'https://x'], /--upstream has a query/],
  [[...UPSTREAM, '--issuer', 'https://alice:geheim@x'], /--issuer contains a user name or a password/],
  [[...UPSTREAM, '--issuer', 'https://x/${env:HOME}'], /--issuer contains a reference/],
  [[...BOTH, '--audience', '${file:/etc/passwd}'], /--audience contains a reference/],
  [[...BOTH, '--audience', ' '], /--audience is empty/],
  [[...BOTH, '--issuer-id', 'Corp!'], /--issuer-id must consist of/],
  [[...BOTH, '--agent', 'a/b'], /--agent must consist of/],
  [[...BOTH, '--agent', 'a', '--unknown-thread', 'verify'], /verify does not work with --agent/],
  [[...BOTH, '--unknown-thread', 'allow'], /--unknown-thread must be one of: claim, verify, deny/],
  [[...BOTH, '--store', 'postgres://a:geheim@db/x'], /--store contains a password/],
  [[...BOTH, '--timeout', '5'], /--timeout 5 is not a duration/],
  [[...BOTH, '--out', ''], /--out must name a file/],
  [[...BOTH, '--upstream-header', 'x-key'], /--upstream-header must be a header name, = and/],
  [[...BOTH, '--upstream-header', 'x-key=/no/such/file'], /--upstream-header \/no\/such\/file does not exist/],
  [[...BOTH, '--upstream-ca', import.meta.filename], /--upstream-ca .* holds no certificate/],
  [[...BOTH, '--offlin'], /Did you mean "--offline"/],
]

for (const [args, message] of WRONG) {
  void test(`wrong usage: ${args.slice(-2).join(' ')}`, async (t) => {
    const { code, stdout, stderr } = await run(t, ['init', ...args])
    t.match({ code, stdout }, { code: 2, stdout: '' })
    t.match(stderr, message)
    t.notMatch(stderr, 'geheim')
  })
}

void test('a file of a header that is not one value', async (t) => {
  const scene = initScene(t)
  const file = join(scene.folder, 'header')
  for (const content of ['', 'two\nlines', 'nul\0', 'x'.repeat(17 * 1024)]) {
    writeFileSync(file, content)
    const { code, stderr } = await scene.init(...BOTH, '--offline', '--upstream-header', `x-key=${file}`)
    t.equal(code, 2)
    t.notMatch(stderr, /lines|nul/)
  }
  t.equal(readFileSync(file).length, 17 * 1024)
})
