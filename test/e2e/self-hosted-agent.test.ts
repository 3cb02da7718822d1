/**
 * A self-hosted agent behind the gateway and nothing else, from the ready configuration: the real client of AG-UI, by events and
 * by the binary stream, and an agent that verifies the forwarded token itself.
 */
import tap, { test } from 'tap'
import { startAgent } from '../../examples/agent.ts'
import { agentClient, MEDIA_TYPES, type Asked } from '../../examples/agent-client.ts'
import { startRuntime } from '../../examples/runtime.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { sayOnFailure } from '../../testing/support/decided.ts'
import { startTestGateway } from '../../testing/support/gateway.ts'
import { owners } from '../../testing/support/rows.ts'
import { startAgentScene } from './agent-scene.ts'

// The client tells of every run that fails.
tap.capture(console, 'error')

/** What the agent said to a message, as the client has it when the run is over. */
async function answerTo(url: string, thread: string, token: string, text: string, asked: Asked): Promise<string> {
  const client = agentClient(url, thread, token, asked)
  client.messages = [{ id: crypto.randomUUID(), role: 'user', content: text }]
  const { newMessages } = await client.runAgent()
  return newMessages.map(({ content }) => (typeof content === 'string' ? content : '')).join('')
}

for (const asked of ['events', 'binary'] as const) {
  void test(`${asked}: the agent knows who is asking, and a thread is its owner's`, async (t) => {
    const { url, agent, alice, bob, gateway } = await startAgentScene(t, startAgent)
    const thread = crypto.randomUUID()
    t.match(await answerTo(url, thread, alice, 'hello', asked), /^Hello alice.* You said: hello/)
    t.match(await answerTo(url, thread, alice, 'again', asked), /You said: again/)
    t.match(agent.requests, [{ user: { user_id: 'alice' }, headers: { accept: MEDIA_TYPES[asked] } }, {}])
    await t.rejects(answerTo(url, thread, bob, 'hello', asked), /403/)
    t.equal(agent.requests.length, 2, "bob's run never reached the agent")
    t.match(await answerTo(url, crypto.randomUUID(), bob, 'hello', asked), /^Hello bob/)
    t.match(
      owners(gateway.folder).find((row) => row.startsWith(thread)),
      /=corp:alice$/,
    )
  })
}

void test('whoever shows no good token is refused by the gateway, and past it by the agent', async (t) => {
  const { url, agent, alice } = await startAgentScene(t, startAgent)
  for (const token of [undefined, 'nonsense', `${alice}x`]) {
    const answer = await call(url, { ...(token === undefined ? {} : { token }), body: runInput('t1') })
    t.equal(answer.status, 401)
  }
  t.same(agent.requests, [])
  t.equal((await call(agent.url, { body: runInput('t1') })).status, 401)
})

void test('beside a runtime that uses the same agent, the threads of each are its own', async (t) => {
  const { agent, alice, bob, issuer } = await startAgentScene(t, startAgent)
  const runtime = await startRuntime({ agentUrl: agent.url })
  const both = await startTestGateway({
    upstream: { url: runtime.url },
    agents: { research: { url: new URL(agent.url).origin } },
    authentication: { issuers: { corp: { issuer: issuer.issuer, audiences: [issuer.audience], algorithms: ['RS256'] } } },
  })
  sayOnFailure(t, both)
  t.teardown(async () => {
    await both.close()
    await runtime.close()
  })
  await both.ready()
  const base = `${both.url}/api/copilotkit`
  const thread = crypto.randomUUID()
  t.equal((await call(`${base}/agent/remote/run`, { token: alice, body: runInput(thread) })).status, 200)
  t.match(await answerTo(`${both.url}/agents/research`, thread, bob, 'hello', 'events'), /^Hello bob/)
  const foreign = await call(`${base}/threads/${thread}/messages`, { token: bob })
  t.same([foreign.status, codeOf(foreign)], [403, 'not-owner'])
  t.equal((await call(`${both.url}/agents/research`, { token: alice, body: runInput(thread) })).status, 403)
})
