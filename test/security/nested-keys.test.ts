/**
 * Keys inside a run that AG-UI does not have: with AG-UI 1.0, runtimes and agents keep what 0.0.59 removed, so a key that an agent of
 * one application reads would reach it from any caller. On no route, in no transport and in no form does one leave the gateway.
 */
import { call, runInput } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { keysIn, NESTED_KEY_ATTACKS, USER } from '../../testing/support/nested-key-attacks.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { edited } from '../../testing/support/policies.ts'
import { events } from '../../testing/support/upstream.ts'
import { BASE, run } from './thread-routes.ts'

const ROUTES = ['agent/default/run', 'agent/default/connect', 'agent/default/suggest']

/** What reaches the upstream, on each route that takes a run's body. */
async function passed(gate: GatedUpstream, body: string): Promise<unknown[]> {
  const arrived: unknown[] = []
  for (const route of ROUTES) {
    const answer = await gate.gateway.ask({ target: `${BASE}/${route}`, token: gate.alice, body })
    if (answer.status !== 200) throw new Error(`${route} answered ${answer.status}`)
    arrived.push(gate.upstream.requests.at(-1)?.json)
  }
  return arrived
}

const bodyOf = (more: Record<string, unknown>): string => JSON.stringify(runInput('mine', 'hello', more))

// oxfmt-ignore
const KEYS = ['secret', 'user_id', 'toString', 'tool_calls', '\\u0073ecret', 'Content', '']

void testEachPair('no key that AG-UI does not have leaves the gateway', async (t, pair) => {
  const gate = await gated(t, events(), { pair })
  t.equal(await run(gate.gateway, gate.alice, 'mine'), 200)
  for (const [at, attack] of NESTED_KEY_ATTACKS.entries()) {
    const key = KEYS[at % KEYS.length] ?? ''
    const body = bodyOf(attack).replaceAll('EVIL', key)
    for (const arrived of await passed(gate, body)) t.notOk(keysIn(arrived).has(JSON.parse(`"${key}"`) as string), body)
  }
})

void testEachPair('neither does one in a body that is read and written in steps', async (t, pair) => {
  const gate = await gated(t, events(), { pair })
  t.equal(await run(gate.gateway, gate.alice, 'mine'), 200)
  for (const attack of NESTED_KEY_ATTACKS) {
    const body = bodyOf({ ...attack, state: 'x'.repeat(300_000) })
    for (const arrived of await passed(gate, body)) t.notOk(keysIn(arrived).has('EVIL'), JSON.stringify(attack))
  }
})

void testEachPair('tools are closed whatever the policy says of them', async (t, pair) => {
  const tools = [{ name: 'chart', description: 'd', parameters: { EVIL: 1 }, metadata: { EVIL: 1 }, annotations: { EVIL: 1 } }]
  const { annotations: _, ...kept } = tools[0]!
  for (const said of ['tools: pass', 'tools: [chart]']) {
    const gate = await gated(t, events(), { pair, policy: edited('\ntools: pass', `\n${said}`) })
    for (const arrived of await passed(gate, bodyOf({ tools }))) t.strictSame((arrived as { tools: unknown }).tools, [kept], said)
  }
})

void testEachPair('what the application owns passes with all its keys', async (t, pair) => {
  const gate = await gated(t, events(), { pair })
  const more = {
    messages: [
      { ...USER, metadata: { EVIL: [{ EVIL: 1 }] } },
      { id: 'm2', role: 'activity', activityType: 'a', content: { EVIL: { EVIL: 1 } } },
      { ...USER, content: [{ type: 'text', text: 'x', metadata: { EVIL: 1 } }] },
    ],
    tools: [{ name: 'n', description: 'd', parameters: { type: 'object', properties: { EVIL: {} } }, metadata: { EVIL: 1 } }],
    resume: [{ interruptId: 'i', status: 'resolved', payload: { EVIL: { EVIL: 1 } }, metadata: { EVIL: 1 } }],
    state: { EVIL: { EVIL: 1 } },
    protocolVersion: '1.0',
  }
  for (const arrived of await passed(gate, bodyOf(more))) t.match(arrived, more)
})

void testEachPair('each dropped key is counted, and logged once by name', async (t, pair) => {
  const gate = await gated(t, events(), { pair })
  const messages = [
    { ...USER, secret: 1, ['x'.repeat(5000)]: 1 },
    { ...USER, secret: 2 },
  ]
  await passed(gate, bodyOf({ messages, context: [{ description: 'd', value: 'v', secret: 1 }] }))
  const said = gate.gateway.lines.filter((line) => String(line['msg']).startsWith('dropped a key inside a run'))
  t.same(
    said.map(({ name }) => name),
    ['messages[user].secret', `messages[user].${'x'.repeat(85)}`, 'context[].secret'],
  )
  const { text } = await call(`${gate.gateway.healthUrl}/metrics`)
  t.match(text, 'threadwarden_dropped_total{kind="nested-key"} 12')
})
