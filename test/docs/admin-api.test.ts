/**
 * docs/reference/admin-api.md and docs/reference/admin-api.openapi.json: the running admin API has their paths and methods and no
 * others, and gives every documented status. Each answer in each test of the admin API has its schema (testing/support/admin.ts).
 */
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { test, type Test } from 'tap'
import { call, runInput, type Call } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { OPERATOR, startAdmin, type Admin } from '../../testing/support/admin.ts'
import { DOCUMENT, OPERATIONS, requireDocumented, TEXT } from '../../testing/support/admin-document.ts'
import { code, page, rows, section } from './markdown.ts'

const PAGE = page('docs/reference/admin-api.md')

const USER = 'corp:alice'
const BOB = { user: 'corp:bob', right: 'read' }

interface Ask extends Call {
  readonly path: string
  readonly status: number
}

const plain = { 'content-type': 'text/plain' }
const big = { user: 'x'.repeat(5000) }

/** What every operation that takes a body, or refuses one, is asked. */
const withBody = (path: string, method?: string): readonly Ask[] => {
  const more = method === undefined ? {} : { method }
  return [
    { path, status: 413, body: big, ...more },
    { path, status: 415, body: {}, headers: plain, ...more },
  ]
}

const GRANTS = '/threads/t1/grants'
const OWNER = '/threads/t1/owner'

/** The requests of each operation, in order. */
const REQUESTS: Readonly<Record<string, readonly Ask[]>> = {
  'GET /revocations': [{ path: '/revocations', status: 200 }],
  'POST /revocations': [
    { path: '/revocations', status: 201, body: { tokenId: 'j-1' } },
    { path: '/revocations', status: 201, body: { user: USER, before: '2026-01-31T12:00:00Z' } },
    { path: '/revocations', status: 400, body: { user: 'nobody:x' } },
    ...withBody('/revocations'),
  ],
  'DELETE /revocations/token/{id}': [
    { path: '/revocations/token/j-1', method: 'DELETE', status: 204 },
    { path: '/revocations/token/j-1', method: 'DELETE', status: 404 },
    { path: '/revocations/token/j-1', method: 'DELETE', status: 400, body: {} },
    ...withBody('/revocations/token/j-1', 'DELETE'),
  ],
  'DELETE /revocations/user/{id}': [
    { path: `/revocations/user/${USER}`, method: 'DELETE', status: 204 },
    { path: `/revocations/user/${USER}`, method: 'DELETE', status: 404 },
    { path: `/revocations/user/${USER}`, method: 'DELETE', status: 400, body: {} },
    ...withBody(`/revocations/user/${USER}`, 'DELETE'),
  ],
  'GET /threads': [
    { path: '/threads', status: 200 },
    { path: '/threads?deleted=yes', status: 400 },
  ],
  'POST /threads/{id}/owner': [
    { path: OWNER, status: 409, body: { user: USER, expected: 'corp:bob' } },
    { path: OWNER, status: 200, body: { user: USER } },
    { path: OWNER, status: 400, body: {} },
    ...withBody(OWNER),
  ],
  'DELETE /threads/{id}/owner': [
    { path: '/threads/t9/owner', method: 'DELETE', status: 404 },
    { path: '/threads/t8/owner', method: 'DELETE', status: 204 },
    { path: OWNER, method: 'DELETE', status: 400, body: {} },
    ...withBody(OWNER, 'DELETE'),
  ],
  'GET /threads/{id}': [
    { path: '/threads/t1', status: 200 },
    { path: '/threads/t1?scope=legal', status: 404 },
    { path: '/threads/t%201', status: 400 },
  ],
  'GET /threads/{id}/grants': [
    { path: GRANTS, status: 200 },
    { path: '/threads/t2/grants', status: 404 },
    { path: '/threads/t%201/grants', status: 400 },
  ],
  'POST /threads/{id}/grants': [
    { path: GRANTS, status: 201, body: BOB },
    { path: GRANTS, status: 200, body: BOB },
    { path: GRANTS, status: 201, body: { group: 'corp:support', right: 'write' } },
    { path: GRANTS, status: 400, body: { user: 'corp:bob' } },
    { path: '/threads/t2/grants', status: 404, body: BOB },
    ...withBody(GRANTS),
  ],
  'DELETE /threads/{id}/grants': [
    { path: GRANTS, method: 'DELETE', status: 204, body: { user: 'corp:bob' } },
    { path: GRANTS, method: 'DELETE', status: 404, body: { user: 'corp:bob' } },
    { path: GRANTS, method: 'DELETE', status: 400, body: {} },
    ...withBody(GRANTS, 'DELETE'),
  ],
  'GET /openapi.json': [{ path: '/openapi.json', status: 200 }],
  'POST /reload': [
    { path: '/reload', method: 'POST', status: 200 },
    { path: '/reload', method: 'POST', status: 409 },
    { path: '/reload', status: 400, body: {} },
    ...withBody('/reload'),
  ],
}

const WITHOUT_STORE = new Set(['POST /reload', 'GET /openapi.json'])

async function check(t: Test, ask: Admin['ask'], name: string, { path, status, ...options }: Ask): Promise<void> {
  const answer = await ask(path, options)
  const what = `${name}: ${status}`
  t.equal(answer.status, status, what, { answer: answer.text })
}

/** Of each operation, what is asked of a running gateway. */
const OF_GATEWAY: Readonly<Record<string, readonly Ask[]>> = {
  'GET /status': [{ path: '/status', status: 200 }],
  'GET /decisions': [
    { path: '/decisions', status: 200 },
    { path: '/decisions?limit=x', status: 400 },
  ],
  'GET /decisions/minutes': [{ path: '/decisions/minutes', status: 200 }],
  'GET /streams': [{ path: '/streams', status: 200 }],
  'GET /budgets': [
    { path: '/budgets?user=corp:alice', status: 200 },
    { path: '/budgets?user=corp:alice&group=corp:staff', status: 400 },
  ],
  'DELETE /streams/{id}': [
    { path: '/streams/ID', method: 'DELETE', status: 204 },
    { path: '/streams/ID', method: 'DELETE', status: 404 },
    { path: '/streams/ID', method: 'DELETE', status: 400, body: {} },
    ...withBody('/streams/ID', 'DELETE'),
  ],
  'GET /policy': [{ path: '/policy', status: 200 }],
  'GET /configuration': [{ path: '/configuration', status: 200 }],
  'POST /explain': [
    { path: '/explain', status: 200, body: { method: 'GET', target: '/' } },
    { path: '/explain', status: 404, body: { requestId: 'r' } },
    { path: '/explain', status: 400, body: {} },
    { path: '/explain', status: 413, body: { requestId: 'x'.repeat(70_000) } },
    { path: '/explain', status: 415, body: {}, headers: plain },
  ],
}

async function checkAll(t: Test, ask: Admin['ask'], requests: Readonly<Record<string, readonly Ask[]>>): Promise<void> {
  for (const [name, asks] of Object.entries(requests)) for (const one of asks) await check(t, ask, name, one)
  for (const [name, [one]] of Object.entries(requests)) {
    if (one === undefined) continue
    await check(t, ask, name, { ...one, status: 401, token: 'wrong' })
    await check(t, ask, name, { ...one, status: 403, headers: { origin: 'https://app.example.com' } })
  }
}

void test('every documented answer is given, and has its schema', async (t) => {
  let reloads = 0
  const admin = await startAdmin(t, () => {
    reloads += 1
    return reloads === 1
      ? { outcome: 'reloaded', generation: 2, faults: [] }
      : { outcome: 'refused', generation: 2, faults: ['policy.yaml:3: …'] }
  })
  await admin.store.claim({ scope: '', threadId: 't1' }, { userId: USER, agentId: 'default', guest: false, now: Date.now() })
  await admin.store.claim({ scope: '', threadId: 't8' }, { userId: USER, agentId: 'default', guest: false, now: Date.now() })
  await checkAll(t, admin.ask, REQUESTS)
  await admin.breakStore()
  for (const [name, [ask]] of Object.entries(REQUESTS)) {
    if (ask !== undefined && !WITHOUT_STORE.has(name)) await check(t, admin.ask, name, { ...ask, status: 503 })
  }
  const asked = Object.entries({ ...REQUESTS, ...OF_GATEWAY }).map(([name, asks]) => {
    const common = WITHOUT_STORE.has(name) || name in OF_GATEWAY ? [401, 403] : [401, 403, 503]
    return [name, [...new Set([...asks.map(({ status }) => status), ...common])].toSorted()]
  })
  t.same(
    Object.fromEntries(OPERATIONS.map(({ name, responses }) => [name, Object.keys(responses).map(Number).toSorted()])),
    Object.fromEntries(asked),
    'each documented status was given',
  )
})

void test('every documented answer of a running gateway is given', async (t) => {
  const { gateway, base, alice } = await gated(
    t,
    (_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': begun\n\n'),
    { config: { admin: { port: 0, credential: OPERATOR } } },
  )
  const stream = await fetch(`${base}/agent/default/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json' },
    body: JSON.stringify(runInput('t1')),
  })
  const id = stream.headers.get('x-request-id') ?? ''
  const ask: Admin['ask'] = async (path, { method, ...options } = {}) => {
    const reply = await call(`${gateway.adminUrl}${path.replace('ID', id)}`, {
      token: OPERATOR,
      ...options,
      ...(method === undefined ? {} : { method }),
    })
    requireDocumented(method ?? (options.body === undefined ? 'GET' : 'POST'), path, reply)
    return reply
  }
  await checkAll(t, ask, OF_GATEWAY)
  await stream.text()
})

void test('the API has the documented operations and no others', async (t) => {
  const admin = await startAdmin(t)
  const documented = OPERATIONS.map(({ name }) => name.replaceAll(/\{(\w+)\}/g, ':$1'))
  t.same([...admin.routes].toSorted(), documented.toSorted())
  t.ok((await admin.ask('/openapi.json')).text === JSON.stringify(DOCUMENT), 'the listener serves the file')
  t.equal(DOCUMENT.openapi, '3.1.0')
})

void test('a linter of OpenAPI documents finds nothing', async (t) => {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const lint = (source: string) => lintFromString({ source, absoluteRef: '/openapi.json', config })
  t.same(await lint(TEXT), [])
  t.match(await lint(TEXT.replace('"operationId": "reload"', '"operationId": "revoke"')), [
    { ruleId: 'operation-operationId-unique' },
  ])
})

void test('an answer that is not as documented is noticed', (t) => {
  const reply = (status: number, body: object) => ({ status, headers: new Headers(), json: body, text: JSON.stringify(body) })
  t.throws(() => requireDocumented('GET', '/revocations', reply(200, { revocations: [{ tokenId: 'j' }] })))
  t.throws(() => requireDocumented('GET', '/revocations', reply(418, {})))
  t.throws(() => requireDocumented('DELETE', '/revocations/token/j', reply(204, {})))
  t.doesNotThrow(() => requireDocumented('GET', '/revocations', reply(200, { revocations: [] })))
  t.end()
})

void test('the table of requests has each operation', (t) => {
  const named = rows(section(PAGE, 'Requests'))
    .map(([name]) => code(name)?.replace(/\/ID\b/, '/{id}'))
    .filter((name) => name?.includes(' /') === true)
  t.same(named.toSorted(), OPERATIONS.map(({ name }) => name).toSorted())
  t.end()
})
