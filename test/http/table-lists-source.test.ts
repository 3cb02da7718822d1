/** Where a list comes from, the upstream or the table: by configuration, and by what the upstream says and answers. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test } from 'tap'
import { codeOf } from '../../testing/support/client.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { NO_LISTS, unlisted } from '../../testing/support/unlisted.ts'
import { json } from '../../testing/support/upstream.ts'

/** Another process takes the table away. */
function breakStore(folder: string): void {
  const database = new Database(join(folder, 'ownership.db'))
  database.exec('ALTER TABLE threads RENAME TO gone')
  database.close()
}

void testEachPair('auto asks an upstream that says nothing of lists, and answers its 422 from the table', async (t, pair) => {
  const { upstream: transport } = pair
  const { upstream, run, ids, list, alice, bob, asked, gateway } = await unlisted(t, 'auto', {
    pair,
    config: { upstream: { transport } },
  })
  await gateway.ready()
  await run(alice, 'a1', 'a2')
  await run(bob, 'b1')
  if (transport === 'single-route') return t.match(await list(alice), NO_LISTS, 'it says that it has them: its answer passes')
  t.strictSame(await ids(alice), ['a2', 'a1'])
  const { nextCursor } = await list(alice, '?limit=1')
  t.strictSame(asked(), ['GET /threads', 'GET /threads'])
  t.strictSame(await ids(alice, `?limit=1&cursor=${nextCursor}`), ['a1'])
  t.equal(asked().length, 2, 'what the table began it goes on with')
  upstream.answer(json({ threads: [{ id: 'b1' }, { id: 'a1', name: 'its own' }] }))
  t.strictSame(
    await list(alice),
    { threads: [{ id: 'a1', name: 'its own' }], nextCursor: null },
    'a list of the upstream’s is taken from it',
  )
})

void test('auto takes no other answer than 422 for a lack of lists', async (t) => {
  const { base, call, upstream, run, alice } = await unlisted(t, 'auto')
  await run(alice, 'a1')
  for (const status of [400, 401, 403, 404, 405, 409, 429, 500, 501, 503]) {
    upstream.answer(json({ error: 'no' }, status))
    const answer = await call(`${base}/threads`, { token: alice })
    t.strictSame([answer.status, answer.json], [status, { error: 'no' }])
  }
})

void test('upstream: a 422 passes, and so does every change that the runtime can’t do', async (t) => {
  const { base, call, run, list, change, alice, asked } = await unlisted(t, 'upstream')
  await run(alice, 'a1')
  t.match(await list(alice), NO_LISTS)
  for (const [method, path, body] of [
    ['PATCH', 'a1', { name: 'x' }],
    ['POST', 'a1/archive', {}],
    ['DELETE', 'a1', {}],
  ] as const) {
    const answer = await change(alice, method, path, body)
    t.strictSame([answer.status, answer.json], [422, NO_LISTS])
  }
  t.strictSame(asked(), ['GET /threads', 'PATCH /threads/a1', 'POST /threads/a1/archive', 'DELETE /threads/a1'])
  t.match((await call(`${base}/info`, { token: alice })).json, { threadEndpoints: { list: false, mutations: false } })
})

void test('under observe callers get what the upstream gives, whatever is configured', async (t) => {
  for (const lists of ['table', 'auto'] as const) {
    const { base, call, run, list, change, alice, upstream } = await unlisted(t, lists, { config: { enforcement: 'observe' } })
    await run(alice, 'a1')
    t.match(await list(alice), NO_LISTS)
    t.equal((await change(alice, 'PATCH', 'a1', { name: 'x' })).status, 422)
    t.match((await call(`${base}/info`, { token: alice })).json, { threadEndpoints: { list: false, mutations: false } })
    upstream.answer(json({ threads: [{ id: 'b1' }] }))
    t.strictSame(await list(alice), { threads: [{ id: 'b1' }] })
  }
})

void test('the list is there while the upstream is away, and so is not while the store is', async (t) => {
  const { base, call, run, ids, alice, upstream, gateway } = await unlisted(t, 'table')
  await run(alice, 'a1')
  await gateway.ready()
  await upstream.close()
  t.strictSame(await ids(alice), ['a1'])
  breakStore(gateway.folder)
  const answer = await call(`${base}/threads`, { token: alice })
  t.strictSame([answer.status, codeOf(answer)], [503, 'store-unavailable'])
})
