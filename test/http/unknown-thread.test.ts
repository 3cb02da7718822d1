/** Threads that nobody owns: what a run and a suggestion may do with them is `ownership.unknownThread`, and no more. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { owners } from '../support/rows.ts'
import { events } from '../support/upstream.ts'

void test('claim: a run owns the thread, a suggestion passes and owns nothing, and the upstream is not asked', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t, events(), { config: { ownership: { unknownThread: 'claim' } } })
  t.equal((await call(`${base}/agent/default/suggest`, { token: alice, body: runInput('t1') })).status, 200)
  t.same(owners(gateway.folder), [])
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 200)
  t.same(owners(gateway.folder), ['t1=corp:alice'])
  t.same(
    upstream.requests.map(({ target }) => target),
    ['/api/copilotkit/agent/default/suggest', '/api/copilotkit/agent/default/run'],
  )
})

void test('deny: neither passes, and nothing reaches the upstream', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t, events(), { config: { ownership: { unknownThread: 'deny' } } })
  for (const path of ['run', 'suggest']) {
    const answer = await call(`${base}/agent/default/${path}`, { token: alice, body: runInput('t1') })
    t.equal(answer.status, 403)
    t.equal(codeOf(answer), 'not-owner')
  }
  t.same(owners(gateway.folder), [])
  t.same(upstream.requests, [])
})

void test('everywhere else an unknown thread is a foreign one, word for word', async (t) => {
  const { base, alice, bob, upstream } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('foreign') })
  const before = upstream.requests.length
  const ask = async (id: string): Promise<unknown[]> => {
    const answers = [
      await call(`${base}/threads/${id}/messages`, { token: bob }),
      await call(`${base}/threads/${id}/events`, { token: bob }),
      await call(`${base}/threads/${id}/state`, { token: bob }),
      await call(`${base}/threads/${id}`, { method: 'PATCH', token: bob, body: { name: 'x' } }),
      await call(`${base}/threads/${id}`, { method: 'DELETE', token: bob }),
      await call(`${base}/threads/${id}/archive`, { method: 'POST', token: bob }),
      await call(`${base}/agent/default/stop/${id}`, { method: 'POST', token: bob }),
      await call(`${base}/annotate`, { token: bob, body: { threadId: id, type: 'x', payload: {} } }),
    ]
    return answers.map((answer) => {
      const headers = [...answer.headers].filter(([name]) => name !== 'x-request-id' && name !== 'date')
      return { status: answer.status, headers, text: answer.text }
    })
  }
  const unknown = await ask('unknown')
  t.same(unknown, await ask('foreign'))
  t.match(
    unknown,
    [403, 404, 404, 403, 403, 403, 403, 403].map((status) => ({ status })),
  )
  t.equal(upstream.requests.length, before)
})
