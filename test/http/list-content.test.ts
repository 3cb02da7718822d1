/** Beside the caller's threads a list tells nothing: no counts, no codes of others, no ids that mean two things. */
import { test } from 'tap'
import { call, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { events, json } from '../support/upstream.ts'

const WITH_CODES = {
  threads: [{ id: 't1' }],
  joinCode: 'code',
  joinToken: 'token',
  total: 17,
  count: 17,
  hasMore: true,
  owner: 'bob',
}

void test('what else stands beside the threads is dropped, join codes too', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  upstream.answer(json(WITH_CODES, 200, { etag: '"17"', 'x-total-count': '17', link: '</threads?cursor=2>; rel="next"' }))
  const answer = await call(`${base}/threads`, { token: alice })
  t.same(answer.json, { threads: [{ id: 't1' }] })
  t.equal(answer.headers.get('content-type'), 'application/json')
  t.equal(answer.headers.get('cache-control'), 'private, no-store')
  for (const name of ['etag', 'x-total-count', 'link']) t.notOk(answer.headers.has(name), name)
})

void test('join codes pass where the upstream scopes users itself, and only strings', async (t) => {
  const { base, alice, upstream } = await gated(t, events(), { config: { upstream: { userScoped: true } } })
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  upstream.answer(json(WITH_CODES))
  t.same((await call(`${base}/threads`, { token: alice })).json, {
    threads: [{ id: 't1' }],
    joinCode: 'code',
    joinToken: 'token',
  })
  upstream.answer(json({ ...WITH_CODES, joinCode: { a: 1 }, joinToken: 1 }))
  t.same((await call(`${base}/threads`, { token: alice })).json, { threads: [{ id: 't1' }] })
})

void test('ids outside the grammar are in nobody’s list', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  const uuid = '0f8fad5b-d9cb-469f-a165-70867728950e'
  for (const id of ['t1', uuid]) await call(`${base}/agent/default/run`, { token: alice, body: runInput(id) })
  const odd = [
    '',
    ' t1',
    't1 ',
    't1\u0000',
    'T1',
    't1.',
    't/1',
    '../t1',
    'clear',
    'INFO',
    uuid.toUpperCase(),
    `{${uuid}}`,
    'x'.repeat(129),
  ]
  upstream.answer(json({ threads: [...odd, 't1', uuid].map((id) => ({ id })) }))
  t.same((await call(`${base}/threads`, { token: alice })).json, { threads: [{ id: 't1' }, { id: uuid }] })
})

void test('the list holds exactly the threads whose messages the caller may read', async (t) => {
  const { base, alice, bob, olga, upstream } = await gated(t, events())
  const ids = ['a1', 'a2', 'b1', 'gone', 'nobodys']
  for (const id of ['a1', 'a2', 'gone']) await call(`${base}/agent/default/run`, { token: alice, body: runInput(id) })
  await call(`${base}/agent/default/run`, { token: bob, body: runInput('b1') })
  upstream.answer(json({}))
  await call(`${base}/threads/gone`, { method: 'DELETE', token: alice })
  for (const token of [alice, bob, olga]) {
    upstream.answer(json({ threads: ids.map((id) => ({ id })) }))
    const { threads } = (await call(`${base}/threads`, { token })).json as { threads: { id: string }[] }
    upstream.answer(json({ messages: [] }))
    const readable: string[] = []
    for (const id of ids) if ((await call(`${base}/threads/${id}/messages`, { token })).status === 200) readable.push(id)
    t.same(
      threads.map(({ id }) => id),
      readable,
    )
  }
})
