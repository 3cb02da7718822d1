/** Runs that meet on one new thread: the row goes only with the last that failed, and belongs to one user for ever. */
import { test } from 'tap'
import { call, codeOf, runInput, type Reply } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { owners, rows } from '../../testing/support/rows.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'

/** Starts two runs of alice's on one thread; both are at the upstream when it returns. */
async function twoRuns(gate: GatedUpstream): Promise<{ answer(at: 0 | 1, how: Answering): Promise<Reply> }> {
  const { base, alice, upstream } = gate
  const replies: ((how: Answering) => void)[] = []
  upstream.answer((request, response) => void replies.push((how) => void how(request, response)))
  const runs: Promise<Reply>[] = []
  for (const count of [1, 2]) {
    runs.push(call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') }))
    await upstream.arrived(count)
  }
  return {
    answer: async (at, how) => {
      replies[at]!(how)
      return runs[at]!
    },
  }
}

void test('the first run fails and the second is confirmed: the row stays', async (t) => {
  const gate = await gated(t)
  const runs = await twoRuns(gate)
  t.equal((await runs.answer(0, json({}, 400))).status, 400)
  t.same(owners(gate.gateway.folder), ['t1=corp:alice'], 'the other run is still there')
  t.equal((await runs.answer(1, events())).status, 200)
  t.match(rows(gate.gateway.folder), [{ user_id: 'corp:alice', provisional: 0 }])
})

void test('the first run is confirmed and the second fails: the row stays', async (t) => {
  const gate = await gated(t)
  const runs = await twoRuns(gate)
  t.equal((await runs.answer(0, events())).status, 200)
  t.equal((await runs.answer(1, json({}, 400))).status, 400)
  t.match(rows(gate.gateway.folder), [{ user_id: 'corp:alice', provisional: 0 }])
})

void test('both fail: the row goes with the last', async (t) => {
  const gate = await gated(t)
  const runs = await twoRuns(gate)
  await runs.answer(1, json({}, 404))
  t.same(owners(gate.gateway.folder), ['t1=corp:alice'])
  await runs.answer(0, json({}, 400))
  t.same(owners(gate.gateway.folder), [])
})

void test('one fails and the other may have started: the row stays', async (t) => {
  const gate = await gated(t)
  const runs = await twoRuns(gate)
  await runs.answer(0, json({}, 500))
  await runs.answer(1, json({}, 400))
  t.same(owners(gate.gateway.folder), ['t1=corp:alice'])
})

void test('while a claim is provisional nobody else may have the thread', async (t) => {
  const gate = await gated(t)
  const runs = await twoRuns(gate)
  for (const path of ['run', 'connect', 'suggest']) {
    const answer = await call(`${gate.base}/agent/default/${path}`, { token: gate.bob, body: runInput('t1') })
    t.equal(codeOf(answer), 'not-owner', path)
  }
  t.equal(gate.upstream.requests.length, 2)
  await runs.answer(0, events())
  await runs.answer(1, events())
})

void test('a refusal on a thread that was confirmed long ago takes nothing away', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  upstream.answer(json({}, 404))
  for (let count = 0; count < 3; count += 1) await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  t.match(rows(gateway.folder), [{ user_id: 'corp:alice', provisional: 0, pending: 0 }])
})
