/** Two gateways on one store are one gate: a claim at one holds at the other, at once. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated } from '../../testing/support/gated.ts'
import { owners } from '../../testing/support/rows.ts'
import { events, json } from '../../testing/support/upstream.ts'

void test('what one gateway claimed is foreign to others at the second', async (t) => {
  const one = await gated(t, events())
  const two = await gateBefore(t, one.upstream.url, { shared: one.gateway.folder, signer: one.signer })
  t.equal((await call(`${one.base}/agent/default/run`, { token: one.alice, body: runInput('t1') })).status, 200)
  t.equal(codeOf(await call(`${two.base}/agent/default/run`, { token: one.bob, body: runInput('t1') })), 'not-owner')
  t.equal((await call(`${two.base}/agent/default/run`, { token: one.alice, body: runInput('t1') })).status, 200)
})

void test('of first runs at both, one user’s pass', async (t) => {
  const one = await gated(t, events())
  const two = await gateBefore(t, one.upstream.url, { shared: one.gateway.folder, signer: one.signer })
  const bases = [one.base, two.base]
  for (const threadId of ['t1', 't2', 't3', 't4', 't5']) {
    const passed = new Set<string>()
    await Promise.all(
      Array.from({ length: 12 }, async (_, at) => {
        const who = at % 3 === 0 ? 'corp:alice' : 'corp:bob'
        const token = at % 3 === 0 ? one.alice : one.bob
        const answer = await call(`${bases[at % 2]}/agent/default/run`, { token, body: runInput(threadId) })
        if (answer.status === 200) passed.add(who)
        else t.equal(codeOf(answer), 'not-owner')
      }),
    )
    t.same(
      [...passed].map((who) => `${threadId}=${who}`),
      owners(one.gateway.folder).filter((row) => row.startsWith(threadId)),
    )
  }
})

void test('a claim that one gateway released may be taken at the other', async (t) => {
  const one = await gated(t, json({}, 400))
  const two = await gateBefore(t, one.upstream.url, { shared: one.gateway.folder, signer: one.signer })
  await call(`${one.base}/agent/default/run`, { token: one.alice, body: runInput('t1') })
  one.upstream.answer(events())
  t.equal((await call(`${two.base}/agent/default/run`, { token: one.bob, body: runInput('t1') })).status, 200)
  t.same(owners(one.gateway.folder), ['t1=corp:bob'])
})

void test('a list cursor of one gateway is good at the other', async (t) => {
  const one = await gated(t, events())
  const two = await gateBefore(t, one.upstream.url, { shared: one.gateway.folder, signer: one.signer })
  for (const id of ['t1', 't2']) await call(`${one.base}/agent/default/run`, { token: one.alice, body: runInput(id) })
  one.upstream.answer(json({ threads: [{ id: 't1' }, { id: 't2' }] }))
  const first = (await call(`${one.base}/threads?limit=1`, { token: one.alice })).json as { nextCursor: string }
  const second = await call(`${two.base}/threads?limit=1&cursor=${first.nextCursor}`, { token: one.alice })
  t.same(second.json, { threads: [{ id: 't2' }], nextCursor: null })
})
