/** The list cursor is the gateway's own: nobody can read, make, change or borrow one. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { events, json } from '../support/upstream.ts'

async function withCursor(t: Parameters<typeof gated>[0]) {
  const gate = await gated(t, events())
  for (const id of ['a1', 'a2', 'a3']) await call(`${gate.base}/agent/default/run`, { token: gate.alice, body: runInput(id) })
  await call(`${gate.base}/agent/default/run`, { token: gate.bob, body: runInput('b1') })
  gate.upstream.answer(json({ threads: [{ id: 'a1' }, { id: 'a2' }, { id: 'a3' }, { id: 'b1' }], nextCursor: null }))
  const page = (await call(`${gate.base}/threads?limit=1`, { token: gate.alice })).json as { nextCursor: string }
  return { ...gate, cursor: page.nextCursor, before: gate.upstream.requests.length }
}

void test('a cursor that was not sealed here is 400 and the upstream is not asked', async (t) => {
  const { base, alice, upstream, cursor, before } = await withCursor(t)
  const bytes = Buffer.from(cursor, 'base64url')
  const flipped = (at: number): string => {
    const copy = Buffer.from(bytes)
    copy[at]! ^= 1
    return copy.toString('base64url')
  }
  for (const forged of [
    '',
    'page-1',
    'null',
    'AAAA',
    Buffer.from('[null,0]').toString('base64url'),
    Buffer.alloc(bytes.length).toString('base64url'),
    cursor.slice(0, -1),
    cursor.slice(0, -4),
    cursor.slice(4),
    `${cursor}A`,
    `${cursor}%3D`,
    `${cursor}%20`,
    flipped(0),
    flipped(14),
    flipped(bytes.length - 1),
  ]) {
    const answer = await call(`${base}/threads?limit=1&cursor=${forged}`, { token: alice })
    t.equal(answer.status, 400, forged)
    t.equal(codeOf(answer), 'target-malformed', forged)
  }
  t.equal(upstream.requests.length, before)
})

void test('a cursor is good for the user and the query that it was made for, and for no other', async (t) => {
  const { base, alice, bob, upstream, cursor, before } = await withCursor(t)
  for (const [token, query] of [
    [bob, ''],
    [alice, '&agentId=default'],
    [alice, '&includeArchived=true'],
  ] as const) {
    const answer = await call(`${base}/threads?limit=1&cursor=${cursor}${query}`, { token })
    t.equal(answer.status, 400)
    t.equal(codeOf(answer), 'target-malformed')
  }
  t.equal(upstream.requests.length, before)
  const rest = await call(`${base}/threads?limit=5&cursor=${cursor}`, { token: alice })
  t.same(rest.json, { threads: [{ id: 'a2' }, { id: 'a3' }] }, 'another limit is no other query')
})

void test('a cursor tells nothing: neither the upstream’s own nor how far it is, and no two are alike', async (t) => {
  const { base, alice, upstream, cursor } = await withCursor(t)
  upstream.answer(json({ threads: [{ id: 'b1' }, { id: 'a1' }, { id: 'a2' }], nextCursor: 'b1-is-the-last' }))
  const page = (await call(`${base}/threads?limit=1`, { token: alice })).json as { nextCursor: string }
  for (const one of [cursor, page.nextCursor]) {
    t.match(one, /^[A-Za-z0-9_-]+$/)
    t.notMatch(Buffer.from(one, 'base64url').toString('latin1'), /is-the-last|null/)
  }
  const again = (await call(`${base}/threads?limit=1`, { token: alice })).json as { nextCursor: string }
  t.not(again.nextCursor, page.nextCursor)
})
