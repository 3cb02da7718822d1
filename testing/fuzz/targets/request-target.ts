/**
 * Targets of requests, as `METHOD TARGET`. What is read has one spelling and is what a URL parser reads; the route and ids that
 * come of it are those that the real runtime resolves, in what was written as in what the gateway writes instead.
 */
import assert from 'node:assert/strict'
import { checkIds } from '../../../src/core/route/bodies.ts'
import { classify, type RouteDescriptor } from '../../../src/core/route/classify.ts'
import { QUERY_NAMES } from '../../../src/core/route/all-routes.ts'
import { upstreamTarget } from '../../../src/core/route/transport.ts'
import { findMount, readTarget, type Target } from '../../../src/core/route/target.ts'
import { PLACES } from '../case.ts'
import { differences, SENT, WRITTEN } from '../differences.ts'
import { hush } from '../hush.ts'
import { makeJudge } from '../judge.ts'

// oxfmt-ignore
export const words = [
  'GET ', 'POST ', 'PATCH ', 'DELETE ', '/api/copilotkit', '/chat', '/agent/', '/run', '/connect', '/suggest', '/stop/', '/threads', '/threads/', '/messages',
  '/events', '/state', '/archive', '/clear', '/subscribe', '/annotate', '/memories', '/memories/', '/recall', '/info', '/transcribe',
  '/inspector-metadata', '/inspector-learning', '/cpk-debug-events', '/threadwarden/threads/', '/grants', '?agentId=', '&limit=',
  '&cursor=', 'includeArchived=true', 'includeInvalidated=', 'skillsPage=', 'insightsPage=', '%2F', '%2f', '%2e%2e', '%5C', '%25',
  '%3A', '%C3%A9', '%00', '..', '//', '\\', '#', ';', '@', ':', 'http://evil.example/', '123e4567-e89b-12d3-a456-426614174000', 'constructor',
]

// oxfmt-ignore
export const seeds = [
  'GET /api/copilotkit/threads?agentId=d%C3%A9&limit=%20+a&x=1', 'GET /api/copilotkit/threads?agentId=a&agentId=b', 'GET /chat/threads?agent%49d=a&agentId=b', 'GET /threads?agentId=__proto__',
  'GET /api/copilotkit/threads/t:1/messages', 'GET /api/copilotkit/threads/t%3A1/messages', 'GET /api/copilotkit/threads/a%2Fb/messages', 'GET /api/copilotkit/threads/a%5Cb/messages', 'GET /api/copilotkit/threads/a%252Fb/messages',
  'GET /api/copilotkit/threads/%2e%2e/threads/t1/messages', 'GET /api/copilotkit/threads/./t1/messages', 'GET /api/copilotkit/threads//t1/messages', 'GET /api/copilotkit/threads/t1/messages/', 'GET /api/copilotkit/threads\\t1\\messages', 'GET /api/copilotkit/threads/t1;x/messages',
  'GET /api/copilotkit/threads/123e4567e89b12d3a456426614174000/state', 'GET /api/copilotkit/threads/123E4567-E89B-12D3-A456-426614174000/state', 'GET /api/copilotkit/threads/123e4567-e89b-12d3-a456-426614174000/state', 'GET /api/copilotkit/threads/0x1-1-1-1-1/state',
  'GET /api/copilotkit/threads/clear', 'POST /api/copilotkit/threads/clear#/messages', 'GET /api/copilotkit/threads/info/messages', 'GET /api/copilotkit/x/threads/t1/messages', 'POST /threads/api/copilotkit/threads/clear', 'POST /api/copilotkit/agent/constructor/run', 'POST /api/copilotkit/agent/agent/run',
  'GET //evil.example/threads/t1/messages', 'GET http://evil.example/threads/t1/messages', 'get /api/copilotkit/info', 'HEAD /api/copilotkit/info', 'GET /api/copilotkit/info?', 'GET /api/copilotkit?x', 'GET /', 'DELETE /api/copilotkit/memories/m1', 'GET /api/copilotkit/threads/%ud800/state', 'GET /api/copilotkit/threads/%ED%A0%80/state',
]

hush()

const WHERE = Object.values(PLACES).map((place) => ({
  ...place,
  judge: makeJudge({ adapter: 'node', transport: 'multi-route', basePath: place.basePath }),
}))

/** What the bodies of these routes have to say for the runtime to resolve them. */
const BODY = { threadId: 't1', agentId: 'default', type: 'x', content: 'x', query: 'x', user: 'corp:bob', right: 'read' }
const JSON_LINES = [['content-type', 'application/json']] as const

export async function examine(input: Buffer): Promise<void> {
  const line = input.toString('latin1')
  const space = line.indexOf(' ')
  const [method, raw] = [line.slice(0, Math.max(space, 0)), line.slice(space + 1)]
  const target = readTarget(raw, QUERY_NAMES)
  if (target.outcome === 'refused') {
    assert.equal(target.code, 'target-malformed')
    return
  }
  checkReading(raw, target)
  for (const { publicPath, basePath, judge } of WHERE) {
    const place = findMount([{ publicPath }], target)
    if (place === null) continue
    const classified = classify(method, place.segments, target.query)
    if (classified.outcome === 'refused' || classified.route.own === true) continue
    const { descriptor, body } = withBody(classified)
    const sent = upstreamTarget(basePath, descriptor)
    checkRebuilt(sent, basePath, descriptor)
    const headers = [['host', 'runtime.internal'], ...(body === null ? [] : JSON_LINES)] as const
    const asSent = await judge({ method, target: sent, headers, body })
    assert.deepEqual(differences(descriptor, asSent, SENT), [], sent)
    // As written it reaches a runtime that is mounted where callers find the gateway, or one that takes the end of any path.
    if (publicPath !== basePath && basePath !== '') continue
    assert.deepEqual(differences(descriptor, await judge({ method, target: raw, headers, body }), WRITTEN), [], raw)
  }
}

/** One spelling is left, and a URL parser finds in it what was read. */
function checkReading(raw: string, { segments, query }: Target): void {
  const url = new URL(raw, 'http://runtime.internal')
  assert.equal(url.host, 'runtime.internal', 'no other host')
  assert.equal(url.hash, '', 'no fragment')
  const found = url.pathname === '/' ? [] : url.pathname.slice(1).split('/').map(decodeURIComponent)
  assert.deepEqual(segments, found, 'the segments of the URL')
  for (const segment of segments) assert.doesNotMatch(segment, /[/\\%\0-\x1f\x7f]|^\.{0,2}$/, 'nobody splits or folds it')
  for (const [name, value] of query) assert.deepEqual(url.searchParams.getAll(name), [value], `the query's ${name}`)
  for (const name of QUERY_NAMES) assert.equal(url.searchParams.has(name), query.has(name), `the query's ${name}`)

  const path = `/${segments.map(encodeURIComponent).join('/')}`
  const canonical = `${path}${query.size === 0 ? '' : `?${String(new URLSearchParams([...query]))}`}`
  const again = readTarget(canonical, QUERY_NAMES)
  assert.deepEqual(again, { outcome: 'read', segments, query, droppedQueryNames: 0 }, canonical)
}

/** What is written for the upstream is about the same again. */
function checkRebuilt(sent: string, basePath: string, { route, ids, query }: RouteDescriptor): void {
  const target = readTarget(sent, QUERY_NAMES)
  assert.equal(target.outcome, 'read', sent)
  const place = findMount([{ publicPath: basePath }], target)
  const again = classify(route.method, place?.segments ?? [], target.query)
  assert.equal(again.outcome, 'classified', sent)
  assert.equal(again.route, route)
  const inPath = Object.entries(ids).filter(([name]) => route.path.includes(`:${name}`))
  assert.deepEqual(again.ids, Object.fromEntries(inPath))
  assert.deepEqual(new Map(again.query), new Map(query))
}

/** The request with a body that its route takes. */
function withBody(classified: RouteDescriptor): { readonly descriptor: RouteDescriptor; readonly body: Buffer | null } {
  const { body } = classified.route
  if (body.kind === 'none') return { descriptor: classified, body: null }
  const value = Object.fromEntries(Object.entries(BODY).filter(([key]) => body.keys.includes(key)))
  const checked = body.kind === 'json' ? checkIds(classified, value) : classified
  assert.notEqual(checked.outcome, 'refused')
  const descriptor = checked.outcome === 'checked' ? checked.descriptor : classified
  return { descriptor, body: Buffer.from(JSON.stringify(value)) }
}
