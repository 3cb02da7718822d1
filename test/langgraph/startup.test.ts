/** What the gateway says at start of the LangGraph server behind it. */
import { test } from 'tap'
import { LANGGRAPH } from '../../src/core/route/transport.ts'
import { listedThreads } from '../../src/http/upstream/startup-checks.ts'
import { openUpstream } from '../../src/http/upstream/upstream.ts'
import { json, startUpstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { graphsAt, startAdopted, startBefore, type Started } from './adopted.ts'

const FIRST_USER = /THE FIRST USER TO RUN/
const ANSWERS = 'the LangGraph server answers'

const said = ({ lines }: Started, message: RegExp | string) =>
  lines.filter(({ msg }) => (typeof message === 'string' ? msg === message : message.test(String(msg))))

const CLAIM = { 'ownership.unknownThread': 'claim' }
const VERIFY = { 'ownership.unknownThread': 'verify' }

void test('at start', async (t) => {
  const server = await startAdopted(t)

  await t.test('the log names the kind and version of the server, and a metric has it', async (t) => {
    const gateway = await startBefore(t, graphsAt(server.url, VERIFY))
    await until(() => said(gateway, ANSWERS).length > 0)
    t.match(said(gateway, ANSWERS), [{ level: 'info', upstream: 'graphs', kind: 'langgraph', version: '1.3.0' }])
    const { text } = await gateway.health('/metrics')
    t.ok(text.split('\n').includes('threadwarden_runtime_info{upstream="graphs",version="1.3.0",tested="yes"} 1'))
  })

  const upstream = openUpstream({ url: server.url, timeouts: { connect: 2000, headers: 0, body: 0 } })
  t.teardown(() => upstream.close())
  const counted = () => listedThreads({ upstream, basePath: '' }, LANGGRAPH, {}, AbortSignal.timeout(30_000))
  t.equal(await counted(), 0, 'a server without threads gives nothing to warn of')

  for (let made = 0; made < 2; made += 1) await server.begin({})
  t.equal(await counted(), 2)

  await t.test('claim before threads without an owner is a warning with their number', async (t) => {
    const gateway = await startBefore(t, graphsAt(server.url, CLAIM))
    await until(() => said(gateway, FIRST_USER).length > 0)
    t.match(said(gateway, FIRST_USER), [
      { level: 'warn', upstream: 'graphs', threads: 2, msg: /has no thread of this upstream and the upstream has threads/ },
    ])
  })

  await t.test('verify is ready, without an error', async (t) => {
    const gateway = await startBefore(t, graphsAt(server.url, VERIFY))
    await until(async () => (await gateway.health('/readyz')).status === 200)
    t.same(
      gateway.lines.filter(({ level }) => level === 'error'),
      [],
    )
    t.same(said(gateway, FIRST_USER), [])
  })
})

void test('a server that is not there yet is waited for, and looked at when it answers', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answerQuestions(json({}, 503))
  const gateway = await startBefore(t, graphsAt(upstream.url, CLAIM))
  t.equal((await gateway.health('/readyz')).status, 503)
  await until(async () => (await gateway.health('/readyz')).text.includes('GET /info answered 503'))
  t.same(said(gateway, FIRST_USER), [], 'an unreachable server has not refused its list')
  upstream.answerQuestions((request, response) =>
    json(request.target === '/info' ? { version: '1.4.0', flags: {} } : [{ thread_id: 'a' }])(request, response),
  )
  await until(async () => (await gateway.health('/readyz')).status === 200)
  await until(() => said(gateway, FIRST_USER).length > 0)
  t.match(said(gateway, FIRST_USER), [{ threads: 1 }])
  t.match(said(gateway, /^the LangGraph server is newer than the version/), [
    { level: 'warn', version: '1.4.0', tested: '1.3.0' },
  ])
})

void test('a server that does not give its list is warned of', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answerQuestions((request, response) =>
    json(request.target === '/info' ? { version: '1.3.0', flags: {} } : {}, request.target === '/info' ? 200 : 401)(
      request,
      response,
    ),
  )
  const gateway = await startBefore(t, graphsAt(upstream.url, CLAIM))
  await until(() => said(gateway, FIRST_USER).length > 0)
  t.match(said(gateway, FIRST_USER), [{ msg: /did not give its list of threads/ }])
})
