/**
 * Attack: one backend behind two public paths (CWE-288). If each path had its own owners, a user could run somebody else's
 * thread at the second path, and read what the backend holds of it. Such a configuration is refused; with one scope for both
 * paths, a thread has one owner on both.
 */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { startUpstream, events, json, type Answering } from '../../testing/support/upstream.ts'

/** A backend that keeps what was said on a thread, whichever way it was asked. */
const remembering = (): Answering => {
  const said: string[] = []
  return (request, response) => {
    if (request.method === 'GET') return json({ messages: said })(request, response)
    said.push(JSON.stringify(request.json))
    return events({ type: 'MESSAGES_SNAPSHOT', messages: said })(request, response)
  }
}

void test('the same backend at two paths does not start without a scope for both', async (t) => {
  const upstream = await startUpstream(remembering())
  t.teardown(() => upstream.close())
  const config = { upstreams: { v2: { url: upstream.url, basePath: '/api/copilotkit', publicPath: '/v2' } } }
  await t.rejects(gateBefore(t, upstream.url, { config }), /is the same place as upstream/)
})

void test('with one scope, a thread has one owner on both paths', async (t) => {
  const upstream = await startUpstream(remembering())
  t.teardown(() => upstream.close())
  const v2 = { url: upstream.url, basePath: '/api/copilotkit', publicPath: '/v2', transport: 'multi-route', scope: 'upstream' }
  const gate = await gateBefore(t, upstream.url, { config: { upstreams: { v2 } } })
  const { origin } = new URL(gate.base)
  const at = [gate.base, `${origin}/v2`]
  const own = await call(`${at[0]}/agent/default/run`, {
    token: gate.alice,
    body: runInput('t1', 'a secret of alice'),
    transport: 'multi-route',
  })
  t.equal(own.status, 200)
  for (const base of at) {
    const stolen = await call(`${base}/agent/default/run`, { token: gate.bob, body: runInput('t1'), transport: 'multi-route' })
    t.same([stolen.status, codeOf(stolen)], [403, 'not-owner'], base)
    t.notMatch(stolen.text, 'a secret of alice')
    const read = await call(`${base}/threads/t1/messages`, { token: gate.bob, transport: 'multi-route' })
    t.same([read.status, codeOf(read)], [403, 'not-owner'], base)
    t.equal((await call(`${base}/threads/t1/messages`, { token: gate.alice, transport: 'multi-route' })).status, 200, base)
  }
})

void test('a grant, its end and a deletion on one path are true on the other', async (t) => {
  const upstream = await startUpstream(remembering())
  t.teardown(() => upstream.close())
  const v2 = { url: upstream.url, basePath: '/api/copilotkit', publicPath: '/v2', transport: 'multi-route', scope: 'upstream' }
  const credential = 'c'.repeat(40)
  const gate = await gateBefore(t, upstream.url, { config: { upstreams: { v2 }, admin: { port: 0, credential } } })
  const other = `${new URL(gate.base).origin}/v2`
  await call(`${gate.base}/agent/default/run`, { token: gate.alice, body: runInput('t1'), transport: 'multi-route' })
  const grants = `${gate.gateway.adminUrl}/threads/t1/grants`
  const body = { user: 'corp:bob', right: 'read' }
  t.equal((await call(grants, { token: credential, body, transport: 'multi-route' })).status, 201)
  const read = async () => (await call(`${other}/threads/t1/messages`, { token: gate.bob, transport: 'multi-route' })).status
  t.equal(await read(), 200)
  await call(grants, { method: 'DELETE', token: credential, body: { user: 'corp:bob' }, transport: 'multi-route' })
  t.equal(await read(), 403)
})
