/** `threadwarden doctor` before a LangGraph server. */
import { test, type Test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { LANGGRAPH } from '../../src/core/route/transport.ts'
import { listedThreads } from '../../src/http/upstream/startup-checks.ts'
import { openUpstream } from '../../src/http/upstream/upstream.ts'
import type { Changes } from '../../testing/support/configuration.ts'
import { json, startUpstream, type Answering } from '../../testing/support/upstream.ts'
import { examined } from '../doctor/examination.ts'
import { graphsAt, startAdopted, startBefore } from './adopted.ts'

const VERIFY = { 'ownership.unknownThread': 'verify' }
const CLAIM = { 'ownership.unknownThread': 'claim' }

/** The findings of a check about the server. */
async function found(t: Test, url: string, changes: Changes = {}) {
  const { of, all } = await examined(t, graphsAt(url, { ...VERIFY, ...changes }), { wishes: { timeout: 20_000 } })
  return { of: (check: string) => of(`${check}:graphs`), all }
}

void test('a real server', async (t) => {
  const server = await startAdopted(t)
  const upstream = openUpstream({ url: server.url, timeouts: { connect: 2000, headers: 0, body: 0 } })
  t.teardown(() => upstream.close())
  const counted = () => listedThreads({ upstream, basePath: '' }, LANGGRAPH, {}, AbortSignal.timeout(30_000))

  await t.test('without threads', async (t) => {
    const { of, all } = await found(t, server.url)
    t.match(of('upstream.reachable'), { level: 'ok' })
    t.match(of('upstream.server'), { level: 'ok', message: 'a LangGraph server' })
    t.match(of('upstream.version'), { level: 'ok', message: /^LangGraph server 1\.3\.0: this gateway is tested/ })
    t.match(of('upstream.search'), { level: 'unknown', message: /lists no threads, so it is not known/ })
    t.match(of('upstream.studio'), { level: 'ok', message: /authenticates no callers/ })
    t.match(of('upstream.exposure'), { level: 'ok' })
    t.match(of('upstream.histories'), { level: 'ok', message: /verify works/ })
    t.notOk(
      all.some(({ check }) => /^upstream\.(?:runtime|routes|debug|streams)/.test(check)),
      'nothing that a runtime has',
    )
    t.equal(await counted(), 0, 'the doctor creates nothing')
  })

  const old = await server.begin({})

  await t.test('with threads', async (t) => {
    const { of } = await found(t, server.url, CLAIM)
    t.match(of('upstream.search'), { level: 'ok', message: 'the search of the server heeds ids' })
    t.match(of('upstream.threads'), {
      level: 'warning',
      message: `the ownership table has no thread of this upstream; threads of the upstream without an owner: 1 of 1 (for example ${old}). The first user who runs one of them owns it`,
    })
    t.equal(await counted(), 1, 'the doctor creates nothing')
  })

  await t.test('at two upstreams with scopes of their own', async (t) => {
    const second = await startServer(t, json([{ thread_id: old }]))
    const both = graphsAt(server.url, { ...VERIFY, 'upstreams.more': { kind: 'langgraph', url: second.url } })
    const { each } = await examined(t, both, { wishes: { timeout: 20_000 } })
    t.match(each('threads.apart:more'), [{ level: 'problem', message: /lists threads that upstreams\.graphs also lists \(1\)/ }])
  })

  await t.test('behind a gateway that runs', async (t) => {
    const changes = graphsAt(server.url, VERIFY)
    const gateway = await startBefore(t, changes)
    const { each } = await examined(t, changes, { wishes: { timeout: 20_000, url: `${gateway.url}/graphs` } })
    t.match(each('gateway.authentication:graphs'), [{ level: 'ok', message: 'requests without a token get 401' }])
    t.match(each('gateway.bodies'), [{ level: 'ok' }])
    t.match(each('gateway.caller:graphs'), [{ level: 'unknown' }])
    const token = gateway.token('alice')
    const withToken = await examined(t, changes, { wishes: { timeout: 20_000, url: `${gateway.url}/graphs`, token } })
    t.match(withToken.each('gateway.caller:graphs'), [{ level: 'ok', message: 'a caller gets the answer of the server' }])
    const run = { agentId: 'notes', message: 'hello' }
    const running = await examined(t, changes, { wishes: { timeout: 20_000, token, run, url: `${gateway.url}/graphs` } })
    t.match(running.each('gateway.run'), [{ level: 'unknown', message: /--run is for runtimes and agents/ }])
  })
})

for (const [studio, level, message] of [
  [false, 'ok', /its way for Studio is closed/],
  [true, 'warning', /lets Studio in without a token/],
] as const) {
  void test(`a real server that authenticates callers is ${level} ${studio ? 'with' : 'without'} a way for Studio`, async (t) => {
    const issuer = await startIssuer()
    t.teardown(() => issuer.close())
    const server = await startAdopted(t, { handler: 'auth.ts', studio, environment: { ISSUER_URL: issuer.issuer } })
    const { of } = await found(t, server.url)
    t.match(of('upstream.server'), { level: 'ok' })
    t.match(of('upstream.studio'), { level, message })
    t.match(of('upstream.search'), { level: 'unknown', message: /requires a token of a caller/ })
  })
}

/** A server that answers as version 1.3.0 unless the test says otherwise. */
async function startServer(t: Test, answering: Answering) {
  const answer: Answering = (request, response) => {
    if (request.target === '/info') return json({ version: '1.3.0', flags: {} })(request, response)
    if (request.target === '/ok') return json({ ok: true })(request, response)
    return answering(request, response)
  }
  const upstream = await startUpstream(answer)
  t.teardown(() => upstream.close())
  upstream.answerQuestions(answer)
  return upstream
}

const THREAD = '0198c0de-0000-7000-8000-000000000001'

for (const [title, answering, level, message] of [
  ['ignores ids', json([{ thread_id: THREAD }]), 'problem', /ignores ids: it gave a thread for a random id/],
  ['does not take ids', json({ detail: 'no' }, 422), 'problem', /does not take a search for ids: it answered 422/],
] as const) {
  void test(`a server whose search ${title} is a ${level}`, async (t) => {
    const server = await startServer(t, answering)
    t.match((await found(t, server.url)).of('upstream.search'), { level, message })
  })
}

void test('a server that fails for Studio leaves it unknown', async (t) => {
  const server = await startServer(t, (request, response) =>
    json([], request.headers.get('x-auth-scheme')?.[0] === 'langsmith' ? 500 : 401)(request, response),
  )
  const expected = { level: 'unknown', message: /answered a search as of Studio with 500/ }
  t.match((await found(t, server.url)).of('upstream.studio'), expected)
})

void test('a version that was not tested, and what is no LangGraph server', async (t) => {
  for (const [version, level, message] of [
    ['1.4.0', 'warning', /^LangGraph server 1\.4\.0 is newer than 1\.3\.0/],
    ['0.7.2', 'unknown', /^LangGraph server 0\.7\.2: this gateway is tested with 1\.3\.0/],
  ] as const) {
    const upstream = await startUpstream(json({ version, flags: {} }))
    t.teardown(() => upstream.close())
    upstream.answerQuestions(json({ version, flags: {} }))
    t.match((await found(t, upstream.url)).of('upstream.version'), { level, message })
  }
  const other = await startUpstream(json({}, 404))
  t.teardown(() => other.close())
  other.answerQuestions(json({}, 404))
  const { of } = await found(t, other.url)
  t.match(of('upstream.server'), {
    level: 'problem',
    message: /^it is not a LangGraph server: GET \/info answered 404, and GET \/ok 404$/,
    remedy: /upstreams\.graphs\.url and upstreams\.graphs\.basePath/,
  })
  t.match(of('upstream.search'), { level: 'unknown', message: /did not answer as a LangGraph server/ })
  const away = await found(t, 'http://127.0.0.1:1')
  t.match(away.of('upstream.reachable'), { level: 'problem', remedy: /^start the server/ })
  t.match(away.of('upstream.server'), { level: 'unknown', message: /got no answer/ })
})
