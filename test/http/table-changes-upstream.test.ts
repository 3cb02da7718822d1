/** Changes of threads that are listed from the table are the upstream's to do first: what it answers, and what comes of it. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test } from 'tap'
import { codeOf } from '../../testing/support/client.ts'
import { unlisted } from '../../testing/support/unlisted.ts'
import { json } from '../../testing/support/upstream.ts'

void test('what the upstream does itself passes as it answers, and is noted', async (t) => {
  const { run, list, ids, change, alice, upstream } = await unlisted(t, 'table')
  await run(alice, 'a1', 'a2')
  upstream.answer(json({ its: 'own answer' }))
  const named = await change(alice, 'PATCH', 'a1', { name: 'Holidays' })
  t.strictSame([named.status, named.json], [200, { its: 'own answer' }])
  t.match(await list(alice), { threads: [{ id: 'a2' }, { id: 'a1', name: 'Holidays' }] })
  await change(alice, 'POST', 'a1/archive')
  t.strictSame(await ids(alice), ['a2'])
  await change(alice, 'PATCH', 'a1', { archived: false })
  t.strictSame(await ids(alice), ['a2', 'a1'])
  await change(alice, 'PATCH', 'a1', { archived: true })
  await change(alice, 'DELETE', 'a2')
  t.strictSame(await ids(alice, '?includeArchived=true'), ['a1'])
})

void test('any other answer than 422 passes, and nothing is changed', async (t) => {
  const { run, list, change, alice, upstream } = await unlisted(t, 'table')
  await run(alice, 'a1')
  const before = await list(alice)
  for (const status of [400, 401, 403, 404, 405, 409, 423, 500, 501, 503]) {
    upstream.answer(json({ error: 'no' }, status))
    for (const [method, path, body] of [
      ['PATCH', 'a1', { name: 'x', archived: true }],
      ['POST', 'a1/archive', {}],
      ['DELETE', 'a1', {}],
    ] as const) {
      const answer = await change(alice, method, path, body)
      t.strictSame([answer.status, answer.json], [status, { error: 'no' }], method)
    }
  }
  t.strictSame(await list(alice), before)
})

void test('an upstream that is away can’t be asked, so nothing is changed', async (t) => {
  const { run, list, change, alice, upstream } = await unlisted(t, 'table')
  await run(alice, 'a1')
  const before = await list(alice)
  await upstream.close()
  for (const [method, path] of [
    ['PATCH', 'a1'],
    ['POST', 'a1/archive'],
    ['DELETE', 'a1'],
  ] as const) {
    t.equal((await change(alice, method, path, method === 'PATCH' ? { name: 'x' } : {})).status, 502, method)
  }
  t.strictSame(await list(alice), before)
})

void test('the 422 of a managed platform is about the request: it passes', async (t) => {
  const { run, list, change, alice } = await unlisted(t, 'table', {
    config: { upstream: { transport: 'auto' } },
    questions: json({ version: '1.75.0', agents: {}, mode: 'intelligence' }),
  })
  await run(alice, 'a1')
  t.equal((await change(alice, 'PATCH', 'a1', { name: 'x' })).status, 422)
  t.equal((await change(alice, 'DELETE', 'a1')).status, 422)
  t.match(await list(alice), { threads: [{ id: 'a1', name: null }] })
})

void test('auto: a 422 is done in the table where the upstream has not said that it has lists', async (t) => {
  const { run, ids, change, alice } = await unlisted(t, 'auto')
  await run(alice, 'a1', 'a2')
  t.match((await change(alice, 'PATCH', 'a1', { name: 'x' })).json, { id: 'a1', name: 'x' })
  t.strictSame((await change(alice, 'DELETE', 'a2')).json, { threadId: 'a2', deleted: true })
  t.strictSame(await ids(alice), ['a1'])
})

void test('a store that fails after the upstream’s 422 is 503, and what it was asked for is not said to be done', async (t) => {
  const { run, change, alice, gateway } = await unlisted(t, 'table')
  await run(alice, 'a1')
  const database = new Database(join(gateway.folder, 'ownership.db'))
  t.teardown(() => database.close())
  database.exec('CREATE TRIGGER broken BEFORE UPDATE ON threads BEGIN SELECT no_such_function(); END')
  for (const [method, path, body] of [
    ['PATCH', 'a1', { name: 'x' }],
    ['POST', 'a1/archive', {}],
    ['DELETE', 'a1', {}],
  ] as const) {
    const answer = await change(alice, method, path, body)
    t.strictSame([answer.status, codeOf(answer)], [503, 'store-unavailable'], method)
  }
  database.exec('DROP TRIGGER broken')
  t.match((await change(alice, 'PATCH', 'a1', { name: 'x' })).json, { name: 'x' })
})
