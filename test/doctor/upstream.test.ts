/** What the upstream is, and why it can't be told where it can't. */
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { NEWEST_TESTED } from '../../src/core/route/runtime-version.ts'
import { RUNTIMES, start } from '../contract/runtimes.ts'
import { INFO, json, startUpstream, type Answering } from '../../testing/support/upstream.ts'
import { examined, hush } from './examination.ts'

for (const name of RUNTIMES) {
  for (const mode of ['multi-route', 'single-route'] as const) {
    void test(`${name} is told to be ${mode}, of a version that is known`, async (t) => {
      hush(t)
      const runtime = await start(t, name, mode)
      const { of } = await examined(t, { 'upstream.url': runtime.url })
      t.match(of('upstream.reachable'), { level: 'ok', message: `${runtime.url} answers` })
      t.match(of('upstream.runtime'), { level: 'ok', message: `a ${mode} runtime with its own thread store and 1 agent` })
      t.match(of('upstream.version'), { level: 'ok', message: new RegExp(`^runtime ${name.slice(0, 4)}\\.`) })
    })
  }
}

/** What an upstream that answers all questions in one way is told to be. */
async function told(t: Parameters<typeof examined>[0], answering: Answering, changes = {}, wishes = {}) {
  const upstream = await startUpstream(answering)
  t.teardown(() => upstream.close())
  upstream.answerQuestions(answering)
  return { upstream, ...(await examined(t, { 'upstream.url': upstream.url, ...changes }, { wishes })) }
}

for (const version of ['1.75.1', '1.76.0', '1.76.0-next.1', '2.0.0', '1.750.0']) {
  void test(`version ${version} is newer than the newest tested one`, async (t) => {
    const { of } = await told(t, json({ ...INFO, version }))
    t.match(of('upstream.version'), {
      level: 'warning',
      message: `runtime ${version} is newer than ${NEWEST_TESTED}, the newest version that this gateway is tested with`,
      remedy: /docs\/how-to\/operate\/new-runtime-version\.md/,
    })
  })
}

for (const version of ['1.53.9', '1.74.0']) {
  void test(`version ${version} is not tested`, async (t) => {
    const { of } = await told(t, json({ ...INFO, version }))
    t.match(of('upstream.version'), {
      level: 'unknown',
      message: /tested with 1\.54, 1\.57, 1\.61, 1\.62, 1\.66, 1\.69, 1\.72, 1\.75$/,
      remedy: /docs\/reference\/runtime-versions\.md/,
    })
  })
}

void test('another patch of a tested version is tested', async (t) => {
  const { of } = await told(t, json({ ...INFO, version: '1.72.9' }))
  t.match(of('upstream.version'), { level: 'ok', message: 'runtime 1.72.9: this gateway is tested with this version' })
})

const FORWARDED = { forwardHeaders: ['x-tenant', 'accept-language'] }

for (const [version, level, message] of [
  [
    '1.54.1',
    'warning',
    /runtime 1\.54\.1 lets headers of a caller replace those of an agent in the runtime, and the gateway forwards x-tenant$/,
  ],
  ['1.62.2', 'warning', /forwards x-tenant$/],
  ['1.62.3', 'ok', /the headers of an agent in the runtime win/],
  ['1.100.0', 'ok', /win/],
  ['2.0.0', 'ok', /win/],
] as const) {
  void test(`with runtime ${version}, a forwarded header is ${level}`, async (t) => {
    const { of } = await told(t, json({ ...INFO, version }), FORWARDED)
    t.match(of('upstream.headers'), { level, message })
  })
}

void test('a version that does not look like one is not printed with its headers', async (t) => {
  const { of, all } = await told(t, json({ ...INFO, version: '1.54.1\u001b[31m<b>' }), FORWARDED)
  t.match(of('upstream.headers'), { level: 'unknown', message: 'the upstream does not tell its version' })
  t.notMatch(JSON.stringify(all), '<b>')
})

void test('without a forwarded x-* header, an old runtime is no risk', async (t) => {
  const { of } = await told(t, json({ ...INFO, version: '1.54.1' }))
  t.match(of('upstream.headers'), { level: 'ok', message: /the gateway forwards none$/ })
})

void test('what an upstream calls its version is printed only if it looks like one', async (t) => {
  const { of, all } = await told(t, json({ ...INFO, version: 'x\u001b[31m<b>' }))
  t.match(of('upstream.version'), { level: 'unknown', message: 'the upstream does not tell its version' })
  t.notMatch(JSON.stringify(all), /<b>/)
})

void test('a transport that is named and is another is a problem', async (t) => {
  hush(t)
  const runtime = await start(t, '1.75 node', 'single-route')
  const { of } = await examined(t, { 'upstream.url': runtime.url, 'upstream.transport': 'multi-route' })
  t.match(of('upstream.runtime'), {
    level: 'problem',
    message: /says multi-route, but the upstream is single-route/,
    remedy: 'write upstream.transport: single-route, or auto',
  })
})

void test('an upstream that is no runtime is a problem, and what depends on it is not checked', async (t) => {
  const { of } = await told(t, json({ hello: 'world' }, 404))
  t.match(of('upstream.reachable'), { level: 'ok' })
  t.match(of('upstream.runtime'), { level: 'problem', message: /neither a multi-route/, remedy: /upstream\.basePath/ })
  for (const check of ['version', 'routes', 'cors', 'histories', 'threads', 'streams']) {
    t.match(
      of(`upstream.${check}`),
      { level: 'unknown', message: /^not checked: the upstream did not show what kind of runtime it is/ },
      check,
    )
  }
})

void test('an upstream that wants a credential is a problem, unless the transport is named', async (t) => {
  const first = await told(t, json({}, 401))
  t.match(first.of('upstream.runtime'), { level: 'problem', message: /answered 401/, remedy: /credential.*upstream\.transport/ })
  const second = await told(t, json({}, 401), { 'upstream.transport': 'single-route' })
  t.match(second.of('upstream.runtime'), { level: 'unknown', message: /uses upstream\.transport: single-route/ })
})

void test('the questions carry what the configuration says that the gateway sends', async (t) => {
  const { upstream, of } = await told(
    t,
    (request, response) => json(INFO, request.headers.get('x-key')?.[0] === 'opensesame' ? 200 : 401)(request, response),
    { 'upstream.headers': { 'X-Key': 'opensesame' } },
  )
  t.match(of('upstream.runtime'), { level: 'ok' })
  t.ok([...upstream.requests, ...upstream.questions].every(({ headers }) => headers.has('x-key')))
})

void test('an upstream that is not there', async (t) => {
  const { of } = await examined(t, { 'upstream.url': 'http://127.0.0.1:1' })
  t.match(of('upstream.reachable'), {
    level: 'problem',
    message: 'nothing listens on http://127.0.0.1:1',
    remedy: /start the runtime/,
  })
  t.match(of('upstream.runtime'), { level: 'unknown', message: /^not checked: GET .* got no answer \(ECONNREFUSED\)/ })
})

void test('an upstream whose name nobody knows', async (t) => {
  const { of } = await examined(t, { 'upstream.url': 'http://runtime.invalid:4000' })
  t.match(of('upstream.reachable'), { level: 'problem', message: /host name .* cannot be resolved/, remedy: /DNS/ })
})

void test('an upstream that speaks no TLS, or no HTTP', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const tls = await examined(t, { 'upstream.url': upstream.url.replace('http:', 'https:') })
  t.match(tls.of('upstream.reachable'), { level: 'problem', message: /does not use TLS/, remedy: /http:\/\// })
  const server = createServer((socket) => socket.end('220 mail.example.com ESMTP\r\n').on('error', () => {}))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  const mail = await examined(t, { 'upstream.url': `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  t.match(mail.of('upstream.reachable'), { level: 'problem', message: /without an HTTP answer/ })
})

void test('an upstream that never answers is told so in time, and what has nothing to do with it is checked', async (t) => {
  const { of } = await told(t, () => {}, {}, { timeout: 200 })
  t.match(of('upstream.reachable'), { level: 'problem', message: /gives no answer within 200 ms/ })
  t.match(of('upstream.runtime'), { level: 'unknown', message: 'not checked: no answer within 200 ms' })
  t.match(of('store.file'), { level: 'ok' })
  t.match(of('issuers.keys'), { level: 'ok' })
  t.match(of('gateway.ready'), { level: 'unknown', message: /its port is 0/ })
})
