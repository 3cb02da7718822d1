/** When lists come from the table, what clients are told then, and how a thread is shown. */
import { test } from 'tap'
import { ROUTES } from '../../src/core/route/routes.ts'
import { isTableRoute, tableUse, tellsOfTable, threadRecord, withTableLists } from '../../src/core/wire/table-lists.ts'
import { assumedFacts, infoFor } from '../../src/core/route/transport.ts'

const KNOWN = assumedFacts('multi-route')
const NONE = { list: false, inspect: false, mutations: false, realtimeMetadata: false }
const SERVED = { ...NONE, list: true, mutations: true }
const MULTI = { version: '1.75.0', agents: {}, mode: 'sse', threadEndpoints: NONE }
const SINGLE = { ...MULTI, singleRoute: { resourceOperations: true, threadEndpoints: NONE } }
const OLD = { version: '1.54.1', agents: {} }

void test('the table is used always, never, or as the upstream says that it has lists', (t) => {
  for (const [lists, table, auto] of [
    [true, 'always', 'never'],
    [false, 'always', 'always'],
    [null, 'always', 'where-refused'],
  ] as const) {
    const upstream = { ...KNOWN, lists }
    t.equal(tableUse('upstream', 'enforce', upstream), 'never', `upstream ${lists}`)
    t.equal(tableUse('table', 'enforce', upstream), table, `table ${lists}`)
    t.equal(tableUse('auto', 'enforce', upstream), auto, `auto ${lists}`)
    for (const source of ['upstream', 'table', 'auto'] as const) {
      t.equal(tableUse(source, 'observe', upstream), 'never', `${source} ${lists} under observe`)
    }
  }
  t.end()
})

void test('before a single-route runtime without the tunnel there is nobody to ask', (t) => {
  const upstream = { ...assumedFacts('single-route'), resources: false }
  t.equal(tableUse('auto', 'enforce', upstream), 'always')
  t.equal(tableUse('upstream', 'enforce', upstream), 'never')
  t.equal(tableUse('auto', 'enforce', assumedFacts('single-route')), 'where-refused')
  t.end()
})

void test('the table lists, names, archives and ends threads, and can do nothing else', (t) => {
  const routes = ROUTES.filter(isTableRoute).map(({ method, path }) => `${method} ${path.join('/')}`)
  t.strictSame(routes, ['GET threads', 'PATCH threads/:threadId', 'DELETE threads/:threadId', 'POST threads/:threadId/archive'])
  t.end()
})

void test('clients are told where the table answers; where the upstream is asked first, if that says that it has no lists', (t) => {
  for (const [name, info, whereRefused] of [
    ['multi-route, no lists', MULTI, true],
    ['single-route, no lists', SINGLE, true],
    ['too old for lists', OLD, true],
    ['lists', { ...MULTI, threadEndpoints: { ...NONE, list: true } }, false],
    ['does not say', { version: '1.60.0', agents: {} }, false],
    ['no runtime', { no: 'runtime' }, false],
  ] as const) {
    t.equal(tellsOfTable('always', info), true, `${name}, always`)
    t.equal(tellsOfTable('where-refused', info), whereRefused, `${name}, where refused`)
    t.equal(tellsOfTable('never', info), false, `${name}, never`)
  }
  t.end()
})

void test('/info says to each client, where that looks, that lists and changes work, and leaves the rest', (t) => {
  t.strictSame(withTableLists('multi-route', MULTI), { ...MULTI, threadEndpoints: SERVED })
  t.strictSame(withTableLists('multi-route', OLD), { ...OLD, threadEndpoints: SERVED }, 'a runtime that tells of no endpoints')
  const managed = { list: true, inspect: true, mutations: false, realtimeMetadata: true, later: 1 }
  t.strictSame(withTableLists('multi-route', { ...MULTI, threadEndpoints: managed }), {
    ...MULTI,
    threadEndpoints: { ...managed, mutations: true },
  })
  t.strictSame(withTableLists('single-route', SINGLE), {
    ...SINGLE,
    singleRoute: { resourceOperations: true, threadEndpoints: SERVED },
  })
  const more = { ...SINGLE, singleRoute: { resourceOperations: true, later: 1, threadEndpoints: { ...NONE, inspect: true } } }
  t.strictSame(withTableLists('single-route', more), {
    ...more,
    singleRoute: { resourceOperations: true, later: 1, threadEndpoints: { ...SERVED, inspect: true } },
  })
  t.end()
})

void test('a client of an upstream without the tunnel gets one: the gateway has it', (t) => {
  const tunnel = { resourceOperations: true, threadEndpoints: SERVED }
  t.strictSame(withTableLists('single-route', OLD), { ...OLD, singleRoute: tunnel })
  const shut = { ...OLD, singleRoute: { resourceOperations: false, threadEndpoints: { ...NONE, inspect: true } } }
  t.strictSame(withTableLists('single-route', shut)['singleRoute'], tunnel, 'what it says of no tunnel counts for nothing')
  t.strictSame(withTableLists('multi-route', infoFor('multi-route', OLD))['threadEndpoints'], SERVED, 'and over the bridge')
  t.strictSame(withTableLists('single-route', infoFor('single-route', MULTI))['singleRoute'], tunnel)
  t.end()
})

void test('a thread is shown as the runtime shows it, and nobody’s id with it', (t) => {
  const row = {
    threadId: 't1',
    owner: 'corp:alice',
    granted: 'read',
    agentId: 'default',
    name: null,
    archived: false,
    createdAt: 1,
    updatedAt: Date.UTC(2026, 10, 3, 4, 5, 6, 7),
  } as const
  t.strictSame(threadRecord(row), {
    id: 't1',
    name: null,
    agentId: 'default',
    organizationId: '',
    createdById: '',
    archived: false,
    createdAt: '1970-01-01T00:00:00.001Z',
    updatedAt: '2026-11-03T04:05:06.007Z',
  })
  t.match(threadRecord({ ...row, name: 'Holidays', archived: true }), { name: 'Holidays', archived: true })
  t.end()
})
