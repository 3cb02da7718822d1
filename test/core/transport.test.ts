/** What an upstream is, says of itself and takes, by its transport. */
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { OWN_ROUTES, ROUTES } from '../../src/core/route/routes.ts'
import {
  assumedFacts,
  endsLikeRoute,
  hasOperation,
  infoFor,
  readRuntimeInfo,
  TRANSPORTS,
  wireForm,
} from '../../src/core/route/transport.ts'

const ALL = { list: true, inspect: true, mutations: false, realtimeMetadata: false }
const NONE = { list: false, inspect: false, mutations: false, realtimeMetadata: false }
const MULTI = { version: '1.75.0', agents: {}, mode: 'sse', threadEndpoints: ALL }
const SINGLE = { ...MULTI, threadEndpoints: NONE, singleRoute: { resourceOperations: true, threadEndpoints: ALL } }
const OLD = { version: '1.54.1', agents: {}, mode: 'sse' }

void test('a runtime has a version and agents; anything else is none', (t) => {
  t.strictSame(readRuntimeInfo(MULTI), { version: '1.75.0', managed: false, resources: false, histories: true, lists: true })
  t.strictSame(readRuntimeInfo(SINGLE), { version: '1.75.0', managed: false, resources: true, histories: true, lists: true })
  t.strictSame(readRuntimeInfo(OLD), { version: '1.54.1', managed: false, resources: false, histories: false, lists: false })
  t.match(readRuntimeInfo({ ...MULTI, mode: 'intelligence' }), { managed: true })
  t.match(readRuntimeInfo({ ...MULTI, intelligence: { wsUrl: 'wss://x' } }), { managed: true })
  t.match(readRuntimeInfo({ ...MULTI, singleRoute: { resourceOperations: 'true' } }), { resources: false })
  t.match(readRuntimeInfo({ ...MULTI, singleRoute: true }), { resources: false })
  for (const other of [
    undefined,
    null,
    [],
    'x',
    {},
    { version: 1, agents: {} },
    { version: '1' },
    { version: '1', agents: [] },
  ]) {
    t.equal(readRuntimeInfo(other), null, JSON.stringify(other))
  }
  t.end()
})

void test('histories are there where /info says so, and not before there were any', (t) => {
  const histories = (info: object): unknown => readRuntimeInfo({ ...OLD, ...info })?.histories
  t.equal(histories({ threadEndpoints: { inspect: false } }), false)
  t.equal(histories({ threadEndpoints: {} }), false)
  t.equal(histories({ threadEndpoints: ALL }), true)
  t.equal(histories({ singleRoute: { resourceOperations: true, threadEndpoints: ALL }, threadEndpoints: NONE }), true)
  t.equal(histories({ singleRoute: { resourceOperations: false, threadEndpoints: ALL }, threadEndpoints: NONE }), false)
  for (const version of ['1.54.1', '1.56.9', '1.57.3', '0.99.0', '1']) t.equal(histories({ version }), false, version)
  for (const version of ['1.57.4', '1.58.0', '1.75.0', '2.0.0', 'dev']) t.equal(histories({ version }), null, version)
  t.end()
})

void test('threads are listed where /info says so, not before there was anything to say, and who knows in between', (t) => {
  const lists = (info: object): unknown => readRuntimeInfo({ ...OLD, ...info })?.lists
  t.equal(lists({ threadEndpoints: { ...ALL, list: false } }), false)
  t.equal(lists({ threadEndpoints: {} }), false)
  t.equal(lists({ threadEndpoints: { ...NONE, list: true } }), true)
  t.equal(lists({ singleRoute: { resourceOperations: true, threadEndpoints: ALL }, threadEndpoints: NONE }), true)
  t.equal(lists({ singleRoute: { resourceOperations: false, threadEndpoints: ALL }, threadEndpoints: NONE }), false)
  t.equal(lists({}), false, 'a runtime of 1.54')
  t.equal(lists({ mode: 'intelligence' }), null, 'before the managed platform it listed then, too')
  t.equal(lists({ mode: 'intelligence', threadEndpoints: NONE }), false)
  t.equal(lists({ version: '1.60.0' }), null)
  t.end()
})

void test('a client asks for threads where /info says that it may: it says so in the client’s own transport', (t) => {
  t.strictSame(infoFor('single-route', MULTI), SINGLE)
  t.strictSame(infoFor('multi-route', SINGLE), MULTI)
  t.strictSame(infoFor('multi-route', OLD), { ...OLD, threadEndpoints: NONE }, 'nothing that nobody said')
  t.strictSame(infoFor('single-route', OLD), {
    ...OLD,
    threadEndpoints: NONE,
    singleRoute: { resourceOperations: true, threadEndpoints: NONE },
  })
  t.strictSame(
    infoFor('multi-route', { ...SINGLE, singleRoute: { resourceOperations: false, threadEndpoints: ALL } })['threadEndpoints'],
    NONE,
  )
  t.strictSame(infoFor('multi-route', { ...SINGLE, singleRoute: 'yes' })['threadEndpoints'], NONE)
  t.strictSame(infoFor('multi-route', { ...SINGLE, singleRoute: { resourceOperations: true } })['threadEndpoints'], NONE)
  t.end()
})

void test('a single-route upstream has no debug feed, and one without the tunnel no threads', (t) => {
  const tunnelled = (id: string): boolean => /^(?:threads|memories)\/|^annotate$/.test(id)
  for (const route of ROUTES) {
    t.equal(hasOperation(assumedFacts('multi-route'), route), true)
    t.equal(hasOperation(assumedFacts('single-route'), route), route.id !== 'cpk-debug-events', route.id)
    const old = { ...assumedFacts('single-route'), resources: false }
    t.equal(hasOperation(old, route), route.id !== 'cpk-debug-events' && !tunnelled(route.id), route.id)
  }
  t.end()
})

void test('what the gateway answers itself is there before every upstream, and is sent to none', (t) => {
  for (const route of OWN_ROUTES) {
    const about = { outcome: 'classified', route, ids: { threadId: 't' }, query: [] } as const
    for (const facts of [...TRANSPORTS.map(assumedFacts), { ...assumedFacts('single-route'), resources: false }]) {
      t.equal(hasOperation(facts, route), true)
      t.throws(() => wireForm(facts, '/base', about), /threads\/grants is never sent/)
    }
  }
  t.end()
})

void test('a request is a path to the one, and an envelope on exactly the base path to the other', (t) => {
  const stop = classify('POST', ['agent', 'a', 'stop', 't'], new Map()) as RouteDescriptor
  t.strictSame(wireForm(assumedFacts('multi-route'), '/base', stop), {
    method: 'POST',
    target: '/base/agent/a/stop/t',
    envelope: null,
  })
  const envelope = { method: 'agent/stop', params: { agentId: 'a', threadId: 't' } }
  t.strictSame(wireForm(assumedFacts('single-route'), '/base', stop), { method: 'POST', target: '/base', envelope })
  t.equal(wireForm(assumedFacts('single-route'), '', stop).target, '/')
  const list = classify('GET', ['threads'], new Map([['agentId', 'a']])) as RouteDescriptor
  t.match(wireForm(assumedFacts('single-route'), '', list, [['cursor', 'c']]).envelope, { params: { path: '/threads?cursor=c' } })
  t.end()
})

void test('a base path that a runtime could take for a route is told', (t) => {
  for (const base of [
    '/threads/clear',
    '/api/threads/clear',
    '/threads/subscribe',
    '/api/annotate',
    '/transcribe',
    '/memories',
    '/x/agent/y/run',
    '/agent/a/stop/b',
    '/threads/t/archive',
  ]) {
    t.ok(endsLikeRoute(base), base)
  }
  for (const base of ['', '/api/copilotkit', '/threads', '/api/agent', '/threads/x', '/run', '/clear', '/info', '/agent/run']) {
    t.notOk(endsLikeRoute(base), base)
  }
  t.end()
})
