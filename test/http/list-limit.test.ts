/** A page has at most `limit` items, also where the upstream takes no notice of it; a limit that is none is refused. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { events, json } from '../../testing/support/upstream.ts'

void test('the limit holds before an upstream that ignores it', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  const ids = Array.from({ length: 7 }, (_, at) => `t${at}`)
  for (const id of ids) await call(`${base}/agent/default/run`, { token: alice, body: runInput(id) })
  upstream.answer(json({ threads: ids.map((id) => ({ id })) }))
  for (const [limit, length] of [
    ['1', 1],
    ['6', 6],
    ['7', 7],
    ['8', 7],
    ['999999', 7],
  ] as const) {
    const { threads, nextCursor } = (await call(`${base}/threads?limit=${limit}`, { token: alice })).json as {
      threads: unknown[]
      nextCursor: string | null
    }
    t.equal(threads.length, length)
    t.equal(nextCursor === null, length === 7)
  }
})

void test('a limit that is no positive number is 400 and the upstream is not asked', async (t) => {
  const { base, alice, upstream } = await gated(t, json({ threads: [] }))
  for (const limit of ['0', '-1', 'abc', '', '1.5', '1e3', '0x1', '01', '+1', '%201', '1%20', '9999999', 'NaN', 'Infinity']) {
    const answer = await call(`${base}/threads?limit=${limit}`, { token: alice })
    t.equal(answer.status, 400, limit)
    t.equal(codeOf(answer), 'target-malformed', limit)
  }
  t.same(upstream.requests, [])
})
