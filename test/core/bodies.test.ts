/** Bodies: of each route a closed set of keys passes, the ids in it are checked, and what is dropped is told. */
import { test } from 'tap'
import { checkIds, type BodyPolicy, type PassingBody } from '../../src/core/route/bodies.ts'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import type { Json, JsonObject } from '../../src/core/json/read.ts'
import type { Refusal } from '../../src/core/reasons.ts'
import { ROUTES, type Route } from '../../src/core/route/routes.ts'
import { OPEN_BODIES, passingOf } from '../../testing/support/open-bodies.ts'

/** A route of the table, by its method and path. */
function routeOf(text: string): Route {
  const found = ROUTES.find(({ method, path }) => `${method} ${path.join('/')}` === text)
  if (found === undefined) throw new Error(`no route ${text}`)
  return found
}

const RUN = routeOf('POST agent/:agentId/run')

/** A request to a route, as far as its path says. */
const asked = (route: Route): RouteDescriptor => ({ outcome: 'classified', route, ids: {}, query: [] })

interface Checked extends Omit<PassingBody, 'outcome' | 'droppedInside'> {
  readonly outcome: 'checked'
  readonly threadId: string | undefined
}

/** What of a body goes upstream, with the thread that it names; or why it does not. */
function check(route: Route, body: JsonObject, policy: Partial<BodyPolicy> = {}): Checked | Refusal {
  const ids = checkIds(asked(route), body)
  if (ids.outcome === 'refused') return ids
  const { threadId } = ids.descriptor.ids
  const { droppedInside, ...passing } = passingOf(route, body, { ...OPEN_BODIES, ...policy })
  return { ...passing, outcome: 'checked', threadId, dropped: [...passing.dropped, ...droppedInside.names] }
}

const checkRun = (body: JsonObject, policy?: Partial<BodyPolicy>) => check(RUN, { threadId: 't-1', ...body }, policy)

void test('the keys of a route pass, others are dropped by name', (t) => {
  const body = {
    threadId: 't-1',
    runId: 'r-1',
    parentRunId: null,
    messages: [],
    tools: [],
    context: [],
    state: { a: 1 },
    resume: 1,
  }
  t.strictSame(check(RUN, { ...body, method: 'agent/stop', params: {}, agentId: 'a', lastSeenEventId: 'e' }), {
    outcome: 'checked',
    threadId: 't-1',
    body,
    dropped: ['method', 'params', 'agentId', 'lastSeenEventId'],
  })
  t.match(check(routeOf('POST agent/:agentId/connect'), { threadId: 't-1', lastSeenEventId: 'e' }), {
    body: { threadId: 't-1', lastSeenEventId: 'e' },
    dropped: { length: 0 },
  })
  t.end()
})

void test('of a route without a body, nothing passes', (t) => {
  const none = { outcome: 'checked', threadId: undefined, body: {} }
  t.strictSame(check(routeOf('GET info'), { method: 'info', threadId: 't-1' }), { ...none, dropped: ['method', 'threadId'] })
  t.strictSame(check(routeOf('GET info'), {}), { ...none, dropped: [] })
  t.end()
})

void test('the thread in the body must be one, on routes that name it there', (t) => {
  for (const threadId of [undefined, null, '', 5, '../x', ['t-1'], 'events']) {
    const body = threadId === undefined ? {} : { threadId }
    for (const route of ROUTES.filter((row) => row.thread === 'body')) {
      t.match(
        check(route, body),
        { reason: 'thread-id-invalid', code: 'thread-id-invalid' },
        `${route.id} ${JSON.stringify(body)}`,
      )
    }
  }
  t.end()
})

void test('elsewhere the thread is in the path, and a body names none', (t) => {
  t.strictSame(check(routeOf('PATCH threads/:threadId'), { agentId: 'a', name: 'n', threadId: 't-2' }), {
    outcome: 'checked',
    threadId: undefined,
    body: { agentId: 'a', name: 'n' },
    dropped: ['threadId'],
  })
  t.end()
})

void test('a body that archives, or takes out of the archive, asks for what stays with the owner, whatever it says there', (t) => {
  const update = asked(routeOf('PATCH threads/:threadId'))
  const ofBody = (descriptor: RouteDescriptor, body: JsonObject) => {
    const ids = checkIds(descriptor, body)
    return ids.outcome === 'checked' && ids.descriptor
  }
  for (const archived of [true, false, null, 0, '', 'false', [], {}]) {
    t.strictSame(ofBody(update, { archived }), { ...update, ownerOnly: true }, JSON.stringify(archived))
    t.match(ofBody(update, { name: 'n', archived }), { ownerOnly: true }, 'beside a name')
  }
  t.strictSame(ofBody(update, { name: 'n', agentId: 'a' }), update, 'a name alone does not')
  t.strictSame(ofBody(update, {}), update)
  t.strictSame(ofBody(update, { Archived: true }), update, 'another key does not pass')
  const deletion = asked(routeOf('DELETE threads/:threadId'))
  t.strictSame(ofBody(deletion, { archived: true }), deletion, 'where the key does not pass it means nothing')
  t.end()
})

void test('the thread that a body names is that of the request; all else of it stays as it was', (t) => {
  const run = { ...asked(RUN), ids: { agentId: 'a' }, query: [['x', 'y']] } as const
  t.strictSame(checkIds(run, { threadId: 't-1' }), {
    outcome: 'checked',
    descriptor: { ...run, ids: { agentId: 'a', threadId: 't-1' } },
  })
  t.end()
})

void test('an agent in the body must be one', (t) => {
  const route = routeOf('DELETE threads/:threadId')
  for (const agentId of [null, '', 5, 'a/b', 'constructor', ['a']])
    t.match(check(route, { agentId }), { reason: 'agent-id-invalid', code: 'agent-id-invalid' }, JSON.stringify(agentId))
  t.match(check(route, { agentId: 'a' }), { body: { agentId: 'a' } })
  t.end()
})

void test('run ids in the body may be missing or null, but no paths', (t) => {
  for (const key of ['runId', 'parentRunId']) {
    for (const runId of ['../../other/runs/r', '', 5, false, ['r']])
      t.match(checkRun({ [key]: runId }), { reason: 'run-id-invalid', code: 'body-malformed' }, `${key} ${JSON.stringify(runId)}`)
    for (const runId of ['r-1', 'A0B1', null]) t.match(checkRun({ [key]: runId }), { body: { [key]: runId } }, `${key} ${runId}`)
  }
  const annotate = (clientEventId: Json) => check(routeOf('POST annotate'), { threadId: 't-1', clientEventId })
  for (const id of ['..', 'a/b', '', 5]) t.match(annotate(id), { reason: 'run-id-invalid' }, `clientEventId ${id}`)
  for (const id of ['e-1', null]) t.match(annotate(id), { body: { clientEventId: id } }, `clientEventId ${id}`)
  t.match(check(routeOf('POST agent/:agentId/stop/:threadId'), { runId: 'a/b' }), { reason: 'run-id-invalid' })
  t.end()
})

void test('dropped properties are told by name', (t) => {
  t.strictSame(checkRun({ forwardedProps: { toolChoice: 'auto', config: {}, theme: 'x', command: { goto: 'n' } } }), {
    outcome: 'checked',
    threadId: 't-1',
    body: { threadId: 't-1', forwardedProps: { toolChoice: 'auto' } },
    dropped: ['forwardedProps.config', 'forwardedProps.theme', 'forwardedProps.command.goto'],
  })
  t.match(checkRun({ forwardedProps: { theme: 'x' } }, { forwardedProps: new Set(['theme']) }), {
    body: { forwardedProps: { theme: 'x' } },
  })
  t.end()
})

void test('state passes or is dropped whole, as the policy says', (t) => {
  t.strictSame(checkRun({ state: { a: 1 } }, { state: 'drop' }), {
    outcome: 'checked',
    threadId: 't-1',
    body: { threadId: 't-1' },
    dropped: ['state'],
  })
  t.match(checkRun({ state: { a: 1 } }), { body: { state: { a: 1 } } })
  t.end()
})

const PASSED = { outcome: 'checked', threadId: 't-1', dropped: [] }

const CHART = { name: 'chart', description: 'd' }
const NAMED = { tools: new Set(['chart', '5']) }

void test('tools pass by name; what has none is dropped without one', (t) => {
  const tools = [CHART, { name: 'other' }, { name: ['chart'] }, { name: 5 }, { description: 'd' }, 'chart', null, [CHART]]
  const run = checkRun({ tools }, NAMED)
  t.strictSame(run.outcome === 'checked' && [run.body['tools'], run.dropped], [
    [CHART],
    ['tools.other', ...Array<string>(6).fill('tools')],
  ])
  t.strictSame(checkRun({ tools: 'odd' }), { ...PASSED, body: { threadId: 't-1', tools: 'odd' } }, 'all may pass')
  t.match(checkRun({ tools }), { body: { tools: [...tools.slice(0, 2), { name: [] }, ...tools.slice(3, 7), []] } })
  const single = checkRun({ tools: CHART }, NAMED)
  t.strictSame(single.outcome === 'checked' && [single.body['tools'], single.dropped], [[], ['tools']], 'no list')
  t.end()
})

void test('a tool in the state has only the keys of a tool where tools pass by name', (t) => {
  const run = checkRun({ state: { a: { x: 1 }, tools: [{ ...CHART, x: 1, parameters: { x: 1 } }] } }, NAMED)
  t.strictSame(run.outcome === 'checked' && [run.body['state'], run.dropped], [
    { a: { x: 1 }, tools: [{ ...CHART, parameters: { x: 1 } }] },
    ['state.tools[].x'],
  ])
  t.end()
})

void test('tools in the state pass by the same names, the rest of the state is left alone', (t) => {
  const state = { a: 1, tools: [CHART, { name: 'other' }, {}] }
  const run = checkRun({ state }, NAMED)
  t.strictSame(run.outcome === 'checked' && [run.body['state'], run.dropped], [
    { a: 1, tools: [CHART] },
    ['state.tools.other', 'state.tools'],
  ])
  for (const other of [{ a: 1 }, null, 'x', [{ tools: [CHART] }]]) {
    t.strictSame(checkRun({ state: other }, NAMED), checkRun({ state: other }), JSON.stringify(other))
    t.match(checkRun({ state: other }, NAMED), { body: { state: other }, dropped: { length: 0 } }, JSON.stringify(other))
  }
  t.strictSame(checkRun({ state }), { ...PASSED, body: { threadId: 't-1', state } }, 'all may pass')
  t.end()
})
