/**
 * The runtime has two transports, and clients and upstreams need not have the same one. All four combinations, each with
 * the real client core on one side and the real runtime on the other: a chat looks the same to everybody in all of them.
 */
import { test } from 'tap'
import { VERSIONS } from '../../testing/support/agui-versions.ts'
import type { ChatCore } from '../../testing/support/chat-core.ts'
import { runInput } from '../../testing/support/client.ts'
import { dictation, refusals, replaying, resources, signedOut, stopping, suggesting } from './chat-steps.ts'
import { startScene, type Row } from './scene.ts'

const ROWS: readonly Row[] = [
  { client: 'rest', upstream: 'multi-route' },
  { client: 'single', upstream: 'multi-route' },
  { client: 'rest', upstream: 'single-route' },
  { client: 'single', upstream: 'single-route' },
]

for (const row of ROWS) {
  void test(`a client with transport ${row.client} before a ${row.upstream} runtime`, async (t) => {
    const scene = await startScene(t, row)
    const thread = crypto.randomUUID()
    const [alice, bob] = await Promise.all([scene.open('alice'), scene.open('bob')])
    for (const { core } of [alice, bob]) {
      t.equal(core.runtimeTransport, row.client)
      t.strictSame(Object.keys(core.agents), ['default', 'remote'])
      t.match(core.threadEndpoints, { list: true, inspect: true, mutations: false }, 'the drawer may ask for threads')
      t.ok(core.suggestions)
      t.ok(core.audioFileTranscriptionEnabled)
    }
    await replaying(t, scene, alice, thread)
    t.strictSame(await alice.threads(), [thread], 'the list of alice')
    t.strictSame(await bob.threads(), [], 'the list of bob')
    await resources(t, alice, thread)
    await refusals(t, bob, thread)
    await stopping(t, scene, alice, bob)
    await suggesting(t, scene, alice, thread)
    await dictation(t, alice)
    await signedOut(t, scene)
    t.strictSame(alice.errors, [], 'alice was told of no error')
    await scene.check()
  })
}

for (const row of ROWS) {
  for (const agent of VERSIONS) {
    void test(`transport ${row.client} before a ${row.upstream} runtime before an agent of AG-UI ${agent}`, async (t) => {
      const scene = await startScene(t, row, { agent })
      const thread = crypto.randomUUID()
      const [alice, bob] = await Promise.all([scene.open('alice', 'remote'), scene.open('bob', 'remote')])
      t.match(await alice.say(thread, 'hello'), [
        { role: 'user', text: 'hello' },
        { role: 'assistant', text: /^Hello alice.* You said: hello$/ },
      ])
      await bob.say(thread, 'hello')
      t.match(bob.errors, [{ status: 403, refusal: 'not-owner' }])
      const input = runInput(thread, 'hello', { messages: [{ id: 'm1', role: 'user', content: 'again', secret: 1 }] })
      const { status } = await scene.stack.call(`${scene.stack.base}/agent/remote/run`, {
        token: scene.stack.tokens.alice,
        body: input,
      })
      t.equal(status, 200)
      const { requests } = scene.stack.agent
      t.equal(requests.length, 2, "bob's run never reached the agent")
      t.notMatch(JSON.stringify(requests.at(-1)?.input), /secret/)
      t.strictSame(alice.errors, [])
    })
  }
}

for (const upstream of ['multi-route', 'single-route'] as const) {
  void test(`a client that finds the transport out itself, before a ${upstream} runtime`, async (t) => {
    const scene = await startScene(t, { client: 'auto', upstream })
    const alice = await scene.open('alice')
    t.equal(alice.core.runtimeTransport, 'rest', 'GET /info is served whatever the runtime is')
    t.strictSame(requests(alice), ['GET /api/copilotkit/info 200'])
    await replaying(t, scene, alice, crypto.randomUUID())
    const nobody = await scene.open()
    t.notOk(nobody.connected)
    t.match(nobody.errors, [{ code: 'runtime_info_fetch_failed', message: /status 401: Sign in: no credential was sent\.$/ }])
    t.strictSame(requests(nobody), ['GET /api/copilotkit/info 401', 'POST /api/copilotkit 401'], 'both transports are tried')
  })
}

function requests({ sent }: ChatCore): string[] {
  return sent.map(({ method, target, status }) => `${method} ${target} ${status ?? 'unanswered'}`)
}
