/** Clients and agents of AG-UI 0.0.59 and 1.0 on both sides of the gateway, by events and by the binary stream. */
import tap, { test } from 'tap'
import { MEDIA_TYPES, type Asked } from '../../examples/agent-client.ts'
import { AG_UI, VERSIONS, type AnyClient } from '../../testing/support/agui-versions.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { keysIn, NESTED_KEY_ATTACKS } from '../../testing/support/nested-key-attacks.ts'
import { owners } from '../../testing/support/rows.ts'
import { startAgentScene } from './agent-scene.ts'

// The clients tell of every run that fails, and of every key that they remove.
tap.capture(console, 'error')
tap.capture(console, 'warn')

async function answerTo(client: AnyClient, content: string): Promise<string> {
  client.messages = [{ id: crypto.randomUUID(), role: 'user', content }]
  const { newMessages } = await client.runAgent()
  return newMessages.map((message) => (typeof message.content === 'string' ? message.content : '')).join('')
}

for (const clientVersion of VERSIONS) {
  for (const agentVersion of VERSIONS) {
    for (const asked of ['events', 'binary'] as const) {
      void test(`a client of ${clientVersion} and an agent of ${agentVersion}, by ${asked}`, async (t) => {
        const { url, agent, alice, bob, gateway } = await startAgentScene(t, AG_UI[agentVersion].startAgent)
        const client = (thread: string, token: string) => AG_UI[clientVersion].client(url, thread, token, asked)
        const thread = crypto.randomUUID()
        t.match(await answerTo(client(thread, alice), 'hello'), /^Hello alice.* You said: hello/)
        t.match(await answerTo(client(thread, alice), 'again'), /You said: again/)
        await t.rejects(answerTo(client(thread, bob), 'hello'), /403/)
        t.equal(agent.requests.length, 2, "bob's run never reached the agent")
        t.match(agent.requests, [{ user: { user_id: 'alice' }, headers: { accept: MEDIA_TYPES[asked] } }, {}])
        if (agentVersion === '1.0') {
          t.equal(agent.requests[0]?.input?.['protocolVersion'], clientVersion === '1.0' ? '1.0' : undefined)
        }
        t.match(await answerTo(client(crypto.randomUUID(), bob), 'hello'), /^Hello bob/)
        t.match(
          owners(gateway.folder).find((row) => row.startsWith(thread)),
          /=corp:alice$/,
        )
        const { text } = await call(`${gateway.healthUrl}/metrics`)
        t.notMatch(text, 'dropped_total{kind="nested-key"}', 'real clients send no key that is dropped')
      })
    }
  }
}

void test('of keys that AG-UI does not have, none reaches an agent that keeps what it does not know', async (t) => {
  const { url, agent, alice } = await startAgentScene(t, AG_UI['1.0'].startAgent)
  const body = runInput(crypto.randomUUID(), 'x', {
    protocolVersion: '1.0',
    secret: 1,
    messages: [
      { id: 'm1', role: 'user', content: 'x', secret: 1, metadata: { secret: 1 } },
      {
        id: 'm2',
        role: 'assistant',
        toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}', secret: 1 } }],
      },
    ],
    tools: [{ name: 'n', description: 'd', parameters: {}, secret: 1 }],
  })
  const [known, tool] = [
    { name: 'f', arguments: '{}' },
    { name: 'n', description: 'd', parameters: {} },
  ]
  await call(url, { token: alice, body })
  const input = agent.requests[0]?.input
  t.strictSame(input?.['messages'], [
    { id: 'm1', role: 'user', content: 'x', metadata: { secret: 1 } },
    { id: 'm2', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: known }] },
  ])
  t.strictSame(input?.['tools'], [tool])
  t.notOk('secret' in (input ?? {}))
})

for (const version of VERSIONS) {
  void test(`the table of keys that AG-UI does not have, with an agent of ${version}`, async (t) => {
    const { url, agent, alice } = await startAgentScene(t, AG_UI[version].startAgent)
    const send = async (to: string, attack: Record<string, unknown>): Promise<ReadonlySet<string>> => {
      const before = agent.requests.length
      await call(to, { token: alice, body: runInput(crypto.randomUUID(), 'x', attack) })
      return keysIn(agent.requests.slice(before).map(({ input }) => input))
    }
    let kept = 0
    for (const attack of NESTED_KEY_ATTACKS) {
      t.notOk((await send(url, attack)).has('EVIL'), JSON.stringify(attack))
      if ((await send(agent.url, attack)).has('EVIL')) kept += 1
    }
    // Without the gateway: the older agent removes all of them by itself, the newer one does not.
    t.equal(kept > 0, version === '1.0', `${kept} of ${NESTED_KEY_ATTACKS.length} reach the agent without the gateway`)
  })
}

void test('an agent itself refuses what the gateway emptied', async (t) => {
  for (const version of VERSIONS) {
    const { url, alice } = await startAgentScene(t, AG_UI[version].startAgent)
    for (const message of [
      { id: 'm1', role: 'user', content: { secret: 1 } },
      { id: 'm1', role: 'user', content: [{ type: 'other', secret: 1 }] },
      { id: 'm1', role: 'reasoning', content: [{ type: 'text', text: 'x' }] },
    ]) {
      const { status } = await call(url, { token: alice, body: runInput(crypto.randomUUID(), 'x', { messages: [message] }) })
      t.equal(status, 400, `${version} ${JSON.stringify(message)}`)
    }
  }
})

const USAGE = [{ provider: 'example', model: 'echo', inputTokens: 3, outputTokens: 5, totalTokens: 8 }]
const RESUME = [{ interruptId: 'interrupt-1', status: 'resolved', payload: { decision: 'yes' } }]

/** What 1.0 brought, by what the user says. */
const ENDS: readonly (readonly [said: string, more: Record<string, unknown>, events: readonly object[]])[] = [
  [
    'interrupt',
    {},
    [
      { type: 'SUBAGENT_STARTED', subagentRunId: 'subagent-1', name: 'researcher' },
      { type: 'SUBAGENT_FINISHED', outcome: { type: 'suspended', interruptIds: ['interrupt-1'] } },
      { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: [{ id: 'interrupt-1' }] }, usage: USAGE },
    ],
  ],
  ['resumed', { resume: RESUME }, [{ type: 'RUN_FINISHED', outcome: { type: 'success' }, usage: USAGE }]],
  ['cancel', {}, [{ type: 'RUN_FINISHED', outcome: { type: 'cancelled' }, usage: USAGE }]],
  [
    'fail',
    {},
    [
      { type: 'SUBAGENT_STARTED' },
      { type: 'SUBAGENT_ERROR', message: 'no source', code: 'no-source' },
      { type: 'RUN_ERROR', message: 'It failed.', code: 'failed', usage: USAGE },
    ],
  ],
]

async function bytesOf(url: string, token: string, asked: Asked, body: object): Promise<Uint8Array<ArrayBuffer>> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: MEDIA_TYPES[asked] }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`)
  return new Uint8Array(await answer.arrayBuffer())
}

for (const asked of ['events', 'binary'] as const) {
  void test(`what an agent of 1.0 answers by ${asked} passes byte by byte, and the client reads it`, async (t) => {
    const { url, agent, alice } = await startAgentScene(t, AG_UI['1.0'].startAgent)
    for (const [said, more, events] of ENDS) {
      const body = { ...runInput(crypto.randomUUID(), said, more), protocolVersion: '1.0' }
      const through = await bytesOf(url, alice, asked, body)
      t.ok(Buffer.from(through).equals(await bytesOf(agent.url, alice, asked, body)), said)
      const read = await AG_UI['1.0'].eventsIn(through, asked)
      t.match(read.slice(-events.length), events, said)
      t.match(read[0], { type: 'RUN_STARTED', protocolVersion: '1.0' })
    }
    t.match(
      agent.requests.map(({ input }) => input?.['resume']),
      [undefined, undefined, RESUME, RESUME, undefined],
    )
  })

  void test(`the client of 1.0 is interrupted and goes on by ${asked}`, async (t) => {
    const { url, agent, alice } = await startAgentScene(t, AG_UI['1.0'].startAgent)
    const client = AG_UI['1.0'].client(url, crypto.randomUUID(), alice, asked)
    t.match(await answerTo(client, 'interrupt'), /^Hello alice/)
    const { newMessages } = await client.runAgent({ resume: RESUME })
    t.match(newMessages, [{ content: `Resumed with ${JSON.stringify(RESUME)}` }])
    t.match(agent.requests[1]?.input, { resume: RESUME, protocolVersion: '1.0' })
  })
}
