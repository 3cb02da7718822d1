/** A deleted thread stays its owner's: nobody else can ever claim it, and only the owner's run brings it back. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { rows } from '../../testing/support/rows.ts'
import { events, json } from '../../testing/support/upstream.ts'

/** A gateway where alice's thread t1 was deleted, with this answer of the upstream. */
async function deleted(t: Parameters<typeof gated>[0], status: number): Promise<GatedUpstream> {
  const gate = await gated(t, events())
  await call(`${gate.base}/agent/default/run`, { token: gate.alice, body: runInput('t1') })
  gate.upstream.answer(status === 204 ? (_request, response) => void response.writeHead(204).end() : json({ ok: 1 }, status))
  const answer = await call(`${gate.base}/threads/t1`, { method: 'DELETE', token: gate.alice, body: { agentId: 'default' } })
  t.equal(answer.status, status)
  return gate
}

void test('a confirmed DELETE leaves a tombstone: foreign to others, unknown to its owner', async (t) => {
  for (const status of [200, 204]) {
    const { base, alice, bob, upstream, gateway } = await deleted(t, status)
    const [row] = rows(gateway.folder)
    t.type(row?.deleted_at, 'number')
    t.equal(row?.user_id, 'corp:alice')
    const before = upstream.requests.length
    for (const path of ['run', 'connect', 'suggest']) {
      t.equal(codeOf(await call(`${base}/agent/default/${path}`, { token: bob, body: runInput('t1') })), 'not-owner', path)
    }
    for (const token of [alice, bob]) {
      t.equal(codeOf(await call(`${base}/threads/t1/messages`, { token })), 'not-owner')
      t.equal(codeOf(await call(`${base}/threads/t1/state`, { token })), 'not-found')
    }
    const connect = await call(`${base}/agent/default/connect`, { token: alice, body: runInput('t1') })
    t.equal(connect.status, 200)
    t.equal(connect.text, '')
    t.equal(upstream.requests.length, before, 'none of it reached the upstream')
  }
})

void test('it is in nobody’s list', async (t) => {
  const { base, alice, bob, upstream } = await deleted(t, 200)
  upstream.answer(json({ threads: [{ id: 't1' }] }))
  for (const token of [alice, bob]) t.same((await call(`${base}/threads`, { token })).json, { threads: [], nextCursor: null })
})

void test('the owner’s run revives it', async (t) => {
  const { base, alice, upstream, gateway } = await deleted(t, 200)
  upstream.answer(events())
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 200)
  t.match(rows(gateway.folder), [{ user_id: 'corp:alice', deleted_at: null, provisional: 0 }])
  upstream.answer(json({ messages: [] }))
  t.equal((await call(`${base}/threads/t1/messages`, { token: alice })).status, 200)
})

void test('a run that was refused leaves the tombstone as it was', async (t) => {
  const { base, alice, bob, upstream, gateway } = await deleted(t, 200)
  upstream.answer(json({}, 400))
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  t.match(rows(gateway.folder), [{ user_id: 'corp:alice', provisional: 0 }])
  t.type(rows(gateway.folder)[0]?.deleted_at, 'number')
  upstream.answer(events())
  t.equal(codeOf(await call(`${base}/agent/default/run`, { token: bob, body: runInput('t1') })), 'not-owner')
})

void test('a DELETE that the upstream did not confirm deletes nothing', async (t) => {
  for (const status of [404, 422, 500]) {
    const { base, alice, upstream, gateway } = await deleted(t, status)
    t.match(rows(gateway.folder), [{ user_id: 'corp:alice', deleted_at: null, provisional: 0 }], String(status))
    upstream.answer(json({ messages: [] }))
    t.equal((await call(`${base}/threads/t1/messages`, { token: alice })).status, 200)
  }
})

void test('threads/clear leaves every row', async (t) => {
  const { base, alice, bob, olga, upstream, gateway } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  upstream.answer(json({ cleared: 1 }))
  t.equal((await call(`${base}/threads/clear`, { method: 'POST', token: olga })).status, 200)
  t.match(rows(gateway.folder), [{ thread_id: 't1', user_id: 'corp:alice', deleted_at: null }])
  t.equal(codeOf(await call(`${base}/agent/default/run`, { token: bob, body: runInput('t1') })), 'not-owner')
})

void test('a name is noted when the upstream has confirmed it', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  upstream.answer(json({}, 422))
  await call(`${base}/threads/t1`, { method: 'PATCH', token: alice, body: { name: 'first' } })
  t.equal(rows(gateway.folder)[0]?.name, null)
  upstream.answer(json({}))
  await call(`${base}/threads/t1`, { method: 'PATCH', token: alice, body: { name: 'second' } })
  t.equal(rows(gateway.folder)[0]?.name, 'second')
  await call(`${base}/threads/t1`, { method: 'PATCH', token: alice, body: { archived: true } })
  t.equal(rows(gateway.folder)[0]?.name, 'second')
})
