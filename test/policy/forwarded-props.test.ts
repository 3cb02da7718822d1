/**
 * `forwardedProps` is an allow-list: two names pass, and those that the policy names. Names that reach an agent's
 * configuration, identity or storage need `unsafe: true` beside them, and draw a warning all the same.
 */
import { test } from 'tap'
import type { Json, JsonObject } from '../../src/core/json/read.ts'
import { compiled, descriptor, faultsIn, load, ruled } from '../../testing/support/policies.ts'
import { passingOf } from '../../testing/support/open-bodies.ts'

const RUN = descriptor('POST', 'agent/a/run').route
const RULES = [{ routes: ['agent/run'], allow: ['signed-in'], threads: ['own'] }]
const policy = (forwardedProps: readonly object[], more: object = {}) => ruled(RULES, { forwardedProps, ...more })

/** What reaches the agent of a run that sends these properties. */
function passed(text: string, forwardedProps: Json): JsonObject {
  const body = { threadId: 't-1', state: { a: 1 }, forwardedProps }
  return passingOf(RUN, body, compiled(text).bodies).body
}

// oxfmt-ignore
const UNSAFE = [
  'config', 'context', 'webhook', 'metadata', 'threadMetadata', 'checkpoint', 'checkpointId', 'checkpointDuring', 'nodeName',
  'command', 'command.goto', 'command.update', 'multitaskStrategy', 'onCompletion', 'onDisconnect', 'afterSeconds',
  'interruptBefore', 'interruptAfter', 'ifNotExists', 'feedbackKeys', 'streamMode', 'streamSubgraphs', 'durability',
  '__proxiedMCPRequest', 'input', 'messages', 'state', 'tools', 'copilotkit', 'ag-ui', 'thread_metadata', 'Checkpoint_Id', 'CONFIG', 'stream_mode', 'multitask_strategy',
]

for (const name of UNSAFE) {
  void test(`${name} needs unsafe: true, and draws a warning then`, (t) => {
    const fault = { path: 'forwardedProps.0.name', message: `${name} reaches the agent's configuration, identity or storage` }
    t.match(faultsIn(policy([{ name }])), [{ ...fault, hint: 'to accept this, add unsafe: true to the entry' }])
    t.match(faultsIn(policy([{ name, unsafe: false }])), [fault])
    const warning = { path: 'forwardedProps.0.name', message: `${name} is unsafe: callers choose its value` }
    t.match(load(policy([{ name, unsafe: true }])), { ok: true, value: { warnings: [warning] } })
    t.end()
  })
}

void test('without a name in the policy, toolChoice and command.resume pass alone', (t) => {
  const sent = { toolChoice: 'auto', a2uiAction: 1, config: {}, command: { resume: 'yes', goto: 'node', update: {} } }
  t.strictSame(passed(policy([]), sent)['forwardedProps'], { toolChoice: 'auto', command: { resume: 'yes' } })
  t.end()
})

void test('a named one passes, and only that one', (t) => {
  const text = policy([{ name: 'a2uiAction' }])
  const sent = { a2uiAction: { x: 1 }, A2uiAction: 1, other: 1 }
  t.strictSame(passed(text, sent)['forwardedProps'], { a2uiAction: { x: 1 } })
  const loaded = load(text)
  t.same(loaded.ok && loaded.value.warnings.filter(({ path }) => path.includes('forwardedProps')), [])
  t.end()
})

void test('a part of command passes by its own name, and takes no other part along', (t) => {
  const sent = { command: { resume: 1, goto: 'node', update: {} } }
  const text = policy([{ name: 'command.goto', unsafe: true }])
  t.strictSame(passed(text, sent)['forwardedProps'], { command: { resume: 1, goto: 'node' } })
  t.end()
})

void test('tools pass, are dropped, or pass by name', (t) => {
  const chart = { name: 'showChart', description: 'd', parameters: {} }
  const tools = [
    chart,
    { name: 'ShowChart' },
    { name: 'showChart ' },
    { name: ['showChart'] },
    { description: 'd' },
    'showChart',
    null,
    [chart],
  ]
  const passing = (policed: object, sent: Json) => {
    const { body, dropped } = passingOf(RUN, { threadId: 't-1', tools: sent }, compiled(policy([], policed)).bodies)
    return { tools: body['tools'], dropped }
  }
  const closed = [...tools.slice(0, 3), { name: [] }, ...tools.slice(4, -1), []]
  t.strictSame(passing({}, tools), { tools: closed, dropped: [] }, 'an object that is no text or tool is emptied')
  t.strictSame(passing({ tools: 'pass' }, 'odd'), { tools: 'odd', dropped: [] })
  t.strictSame(passing({ tools: 'drop' }, [chart]), { tools: [], dropped: ['tools.showChart'] })
  t.strictSame(passing({ tools: 'drop' }, [{ name: 'd' }]), { tools: [], dropped: ['tools.d'] }, 'the word is no list of letters')
  t.strictSame(compiled(policy([], { tools: 'drop' })).bodies.tools, new Set(), 'no name is on it')
  t.strictSame(passing({ tools: [] }, [chart]), { tools: [], dropped: ['tools.showChart'] })
  t.match(passing({ tools: ['showChart'] }, tools), { tools: [chart], dropped: { length: 7 } })
  t.strictSame(passing({ tools: ['showChart'] }, chart), { tools: [], dropped: ['tools'] }, 'no list')
  const disguised = { ...chart, type: 'function', function: { name: 'sendNotes' }, metadata: { a: 1 } }
  t.strictSame(
    passing({ tools: ['showChart'] }, [disguised]),
    { tools: [{ ...chart, metadata: { a: 1 } }], dropped: [] },
    'no other name beside',
  )
  const inState = (policed: object, state: Json) => {
    const { body, dropped } = passingOf(RUN, { threadId: 't-1', state }, compiled(policy([], policed)).bodies)
    return { state: body['state'], dropped }
  }
  const state = { a: 1, tools: [chart, { name: 'other' }] }
  t.strictSame(inState({}, state), { state, dropped: [] })
  t.strictSame(inState({ tools: ['showChart'] }, state), { state: { a: 1, tools: [chart] }, dropped: ['state.tools.other'] })
  t.strictSame(inState({ tools: 'drop' }, { tools: chart }), { state: { tools: [] }, dropped: ['state.tools'] })
  for (const odd of [{ a: 1 }, null, 'x', [{ tools: [chart] }]])
    t.strictSame(inState({ tools: 'drop' }, odd), { state: odd, dropped: [] })
  t.match(faultsIn(policy([], { tools: 'none' })), [{ path: 'tools', message: 'is not a choice' }])
  t.match(faultsIn(policy([], { tools: [''] })), [{ path: 'tools' }])
  t.end()
})

void test('state passes or is dropped, as the policy says', (t) => {
  t.strictSame(passed(policy([]), {})['state'], { a: 1 })
  t.notOk('state' in passed(policy([], { state: 'drop' }), {}))
  t.end()
})
