/** Envelopes, opened and written: what one says is a route of the table, held to the grammar of a request line. */
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { envelopeOf, openEnvelope, writeEnvelope } from '../../src/core/route/envelope.ts'
import type { JsonObject } from '../../src/core/json/read.ts'
import { ROUTES_OF } from '../../src/core/route/all-routes.ts'
import { OWN_ROUTES, ROUTES, type Route } from '../../src/core/route/routes.ts'
import { upstreamTarget } from '../../src/core/route/transport.ts'

/** The descriptor of an honest request to a route, with its query. */
function honest(route: Route): RouteDescriptor {
  const path = route.path.map((word) => ({ ':agentId': 'agent', ':threadId': 'T:1', ':memoryId': 'm1' })[word] ?? word)
  const values = new Map(route.query.map((name) => [name, name === 'agentId' ? 'agent' : '1&2=3']))
  return classify(route.method, path, values) as RouteDescriptor
}

void test('what is written is opened as the same, on every route but the debug feed', (t) => {
  for (const route of ROUTES) {
    const descriptor = honest(route)
    if (route.id === 'cpk-debug-events') {
      t.throws(() => writeEnvelope(descriptor, [], ''), /no envelope/)
      continue
    }
    const written = writeEnvelope(descriptor, descriptor.query, upstreamTarget('', descriptor))
    const opened = openEnvelope({ ...written, body: { a: 1 } })
    t.match(opened, { outcome: 'opened', body: { a: 1 }, dropped: [], droppedQueryNames: 0 }, route.id)
    if (opened.outcome === 'opened') t.strictSame(opened.descriptor, descriptor, `${route.method} ${route.id}`)
  }
  t.end()
})

void test('methods and params are those that the runtime reads', (t) => {
  const written = (method: string, path: string, query: Record<string, string> = {}) => {
    const descriptor = classify(method, path.split('/'), new Map(Object.entries(query))) as RouteDescriptor
    return writeEnvelope(descriptor, descriptor.query, upstreamTarget('', descriptor))
  }
  t.strictSame(written('POST', 'agent/a/run'), { method: 'agent/run', params: { agentId: 'a' } })
  t.strictSame(written('POST', 'agent/a/connect'), { method: 'agent/connect', params: { agentId: 'a' } })
  t.strictSame(written('POST', 'agent/a/suggest'), { method: 'agent/suggest', params: { agentId: 'a' } })
  t.strictSame(written('POST', 'agent/a/stop/t'), { method: 'agent/stop', params: { agentId: 'a', threadId: 't' } })
  t.strictSame(written('GET', 'info'), { method: 'info', params: {} })
  t.strictSame(written('POST', 'transcribe'), { method: 'transcribe', params: {} })
  t.strictSame(written('GET', 'inspector-metadata'), { method: 'inspector/metadata', params: {} })
  t.strictSame(written('GET', 'inspector-learning', { agentId: 'a', skillsPage: '2' }), {
    method: 'inspector/learning',
    params: { agentId: 'a', skillsPage: '2' },
  })
  t.strictSame(written('GET', 'threads', { agentId: 'a', cursor: 'c&d' }), {
    method: 'resource/request',
    params: { path: '/threads?agentId=a&cursor=c%26d', httpMethod: 'GET' },
  })
  t.strictSame(written('DELETE', 'threads/T:1'), {
    method: 'resource/request',
    params: { path: '/threads/T%3A1', httpMethod: 'DELETE' },
  })
  t.end()
})

void test('the thread of a run stands in its body, and in no param', (t) => {
  const run = classify('POST', ['agent', 'a', 'run'], new Map()) as RouteDescriptor
  t.strictSame(writeEnvelope({ ...run, ids: { ...run.ids, threadId: 't1' } }, [], '').params, { agentId: 'a' })
  t.end()
})

void test('a number is a page, and no id', (t) => {
  const opened = openEnvelope({ method: 'inspector/learning', params: { agentId: 'a', skillsPage: 2, insightsPage: null } })
  t.match(opened, { descriptor: { query: [['agentId', 'a'], ['skillsPage', '2']] }, dropped: ['params.insightsPage'] }) // oxfmt-ignore
  t.match(openEnvelope({ method: 'agent/run', params: { agentId: 1 } }), { reason: 'agent-id-invalid' })
  t.match(openEnvelope({ method: 'agent/stop', params: { agentId: 'a', threadId: 1 } }), { reason: 'thread-id-invalid' })
  t.end()
})

void test('what means nothing is named, and goes no further', (t) => {
  const opened = openEnvelope({
    method: 'agent/run',
    params: { agentId: 'a', threadId: 't', path: '/threads', x: 1 },
    body: null,
    threadId: 't',
    httpMethod: 'GET',
  })
  t.match(opened, { dropped: ['threadId', 'httpMethod', 'params.threadId', 'params.path', 'params.x'] })
  t.match(opened, { body: null }, 'which no route takes')
  const nothing = openEnvelope({ method: 'resource/request', params: { path: '/threads', httpMethod: 'GET' }, body: null })
  t.equal((nothing as { readonly body?: unknown }).body, undefined, 'null is no body in the tunnel')
  const tunnel = openEnvelope({
    method: 'resource/request',
    params: { path: '/threads?x=1&y=2', httpMethod: 'GET', agentId: 'a' },
  })
  t.match(tunnel, { dropped: ['params.agentId'], droppedQueryNames: 2, descriptor: { query: [] } })
  t.end()
})

void test('a param that becomes a query is held to what a query may be', (t) => {
  for (const page of ['\ud800', '1\n', '\u0000', '\u007f', 'a\udc00b']) {
    t.match(openEnvelope({ method: 'inspector/learning', params: { skillsPage: page } }), { reason: 'query-encoding' })
  }
  t.end()
})

void test('what is none of the methods is no route', (t) => {
  const strange: readonly JsonObject[] = [
    {},
    ...['', 'INFO', 'info ', 'threads/list', 'threads/clear', 'annotate', 'memories/list', 'cpk-debug-events'].map((method) => ({
      method,
    })),
    ...['constructor', '__proto__', 'toString', 'resource', 'resource/Request', 'agent/'].map((method) => ({ method })),
    ...[null, 1, true, ['info'], { info: 1 }].map((method) => ({ method })),
  ]
  for (const envelope of strange) t.match(openEnvelope(envelope), { reason: 'route-unknown' }, JSON.stringify(envelope))
  t.end()
})

void test('params that are no object hold nothing', (t) => {
  for (const params of [null, 'agentId=a', ['a'], 1, '{"agentId":"a"}']) {
    t.match(openEnvelope({ method: 'agent/run', params }), { reason: 'agent-id-invalid' })
    t.match(openEnvelope({ method: 'resource/request', params }), { reason: 'target-not-origin-form' })
    t.match(openEnvelope({ method: 'info', params }), { outcome: 'opened' })
  }
  t.end()
})

void test('the gateway’s own routes go by no envelope', (t) => {
  for (const route of OWN_ROUTES) {
    t.equal(envelopeOf(route), null)
    t.throws(() => writeEnvelope(honest(route), [], ''), /no envelope/)
    t.match(openEnvelope({ method: route.id, params: { threadId: 't' } }), { reason: 'route-unknown' })
  }
  t.end()
})

const TUNNELLED = [
  ['GET', '/threads'],
  ['POST', '/threads/subscribe'],
  ['POST', '/threads/clear'],
  ['PATCH', '/threads/x'],
  ['DELETE', '/threads/x'],
  ['POST', '/threads/x/archive'],
  ['GET', '/threads/x/messages'],
  ['GET', '/threads/x/events'],
  ['GET', '/threads/x/state'],
  ['POST', '/annotate'],
  ['GET', '/memories'],
  ['POST', '/memories'],
  ['POST', '/memories/recall'],
  ['POST', '/memories/subscribe'],
  ['PATCH', '/memories/x'],
  ['DELETE', '/memories/x'],
] as const

/** Routes with a method of their own, the debug feed, and the gateway's own. */
const NOT_TUNNELLED = [
  ['GET', '/info'],
  ['POST', '/agent/x/run'],
  ['POST', '/agent/x/connect'],
  ['POST', '/agent/x/suggest'],
  ['POST', '/agent/x/stop/x'],
  ['POST', '/transcribe'],
  ['GET', '/inspector-metadata'],
  ['GET', '/inspector-learning'],
  ['GET', '/cpk-debug-events'],
  ['GET', '/threadwarden/threads/x/grants'],
  ['POST', '/threadwarden/threads/x/grants'],
  ['DELETE', '/threadwarden/threads/x/grants'],
] as const

void test('the tunnel reaches threads, memories and annotations, by their own methods alone', (t) => {
  const tunnelled = (httpMethod: unknown, path: string) =>
    openEnvelope({ method: 'resource/request', params: { path, httpMethod } as JsonObject })
  for (const [method, path] of TUNNELLED) t.match(tunnelled(method, path), { outcome: 'opened' }, `${method} ${path}`)
  for (const [method, path] of NOT_TUNNELLED) t.match(tunnelled(method, path), { reason: 'route-unknown' }, `${method} ${path}`)
  for (const [method, path] of [...TUNNELLED, ...NOT_TUNNELLED]) {
    for (const other of [method.toLowerCase(), ` ${method}`, 'HEAD', '', null, ['GET']]) {
      t.match(tunnelled(other, path), { reason: 'method-not-allowed' }, `${String(other)} ${path}`)
    }
  }
  t.equal(TUNNELLED.length + NOT_TUNNELLED.length, ROUTES_OF.runtime.length, 'every route is in one of the lists')
  t.end()
})
