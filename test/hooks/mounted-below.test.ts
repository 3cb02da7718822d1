/**
 * Hooks below a router with a path. Express takes that path from `url`, but not from `originalUrl`, from which the runtime's
 * adapter makes the request if a parser has read the body. Hono takes it from neither.
 */
import { test } from 'tap'
import { codeOf, call, runInput } from '../../testing/support/client.ts'
import { ask } from '../../testing/support/raw.ts'
import { startScene } from './scene.ts'

const BASE = '/api/copilotkit'
const SECRET = 'a-secret-of-alice'

/** What the runtime is served for: with its base path as it sees it. */
const MOUNTS = [
  { adapter: 'express', gets: 'every request', posts: 200 },
  { adapter: 'express with a JSON parser', gets: 'requests without a body', posts: 404 },
  { adapter: 'hono', gets: 'nothing', posts: 404 },
] as const

for (const { adapter, gets, posts } of MOUNTS) {
  void test(`${adapter} below a path: ${gets} is served, and in no spelling another’s thread`, async (t) => {
    const { serve, runtime, lines, alice, bob } = await startScene(t)
    const plain = await serve({ adapter })
    const [hers, his] = [crypto.randomUUID(), crypto.randomUUID()]
    for (const [token, id, text] of [
      [alice, hers, SECRET],
      [bob, his, 'of bob'],
    ] as const) {
      t.match((await call(`${plain}/agent/default/run`, { token, body: runInput(id, text) })).text, /RUN_FINISHED/)
    }
    const { origin } = new URL(await serve({ adapter, below: '/chat' }))
    const list = await call(`${origin}/chat${BASE}/threads`, { token: bob })
    t.equal(list.status, adapter === 'hono' ? 404 : 200)
    const run = await call(`${origin}/chat${BASE}/agent/default/run`, { token: bob, body: runInput(his, 'more of bob') })
    t.equal(run.status, posts)
    const foreign = await call(`${origin}/chat${BASE}/agent/default/run`, { token: bob, body: runInput(hers) })
    t.same([foreign.status, codeOf(foreign)], posts === 200 ? [403, 'not-owner'] : [404, 'not-found'])

    runtime.requests.length = 0
    const before = lines.length
    const messages = `/threads/${hers}/messages`
    for (const target of [
      ...[`/chat${BASE}${messages}`, `/chat${BASE}/threads/${his}/../${hers}/messages`, `/chat/..${BASE}${messages}`],
      ...[`/chat${BASE}/..${BASE}${messages}`, `/chat/%2e%2e${BASE}${messages}`, `/chat%2F..${BASE}${messages}`],
      ...[`/chat/chat${BASE}${messages}`, `//chat${BASE}${messages}`, `/chat//${BASE}${messages}`, `/CHAT${BASE}${messages}`],
      ...[`/chat${BASE}/chat${BASE}${messages}`, `${BASE}/chat${BASE}${messages}`, `http://chat${BASE}${messages}`],
      ...[
        `http://other.example/chat${BASE}${messages}`,
        `/chat${BASE}\\threads\\${hers}\\messages`,
        `/chat\\..${BASE}${messages}`,
      ],
      ...[`/chat${BASE}/threads/${his}/messages#${messages}`, `/chat?${BASE}${messages}`, `/chat#${BASE}${messages}`],
    ]) {
      for (const request of [{ target }, { target: target.replace(messages, '/threads/clear'), method: 'POST', body: '{}' }]) {
        const answer = await ask(origin, { ...request, token: bob })
        t.notOk(answer.body.includes(SECRET), `${target}: ${answer.status}`)
      }
    }
    const reached = runtime.requests.map(({ method, url }) => `${method} ${url}`)
    t.same([...new Set(reached)], adapter === 'hono' ? [] : [`GET ${BASE}/threads/${his}/messages`])
    const permitted = lines.slice(before).filter(({ status }) => status === 200)
    t.equal(permitted.length, reached.length)
    t.ok(permitted.every(({ thread }) => thread === his))
    const own = await call(`${plain}${messages}`, { token: alice })
    t.match(own.text, SECRET)
  })
}
