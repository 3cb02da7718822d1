/** Only a run writes a row: everything else about a thread that nobody owns leaves the table alone. */
import { test } from 'tap'
import { call, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { owners } from '../support/rows.ts'
import { json } from '../support/upstream.ts'

void test('connect, suggest and every other route about an unknown thread write no row', async (t) => {
  const { base, alice, olga, gateway } = await gated(t, json({ threads: [{ id: 't1' }] }))
  const body = runInput('t1')
  for (const token of [alice, olga]) {
    await call(`${base}/agent/default/connect`, { token, body })
    await call(`${base}/agent/default/suggest`, { token, body })
    await call(`${base}/agent/default/stop/t1`, { token, method: 'POST' })
    await call(`${base}/annotate`, { token, body: { threadId: 't1', type: 'x', payload: {} } })
    await call(`${base}/threads`, { token })
    await call(`${base}/threads/t1/messages`, { token })
    await call(`${base}/threads/t1/state`, { token })
    await call(`${base}/threads/t1/events`, { token })
    await call(`${base}/threads/t1/archive`, { token, method: 'POST' })
    await call(`${base}/threads/t1`, { token, method: 'PATCH', body: { name: 'x' } })
    await call(`${base}/threads/t1`, { token, method: 'DELETE' })
  }
  t.same(owners(gateway.folder), [])
})

void test('a run that is refused here writes no row', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t)
  const run = `${base}/agent/default/run`
  const answers = [
    await call(run, { body: runInput('t1') }),
    await call(run, { token: `${alice}x`, body: runInput('t1') }),
    await call(`${base}/agent/toString/run`, { token: alice, body: runInput('t1') }),
    await call(run, { token: alice, body: runInput('clear') }),
    await call(run, { token: alice, body: runInput('') }),
    await call(run, { token: alice, body: runInput(['t1']) }),
    await call(run, { token: alice, body: runInput('t1'), headers: { 'content-type': 'text/plain' } }),
    await call(run, { token: alice, body: runInput('t1'), headers: { 'content-encoding': 'gzip' } }),
  ]
  t.same(
    answers.map(({ status }) => status),
    [401, 401, 400, 400, 400, 400, 415, 415],
  )
  t.same(owners(gateway.folder), [])
  t.same(upstream.requests, [])
})
