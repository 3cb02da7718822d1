/**
 * `forwardedProps` that reach an agent's configuration: the runtime spreads them into the graph's run, where `config` is an
 * identity, `webhook` a request from inside the network, `metadata` an owner, `checkpoint` and `command` another place in
 * a graph, and Python agents turn camelCase into snake_case (runtime-behaviour.md, "What the runtime does not check"). An allow-list passes two names, and
 * those that the policy spells out, byte for byte.
 */
import { runInput } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import type { Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { events } from '../../testing/support/upstream.ts'
import { edited } from '../../testing/support/policies.ts'
import { BASE, codeIn, run } from './thread-routes.ts'

const ROUTES = ['agent/default/run', 'agent/default/connect', 'agent/default/suggest']

/** What of these properties reaches the upstream, on each route that has them. */
async function passed(gate: GatedUpstream, forwardedProps: unknown): Promise<unknown[]> {
  const arrived: unknown[] = []
  for (const route of ROUTES) {
    const body = JSON.stringify(runInput('mine', 'hello', { forwardedProps }))
    const answer = await gate.gateway.ask({ target: `${BASE}/${route}`, token: gate.alice, body })
    if (answer.status !== 200) throw new Error(`${route} answered ${answer.status}`)
    arrived.push((gate.upstream.requests.at(-1)?.json as { forwardedProps: unknown }).forwardedProps)
  }
  return arrived
}

const SAFE = { toolChoice: { type: 'tool', name: 'x' }, command: { resume: { decision: 'yes', config: 1 } } }

async function started(t: Parameters<typeof gated>[0], pair: Pair, policy?: string): Promise<GatedUpstream> {
  const gate = await gated(t, events(), { pair, ...(policy === undefined ? {} : { policy }) })
  t.equal(await run(gate.gateway, gate.alice, 'mine'), 200)
  return gate
}

// oxfmt-ignore
const NAMES = [
  'config', 'configurable', 'context', 'webhook', 'metadata', 'threadMetadata', 'checkpoint', 'checkpointId', 'checkpointNs',
  'checkpointMap', 'checkpointDuring', 'nodeName', 'multitaskStrategy', 'onCompletion', 'onDisconnect', 'onRunCreated',
  'afterSeconds', 'interruptBefore', 'interruptAfter', 'ifNotExists', 'feedbackKeys', 'streamMode', 'streamSubgraphs',
  'streamResumable', 'durability', '__proxiedMCPRequest', 'input', 'assistantId', 'graphId', 'threadId', 'runId', 'userId', 'headers',
  'signal', 'a2uiAction', 'a2uiCatalogAvailable', 'injectA2UITool', 'state', 'messages', 'toString', 'constructor', 'valueOf',
]

const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** A name as a caller might write it where only one spelling is looked for. */
function spellings(name: string): string[] {
  const first = name.slice(0, 1).toUpperCase() + name.slice(1)
  return [
    name,
    snake(name),
    snake(name).toUpperCase(),
    snake(name).replaceAll('_', '-'),
    first,
    name.toUpperCase(),
    name.toLowerCase(),
    ` ${name}`,
    `${name} `,
    `_${name}`,
    `${name}_`,
    `.${name}`,
    `${name}.`,
    `$${name}`,
    `${name}\u0000`,
    `${name}[]`,
    `forwardedProps.${name}`,
    `toolChoice.${name}`,
    `command.${name}`,
    `command.resume.${name}`,
  ]
}

const VALUE = { configurable: { thread_id: 'foreign', langgraph_auth_user_id: 'bob', user_id: 'bob' } }

void testEachPair(
  'names that reach an agent or its graph do not pass, in any spelling, and those that are named do',
  async (t, pair) => {
    const gate = await started(t, pair)
    for (const name of NAMES) {
      const props = { ...Object.fromEntries(spellings(name).map((one) => [one, VALUE])), ...SAFE }
      for (const arrived of await passed(gate, props)) t.strictSame(arrived, SAFE, name)
    }
  },
)

void testEachPair('of command only resume passes, in its one spelling', async (t, pair) => {
  const gate = await started(t, pair)
  const parts = [
    'goto',
    'update',
    'graph',
    'send',
    'Resume',
    'RESUME',
    'resume ',
    ' resume',
    'resume.x',
    'resumes',
    're_sume',
    '',
  ]
  const command = Object.fromEntries(parts.map((part) => [part, { node: 'x' }]))
  for (const arrived of await passed(gate, { command })) t.strictSame(arrived, {})
  for (const arrived of await passed(gate, { command: { ...command, resume: 'yes' } })) {
    t.strictSame(arrived, { command: { resume: 'yes' } })
  }
  for (const other of [null, 'goto', 1, true, [{ goto: 'x' }], [['resume', 'x']], [], {}]) {
    for (const arrived of await passed(gate, { command: other })) t.strictSame(arrived, {}, JSON.stringify(other))
  }
})

void testEachPair('a name with a dot is no way to what it names', async (t, pair) => {
  const gate = await started(t, pair)
  for (const props of [{ 'command.resume': 'x' }, { 'command.goto': 'x' }, { 'toolChoice.x': 1 }, { 'command[resume]': 1 }]) {
    for (const arrived of await passed(gate, props)) t.strictSame(arrived, {}, JSON.stringify(props))
  }
})

void testEachPair('forwardedProps of another type are an empty object', async (t, pair) => {
  const gate = await started(t, pair)
  for (const props of [null, [], ['config'], [{ config: {} }], 'config', '{"config":{}}', 1, true]) {
    for (const arrived of await passed(gate, props)) t.strictSame(arrived, {}, JSON.stringify(props))
  }
})

void testEachPair('names under forwardedProps in another spelling of it do not arrive at all', async (t, pair) => {
  const gate = await started(t, pair)
  const others = ['forwarded_props', 'ForwardedProps', 'forwardedprops', 'properties', 'config', 'command', 'metadata', 'input']
  const more = Object.fromEntries(others.map((name) => [name, { config: VALUE, toolChoice: 'x' }]))
  const body = JSON.stringify(runInput('mine', 'hello', { ...more, forwardedProps: SAFE }))
  t.equal((await gate.gateway.ask({ target: `${BASE}/agent/default/run`, token: gate.alice, body })).status, 200)
  const arrived = gate.upstream.requests.at(-1)?.json as Record<string, unknown>
  t.strictSame(arrived['forwardedProps'], { ...SAFE })
  for (const name of others) t.notOk(name in arrived, name)
})

void testEachPair('a name twice, or escaped beside itself, is no body at all', async (t, pair) => {
  const gate = await started(t, pair)
  const before = gate.upstream.beginnings()
  for (const props of [
    '{"toolChoice":1,"toolChoice":{}}',
    '{"command":{"resume":1},"c\\u006fmmand":{"goto":1}}',
    '{"__proto__":{"config":1}}',
  ]) {
    const body = `{"threadId":"mine","forwardedProps":${props}}`
    const answer = await gate.gateway.ask({ target: `${BASE}/agent/default/run`, token: gate.alice, body })
    t.same([answer.status, codeIn(answer)], [400, 'body-malformed'], props)
  }
  t.equal(gate.upstream.beginnings(), before)
})

void testEachPair(
  'the policy may let more of them pass, in the one spelling that it names, and nothing beside them',
  async (t, pair) => {
    const named = '[{ name: a2uiAction }, { name: metadata, unsafe: true }, { name: command.goto, unsafe: true }]'
    const gate = await started(t, pair, edited('forwardedProps: []', `forwardedProps: ${named}`))
    const props = {
      ...Object.fromEntries(
        [...spellings('a2uiAction'), ...spellings('metadata'), ...spellings('config')].map((one) => [one, 1]),
      ),
      command: { goto: 'node', update: {}, resume: 1, Goto: 1 },
    }
    for (const arrived of await passed(gate, props)) {
      t.strictSame(arrived, { a2uiAction: 1, metadata: 1, command: { goto: 'node', resume: 1 } })
    }
  },
)

void testEachPair('each name that does not pass is logged once, and cut where it is long', async (t, pair) => {
  const gate = await started(t, pair)
  const props = { config: {}, command: { goto: 1, resume: 2 }, ['x'.repeat(5000)]: 1 }
  await passed(gate, props)
  await passed(gate, props)
  const said = gate.gateway.lines.filter((line) => String(line['msg']).startsWith('dropped a body field'))
  t.same(said.map((line) => line['name']).sort(), [
    'forwardedProps.command.goto',
    'forwardedProps.config',
    `forwardedProps.${'x'.repeat(85)}`,
  ])
})
