/** Threads that nobody owns: what a run and a suggestion may do with them is `ownership.unknownThread`, and no more. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { owners } from '../../testing/support/rows.ts'
import { events } from '../../testing/support/upstream.ts'

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
