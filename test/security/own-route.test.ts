/**
 * The gateway's own route lies below the same base path as the runtime's, and the runtime looks at the end of a path alone
 * (runtime-behaviour.md, "Targets and ids"). However it is spelled, whoever asks and whatever the base path: it is answered here or refused here, and no
 * byte of it reaches the upstream; nor does it take anything of the runtime's away.
 */
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { gateBefore, gated, type Gated } from '../../testing/support/gated.ts'
import { MULTI_ROUTE, type Pair } from '../../testing/support/pair.ts'
import { testEachUpstream } from '../../testing/support/pairs.ts'
import { openRaw, type RawRequest } from '../../testing/support/raw.ts'
import { OWNERS_SHARE } from '../../testing/support/sharing.ts'
import { json } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { codeIn } from './thread-routes.ts'

/** A gateway, and everything that its upstream was sent for a caller. */
interface Tapped extends Gated {
  /** What stood in the requests that came with a request id: the gateway's own questions have none. */
  readonly heard: () => string
}

/** Starts it before a socket that keeps every byte; t1 is alice's. */
async function tapped(t: Test, pair: Pair, upstream: object): Promise<Tapped> {
  let text = ''
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      socket.write('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n')
    })
    t.teardown(() => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const gate = await gateBefore(t, url, { pair, policy: OWNERS_SHARE, config: { upstream } })
  const store = await openSqliteStore(join(gate.gateway.folder, 'ownership.db'))
  await store.assign({ scope: '', threadId: 't1' }, 'corp:alice', 0)
  await store.close()
  return { ...gate, heard: () => (/x-request-id/i.test(text) ? text : '') }
}

/** The public base paths, with the configuration that makes them. */
const PLACES: readonly (readonly [base: string, upstream: object])[] = [
  ['/api/copilotkit', {}],
  ['', { basePath: '/' }],
  ['', { basePath: '/api/copilotkit', publicPath: '/' }],
  ['/threadwarden', { basePath: '/threadwarden' }],
  ['/x/threadwarden', { basePath: '/api/copilotkit', publicPath: '/x/threadwarden' }],
  ['/threadwarden/threads', { basePath: '/threadwarden/threads' }],
  ['/api/copilotkit', { basePath: '/', publicPath: '/api/copilotkit' }],
]

/** What comes close to the route, below the base path, and is refused for the way it is written. */
const MALFORMED = [
  '//threadwarden/threads/t1/grants',
  '/threadwarden//threads/t1/grants',
  '/threadwarden/threads//grants',
  '/threadwarden/threads/t1//grants',
  '/threadwarden/threads/t1/grants/',
  '/threadwarden/threads/t1/grants//',
  '/threadwarden%2fthreads/t1/grants',
  '/threadwarden/threads%2Ft1/grants',
  '/threadwarden/threads/t1%2fgrants',
  '/threadwarden%2fthreads%2ft1%2fgrants',
  '/threadwarden/threads/t1/grants%2f',
  '/%74hreadwarden/threads/t1/grants',
  '/threadwarden/threads/t1/%67rants',
  '/threadwarden/threads/%741/grants',
  '/threadwarden/threads/t1/grants%00',
  '/threadwarden/threads/t1/grants%20/',
  '/threadwarden/./threads/t1/grants',
  '/threadwarden/threads/t1/./grants',
  '/threadwarden/threads/x/../t1/grants',
  '/threadwarden/threads/t1/grants/..',
  '/threadwarden/threads/t1/grants/../messages',
  '/threads/t1/messages/../../../threadwarden/threads/t1/grants',
  '/threadwarden/%2e%2e/threads/t1/messages',
  '/threadwarden/threads/t1/grants;/messages',
  '/threadwarden;x=1/threads/t1/grants',
  '/threadwarden\\threads/t1/grants',
  '/threadwarden/threads/t1\\grants',
  '/threadwarden/threads/t1/grants#/messages',
  '/threadwarden/threads/t1/grants?agentId=a&agentId=b',
] as const

/** What names no thread. */
const NO_THREAD = [
  '/threadwarden/threads/clear/grants',
  '/threadwarden/threads/threads/grants',
  '/threadwarden/threads/MESSAGES/grants',
  '/threadwarden/threads/-t1/grants',
] as const

/** What is no route, though it begins or ends like one. */
const UNKNOWN = [
  '/threadwarden',
  '/threadwarden/threads',
  '/threadwarden/threads/t1',
  '/threadwarden/grants',
  '/threadwarden/t1/grants',
  '/threadwarden/info',
  '/threadwarden/threads/clear',
  '/threadwarden/threads/t1/messages',
  '/threadwarden/threads/t1/events',
  '/threadwarden/threads/t1/archive',
  '/threadwarden/agent/default/run',
  '/threadwarden/threads/t1/grants/messages',
  '/threadwarden/threads/t1/grants/threads/t1/messages',
  '/threadwarden/threads/t1/grants/info',
  '/threadwarden/threads/t1/grants/corp:bob',
  '/threadwarden/threadwarden/threads/t1/grants',
  '/x/threadwarden/threads/t1/grants',
  '/threads/threadwarden/threads/t1/grants',
  '/agent/threadwarden/threads/t1/grants',
  '/threads/t1/grants',
  '/threads/t1/threadwarden/grants',
  '/grants',
  '/Threadwarden/threads/t1/grants',
  '/THREADWARDEN/threads/t1/grants',
  '/threadwarden/Threads/t1/grants',
  '/threadwarden/threads/t1/Grants',
  '/threadwarden/threads/t1/GRANTS',
  '/threadwarden.json/threads/t1/grants',
  '/threadwarden/threads/t1/grants.json',
] as const

const GRANT = '{"user":"corp:bob","right":"read"}'
const METHODS: readonly (readonly [method: string, body?: string])[] = [
  ['GET'],
  ['POST', GRANT],
  ['DELETE', '{"user":"corp:bob"}'],
]

void testEachUpstream('whatever the base path, it is answered here', async (t, pair) => {
  for (const [base, config] of PLACES) {
    const { gateway, alice, bob, heard } = await tapped(t, pair, config)
    const target = `${base}/threadwarden/threads/t1/grants`
    const send = (request: Partial<RawRequest>) => gateway.ask({ target, token: alice, ...request })
    t.match(await send({}), { status: 200, body: '{"grants":[]}' }, base)
    t.match(await send({ body: GRANT }), { status: 201 }, base)
    t.match(await send({ target: `${target}?agentId=default&x=1&limit=1` }), { status: 200, body: /"user":"corp:bob"/ })
    for (const method of ['HEAD', 'PUT', 'PATCH', 'OPTIONS', 'TRACE', 'get', 'GRANTS']) {
      const { status } = await send({ method })
      t.ok(status === 405 || status === 400, `${method}: ${status}`)
    }
    t.equal((await send({ lines: ['X-HTTP-Method-Override: DELETE', 'X-Original-URL: /threads/t1/messages'] })).status, 200)
    t.match(await send({ token: bob }), { status: 403, body: /"not-owner"/ })
    t.equal((await gateway.ask({ target })).status, 401)
    t.equal((await gateway.ask({ target: `http://gateway.example${target}`, token: alice })).status, 400)
    t.match(await send({ method: 'DELETE', body: '{"user":"corp:bob"}' }), { status: 204 })
    t.equal(heard(), '', base)
  }
})

// What is refused for its spelling is refused before anybody looks at the upstream.
void test('however else it is spelled, it is refused here', async (t) => {
  for (const [base, config] of PLACES) {
    const { gateway, alice, heard } = await tapped(t, MULTI_ROUTE, config)
    for (const [paths, status, withoutToken] of [
      [MALFORMED, 400, 400],
      [NO_THREAD, 400, 401],
      [UNKNOWN, 404, 401],
    ] as const) {
      for (const path of paths) {
        const target = `${base}${path}`
        for (const [method, body] of METHODS) {
          const answer = await gateway.ask({ method, target, token: alice, ...(body === undefined ? {} : { body }) })
          t.equal(answer.status, status, `${method} ${target}`)
          t.not(codeIn(answer), undefined)
        }
        t.equal((await gateway.ask({ target })).status, withoutToken, target)
      }
    }
    const { body } = await gateway.ask({ target: `${base}/threadwarden/threads/t1/grants`, token: alice })
    t.equal(body, '{"grants":[]}', 'nothing was granted by any of it')
    t.equal(heard(), '', base)
  }
})

void testEachUpstream('no envelope reaches it, and none that is sent to it is opened', async (t, pair) => {
  const { gateway, alice, heard } = await tapped(t, pair, {})
  const base = '/api/copilotkit'
  const path = '/threadwarden/threads/t1/grants'
  const tunnel = (params: object, body?: unknown) => ({
    method: 'resource/request',
    params,
    ...(body === undefined ? {} : { body }),
  })
  for (const envelope of [
    { method: 'threads/grants', params: { threadId: 't1' } },
    { method: 'threads/grants', params: { threadId: 't1', httpMethod: 'GET', path } },
    { method: 'threadwarden/threads/grants', params: { threadId: 't1' } },
    { method: 'threadwarden', params: { threadId: 't1' } },
    tunnel({ path, httpMethod: 'GET' }),
    tunnel({ path, httpMethod: 'POST' }, JSON.parse(GRANT)),
    tunnel({ path, httpMethod: 'DELETE' }, { user: 'corp:bob' }),
    tunnel({ path: `${path}?agentId=default`, httpMethod: 'GET' }),
    tunnel({ path: `${base}${path}`, httpMethod: 'GET' }),
    tunnel({ path: `${path}/`, httpMethod: 'GET' }),
    tunnel({ path: `/${path}`, httpMethod: 'GET' }),
    tunnel({ path: '/threadwarden%2fthreads/t1/grants', httpMethod: 'GET' }),
    tunnel({ path: '/Threadwarden/threads/t1/grants', httpMethod: 'GET' }),
    tunnel({ path: '/threadwarden/threads/t1/messages', httpMethod: 'GET' }),
    tunnel({ path, httpMethod: 'PUT' }),
  ]) {
    const answer = await gateway.ask({
      target: base,
      token: alice,
      body: JSON.stringify(envelope),
      transport: 'multi-route',
    })
    t.ok([400, 404, 405].includes(answer.status), JSON.stringify(envelope))
    t.notMatch(answer.body, '"grants"')
  }
  const info = await gateway.ask({ target: `${base}${path}`, token: alice, body: '{"method":"info"}' })
  t.match(info, { status: 400, body: /"body-malformed"/ })
  t.match(await gateway.ask({ target: `${base}${path}`, token: alice }), { body: '{"grants":[]}' })
  t.equal(heard(), '')
})

void testEachUpstream('a request behind it on the same connection is one of its own', async (t, pair) => {
  const { gateway, alice, bob, heard } = await tapped(t, pair, {})
  const target = '/api/copilotkit/threadwarden/threads/t1/grants'
  const connection = await openRaw(gateway.url)
  const one = (token: string, body?: string): RawRequest => ({
    target,
    token,
    keepAlive: true,
    ...(body === undefined ? {} : { body }),
  })
  connection.write(Buffer.concat([one(alice, GRANT), one(bob, GRANT), one(alice)].map((request) => gateway.bytes(request))))
  await until(() => (connection.text().match(/HTTP\/1\.1 /g) ?? []).length === 3)
  t.same(
    [...connection.text().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
    ['201', '403', '200'],
  )
  connection.destroy()
  t.equal(heard(), '')
})

void testEachUpstream('it takes nothing of the runtime’s away, also below a base path of its name', async (t, pair) => {
  for (const basePath of ['/threadwarden', '/threadwarden/threads', '/x/threadwarden']) {
    const { base, call, alice, upstream } = await gated(t, json({ messages: [] }), {
      pair,
      policy: OWNERS_SHARE,
      config: { upstream: { basePath } },
    })
    if (pair.upstream === 'multi-route') {
      await call(`${base}/agent/threadwarden/run`, { token: alice, body: { threadId: 'threadwarden', runId: 'r' } })
      await call(`${base}/threads/threadwarden/messages`, { token: alice })
      t.same(
        upstream.requests.map(({ target }) => target),
        [`${basePath}/agent/threadwarden/run`, `${basePath}/threads/threadwarden/messages`],
      )
    }
    t.equal((await call(`${base}/info`, { token: alice })).status, 200)
  }
})
