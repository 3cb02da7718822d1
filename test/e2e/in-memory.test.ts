/** The runtime with its own runner behind a gateway from the ready configuration, with the real client core. */
import { test } from 'tap'
import { startScene } from './scene.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'

const ROW = { client: 'rest', upstream: 'multi-route' } as const
const DEPLOYMENT = { deployment: { name: 'in-memory' } }

void test('two people have their own threads, lists and replays, and what is older than the gateway is nobody’s', async (t) => {
  const scene = await startScene(t, ROW, DEPLOYMENT)
  const { base, tokens, runtime } = scene.stack
  const old = crypto.randomUUID()
  const direct = `${runtime.url}${runtime.basePath}`
  await call(`${direct}/agent/default/run`, { body: runInput(old, 'before there was a gateway') })

  const [alice, bob] = await Promise.all([scene.open('alice'), scene.open('bob')])
  const thread = crypto.randomUUID()
  await alice.say(thread, 'hello')
  await bob.say(crypto.randomUUID(), 'hello')
  const idsOf = async (token: string): Promise<readonly string[]> =>
    ((await call(`${base}/threads`, { token })).json as { threads: { id: string }[] }).threads.map(({ id }) => id)
  t.same(await idsOf(tokens.alice), [thread])
  t.notOk((await idsOf(tokens.bob)).includes(thread))

  for (const [path, status] of [
    [`/threads/${thread}/messages`, 403],
    [`/threads/${thread}/events`, 404],
    [`/threads/${thread}/state`, 404],
    [`/threads/${old}/messages`, 403],
    [`/threads/${old}/events`, 404],
  ] as const) {
    t.equal((await call(`${base}${path}`, { token: tokens.bob })).status, status, path)
  }
  const claimed = await call(`${base}/agent/default/run`, { token: tokens.bob, body: runInput(old) })
  t.same([claimed.status, codeOf(claimed)], [403, 'not-owner'], 'verify finds a history')
  const replayed = await call(`${base}/agent/default/connect`, { token: tokens.alice, body: runInput(thread) })
  t.match(replayed.text, /hello/)
  const refused = await call(`${base}/threads/clear`, { method: 'POST', token: tokens.alice })
  t.equal(refused.status, 403)
  t.same(await idsOf(tokens.alice), [thread], 'nobody has wiped anything')
})
