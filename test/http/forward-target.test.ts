/** What goes upstream is written from what was understood: path from the route, query by name, Host from configuration. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { firstAnswer, head, sendRaw } from '../support/raw.ts'
import { events, json } from '../support/upstream.ts'

void test('the target is rebuilt from the route and its ids, in one spelling', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('chat:1') })
  upstream.answer(json({ messages: [] }))
  for (const spelling of ['chat:1', 'chat%3A1']) await call(`${base}/threads/${spelling}/messages`, { token: alice })
  t.same(
    upstream.requests.map(({ method, target }) => `${method} ${target}`),
    [
      'POST /api/copilotkit/agent/default/run',
      'GET /api/copilotkit/threads/chat%3A1/messages',
      'GET /api/copilotkit/threads/chat%3A1/messages',
    ],
  )
})

void test('of the query only names that the route knows go on, encoded anew', async (t) => {
  const { base, alice, upstream } = await gated(t, json({ threads: [] }))
  await call(`${base}/threads?x=1&includeArchived=tr%75e&agentId=%64efault&token=t&skillsPage=2`, { token: alice })
  await call(`${base}/info?agentId=default&cursor=c`, { token: alice })
  t.same(
    upstream.requests.map(({ target }) => target),
    ['/api/copilotkit/threads?includeArchived=true&agentId=default', '/api/copilotkit/info'],
  )
})

void test('a target with two readings never arrives, in any spelling', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  for (const target of [
    '/api/copilotkit/x/../info',
    '/api/copilotkit/%2e%2e/info',
    '/api/copilotkit//info',
    '/api/copilotkit/info/',
    '/api/copilotkit\\info',
    '/api/copilotkit/%69nfo',
    '/api/copilotkit/info#x',
    '/api/copilotkit/info;x=1',
    '/api/copilotkit/threads/a%2Fb/messages',
    '/api/copilotkit/threads/a%252Fb/messages',
    'http://127.0.0.1/api/copilotkit/info',
    '//127.0.0.1/api/copilotkit/info',
    '/api/copilotkit/threads?limit=1&limit=2',
  ]) {
    const text = await sendRaw(
      gateway.url,
      head(`GET ${target} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${alice}`, 'Connection: close'),
    )
    t.equal(firstAnswer(text).status, 400, target)
    t.match(firstAnswer(text).body, '"code":"target-malformed"', target)
  }
  t.same(upstream.requests, [])
})

void test('Host is the one of the configuration, whatever the caller says', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  await sendRaw(
    gateway.url,
    head('GET /api/copilotkit/info HTTP/1.1', 'Host: evil.example', `Authorization: Bearer ${alice}`, 'Connection: close'),
  )
  t.same(upstream.requests[0]?.headers.get('host'), [new URL(upstream.url).host])
})

void test('callers find the routes under publicPath, the upstream under basePath', async (t) => {
  const { gateway, alice, upstream } = await gated(t, json({}), {
    config: { upstream: { basePath: '/internal/ck', publicPath: '/chat' } },
  })
  t.equal((await call(`${gateway.url}/chat/info`, { token: alice })).status, 200)
  for (const path of ['/internal/ck/info', '/info', '/chat/chat/info', '/Chat/info']) {
    t.equal(codeOf(await call(`${gateway.url}${path}`, { token: alice })), 'not-found', path)
  }
  t.same(
    upstream.requests.map(({ target }) => target),
    ['/internal/ck/info'],
  )
})

void test('either path may be the root', async (t) => {
  const rooted = await gated(t, json({}), { config: { upstream: { basePath: '/', publicPath: '/chat' } } })
  t.equal((await call(`${rooted.gateway.url}/chat/info`, { token: rooted.alice })).status, 200)
  t.equal(rooted.upstream.requests[0]?.target, '/info')

  const both = await gated(t, json({}), { config: { upstream: { basePath: '/' } } })
  t.equal((await call(`${both.gateway.url}/info`, { token: both.alice })).status, 200)
  t.equal((await call(both.gateway.url, { token: both.alice, body: { method: 'info' } })).status, 200, 'the base is /')
  t.equal((await call(`${both.gateway.url}/x/info`, { token: both.alice })).status, 404)
  t.same(
    both.upstream.requests.map(({ target }) => target),
    ['/info', '/info'],
  )
})
