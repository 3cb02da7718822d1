/** The gateway itself, looked at from outside. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { startRuntime } from '../../examples/runtime.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { INFO, json, startUpstream } from '../../testing/support/upstream.ts'
import { bothAt, examined, hush } from './examination.ts'
import { startScene } from './gateway-scene.ts'

for (const mode of ['multi-route', 'single-route'] as const) {
  void test(`a gateway before a ${mode} runtime that is as it should be`, async (t) => {
    hush(t)
    const runtime = await startRuntime({ mode })
    t.teardown(() => runtime.close())
    const cors = { origins: ['https://app.example.com', 'https://other.example.com'] }
    const { gateway, signer, changes } = await startScene(t, runtime.url, { cors })
    await gateway.ready()
    const { of } = await examined(t, changes, { wishes: { token: signer.sign('alice') } })
    t.match(of('gateway.ready'), { level: 'ok', message: 'the gateway is ready' })
    t.match(of('gateway.authentication'), { level: 'ok', message: 'requests without a token get 401' })
    t.match(of('gateway.preflight'), {
      level: 'ok',
      message: 'preflights of https://app.example.com, https://other.example.com are admitted',
    })
    t.match(of('gateway.caller'), { level: 'ok', message: /by path and by envelope/ })
    t.match(of('gateway.run'), { level: 'unknown', message: /^not checked: only a run shows/, remedy: /--run AGENT/ })
    const without = await examined(t, changes)
    t.match(without.of('gateway.caller'), { level: 'unknown', message: /needs a token of a caller/, remedy: /--token-file/ })
  })
}

void test('a token that belongs in a cookie is sent there, as a page of the own origin does', async (t) => {
  hush(t)
  const runtime = await startRuntime()
  t.teardown(() => runtime.close())
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const corp = { ...(signer.authentication.issuers['corp'] as object), credential: { cookie: 'session' } }
  const listen = { host: '127.0.0.1', port: await freePort(), publicOrigins: ['https://chat.example.com'] }
  const { gateway, changes } = await startScene(t, runtime.url, { authentication: { issuers: { corp } }, listen })
  await gateway.ready()
  const whole = { ...changes, 'listen.publicOrigins': listen.publicOrigins, 'listen.host': listen.host }
  const { listen: _, ...rest } = whole as Record<string, unknown>
  const { of } = await examined(t, rest, { wishes: { token: signer.sign('alice') } })
  t.match(of('issuers.token'), { level: 'ok', message: /corp:alice/ })
  t.match(of('gateway.caller'), { level: 'ok', message: /by path and by envelope/ })
})

void test('a gateway that is not running is not checked, and that is said', async (t) => {
  const { of } = await examined(t, { 'listen.port': 1, 'health.port': 2, 'listen.host': '0.0.0.0', 'cors.origins': ['*'] })
  for (const check of ['ready', 'authentication', 'preflight']) {
    const message = /^not checked: nothing listens on http:\/\/127\.0\.0\.1:[12]/
    t.match(of(`gateway.${check}`), { level: 'unknown', message, remedy: 'start it with threadwarden serve' }, check)
  }
  const run = await examined(t, { 'listen.port': 1 }, { wishes: { token: 'x', run: { agentId: 'default', message: 'hello' } } })
  t.match(run.of('gateway.run'), { level: 'unknown', message: /nothing listens/ })
  const anywhere = await examined(t, { 'listen.port': 0, 'health.port': 0 })
  t.match(anywhere.of('gateway.authentication'), { level: 'unknown', message: /its port is 0/, remedy: /--url/ })
})

void test('a port that takes connections and says nothing is told in time', async (t) => {
  const server = createServer(() => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const { of } = await examined(t, bothAt(port), { wishes: { timeout: 200 } })
  for (const check of ['ready', 'authentication']) {
    t.match(of(`gateway.${check}`), { level: 'unknown', message: 'not checked: no answer within 200 ms' })
  }
})

void test('a gateway that waits for something is a problem, by the names of what it waits for', async (t) => {
  const upstream = await startUpstream(json({}))
  t.teardown(() => upstream.close())
  upstream.answerQuestions(json({}, 404))
  const { changes, signer } = await startScene(t, upstream.url)
  const { of } = await examined(t, changes, { wishes: { token: signer.sign('alice') } })
  t.match(of('gateway.ready'), {
    level: 'problem',
    message: /^the gateway is not ready: upstream: GET .* answered 404/,
    remedy: /health-and-readiness\.md/,
  })
  t.match(of('gateway.caller'), { level: 'problem', message: /GET \/info answers 503 \(not-ready\); POST .* answers 503/ })
})

void test('something else at the address of the gateway is a problem', async (t) => {
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { port } = new URL(upstream.url)
  const changes = { ...bothAt(Number(port)), 'cors.origins': ['https://app.example.com'] }
  const { of } = await examined(t, changes)
  t.match(of('gateway.ready'), { level: 'problem', message: /answered 200, but not as this gateway/ })
  t.match(of('gateway.authentication'), { level: 'problem', message: /without a token GET \/info answers 200, not 401; .* POST/ })
  t.match(of('gateway.preflight'), { level: 'problem', message: /a preflight of https:\/\/app\.example\.com answers 200/ })
})

for (const [title, headers, message] of [
  ['401 without WWW-Authenticate', {}, /GET \/info answers 401 without WWW-Authenticate; .* POST .* 401 without/],
  ['401 with it', { 'www-authenticate': 'Bearer' }, 'requests without a token get 401'],
] as const) {
  void test(`a stranger who gets ${title}`, async (t) => {
    const upstream = await startUpstream(json({}, 401, headers))
    t.teardown(() => upstream.close())
    upstream.answerQuestions(json({}, 401, headers))
    const { of } = await examined(t, { 'listen.port': Number(new URL(upstream.url).port) })
    t.match(of('gateway.authentication'), { level: 'www-authenticate' in headers ? 'ok' : 'problem', message })
  })
}

for (const [title, headers, message] of [
  ['another origin', { 'access-control-allow-origin': 'https://other.example.com' }, /is not allowed$/],
  ['no origin', {}, /is not allowed$/],
  ['no Authorization', { 'access-control-allow-origin': 'https://app.example.com' }, /does not allow the header Authorization$/],
] as const) {
  void test(`a preflight that admits ${title} is a problem`, async (t) => {
    const upstream = await startUpstream((_request, response) => void response.writeHead(204, headers).end())
    t.teardown(() => upstream.close())
    const changes = { 'listen.port': Number(new URL(upstream.url).port), 'cors.origins': ['https://app.example.com'] }
    t.match((await examined(t, changes)).of('gateway.preflight'), { level: 'problem', message })
  })
}

void test('a token that the gateway does not take is a problem, with the code of the refusal', async (t) => {
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { changes, signer, gateway } = await startScene(t, upstream.url)
  await gateway.ready()
  const { of } = await examined(t, changes, { wishes: { token: signer.sign('alice', { exp: 1 }) } })
  t.match(of('gateway.caller'), {
    level: 'problem',
    message: /GET \/info answers 401 \(credential-expired\)/,
    remedy: /errors\.md/,
  })
})

void test('origins that were added after the gateway had started are a problem', async (t) => {
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { changes } = await startScene(t, upstream.url, { cors: { origins: ['https://app.example.com'] } })
  const origins = ['https://app.example.com', 'https://new.example.com']
  const { of } = await examined(t, { ...changes, cors: { origins } })
  t.match(of('gateway.preflight'), {
    level: 'problem',
    message: /^a preflight of https:\/\/new\.example\.com answers 403$/,
    remedy: /restart/,
  })
})

void test('--url asks by another address, and a wrong path there is a problem', async (t) => {
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { base, gateway } = await startScene(t, upstream.url)
  await gateway.ready()
  const right = await examined(t, {}, { wishes: { url: base } })
  t.match(right.of('gateway.authentication'), { level: 'ok' })
  const wrong = await examined(t, { 'cors.origins': ['*'] }, { wishes: { url: `${upstream.url}/elsewhere` } })
  t.match(wrong.of('gateway.authentication'), { level: 'problem', message: /not 401/, remedy: /upstream\.publicPath/ })
})

for (const mode of ['optional', 'off'] as const) {
  void test(`in mode ${mode} what strangers get is said`, async (t) => {
    const upstream = await startUpstream(json(INFO))
    t.teardown(() => upstream.close())
    const signer = { mode }
    const { changes, gateway } = await startScene(t, upstream.url, mode === 'off' ? { authentication: signer } : {})
    await gateway.ready()
    const { of } = await examined(t, { ...changes, 'authentication.mode': mode })
    t.match(of('gateway.authentication'), {
      level: 'ok',
      message: new RegExp(`mode is ${mode}: without a token GET /info answers`),
    })
    t.match(of('gateway.caller'), { level: mode === 'off' ? 'ok' : 'unknown' })
  })
}

void test('a gateway with another configuration at the address is a problem, and never ok', async (t) => {
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { gateway, changes } = await startScene(t, upstream.url)
  await gateway.ready()
  const other = await examined(t, changes, { digest: 'another one' })
  t.match(other.of('gateway.ready'), { level: 'unknown', message: /another configuration/ })
  t.match(other.of('gateway.configuration'), { level: 'problem', message: /does not run with this configuration/, remedy: /./ })
  const same = await examined(t, changes)
  t.match(same.of('gateway.configuration'), { level: 'ok' })
})

void test('a proxy that refuses large bodies is a problem, where --url names it', async (t) => {
  const proxy = createServer((request, response) => {
    const isLarge = Number(request.headers['content-length'] ?? 0) > 1024 ** 2
    request.resume().on('end', () => response.writeHead(isLarge ? 413 : 401).end())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => proxy.close())
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/api/copilotkit`
  const { of } = await examined(t, {}, { wishes: { url } })
  t.match(of('gateway.bodies'), { level: 'problem', message: /refuses a body of 4MiB with 413/, remedy: /client_max_body_size/ })
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { gateway, base, changes } = await startScene(t, upstream.url)
  await gateway.ready()
  const direct = await examined(t, changes, { wishes: { url: base } })
  t.match(direct.of('gateway.bodies'), { level: 'ok' })
  t.same((await examined(t, changes)).each('gateway.bodies'), [], 'and is not asked where none is named')
})

void test('headers as large as the gateway takes pass the proxy before it, or the doctor says what refuses them', async (t) => {
  const proxy = createServer({ maxHeaderSize: 4096 }, (_request, response) => void response.writeHead(401).end())
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => proxy.close())
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/api/copilotkit`
  const { of } = await examined(t, {}, { wishes: { url } })
  t.match(of('gateway.headers'), {
    level: 'problem',
    message: /refuses headers of 15KiB with 431/,
    remedy: /large_client_header_buffers/,
  })
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { gateway, base, changes } = await startScene(t, upstream.url)
  await gateway.ready()
  t.match((await examined(t, changes, { wishes: { url: base } })).of('gateway.headers'), { level: 'ok' })
  t.same((await examined(t, changes)).each('gateway.headers'), [], 'and is not asked where none is named')
})

void test('keys that the running gateway dropped are told, with where their names are', async (t) => {
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { gateway, signer, changes } = await startScene(t, upstream.url)
  await gateway.ready()
  const before = await examined(t, changes)
  t.same(before.each('gateway.dropped'), [])
  const messages = [{ id: 'm1', role: 'user', content: 'x', secret: 1 }]
  const body = runInput('t1', 'x', { messages, context: [{ description: 'd', value: 'v', secret: 1 }] })
  const url = `${gateway.url}/api/copilotkit/agent/default/run`
  await call(url, { token: signer.sign('alice'), body })
  const { of } = await examined(t, changes)
  t.match(of('gateway.dropped'), { level: 'warning', message: /sent 2 keys inside runs/, remedy: /the log of the gateway/ })
  await call(url, { token: signer.sign('alice'), body: runInput('t2', 'x', { config: {} }) })
  const { each } = await examined(t, changes)
  t.match(each('gateway.dropped'), [{ level: 'warning' }, { level: 'ok', message: /dropped 1 body fields/ }])
})
