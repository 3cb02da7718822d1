/** A claim that one gateway has made is seen on the other at once: the very next request there is decided by it. */
import { test } from 'tap'
import { call } from '../../testing/support/client.ts'
import { events } from '../../testing/support/upstream.ts'
import { replicas } from './scene.ts'

void test('whoever began a thread on one is its owner on the other with the next request, and nobody else is', async (t) => {
  const { a, b, alice, bob, warm } = await replicas(t)
  await a.run(alice)
  await warm()
  for (const threadId of ['t2', 't3', 't4']) {
    // Asked for before it exists, by both: nothing of that may be remembered.
    t.equal(await b.reads(alice, threadId), 403)
    t.equal(await b.reads(bob, threadId), 403)
    t.equal((await a.run(alice, threadId)).status, 200)
    t.equal(await b.reads(alice, threadId), 200)
    t.equal(await b.reads(bob, threadId), 403)
    t.equal((await b.run(bob, threadId)).status, 403)
    t.equal((await b.run(alice, threadId)).status, 200)
  }
})

void test('so it is while the first run is still going on', async (t) => {
  const { a, b, alice, bob, upstream } = await replicas(t)
  const arrived = upstream.arrived(1)
  upstream.answer((_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('\n'))
  const running = a.run(alice).catch(() => {})
  await arrived
  upstream.answer(events())
  t.equal((await b.run(bob)).status, 403)
  t.equal((await b.run(alice)).status, 200)
  await a.gateway.stop(0)
  await running
})

void test('a grant that one has given is seen on the other with the next request', async (t) => {
  const { a, b, alice, bob, warm } = await replicas(t)
  await a.run(alice)
  await warm()
  t.equal(await b.reads(bob), 403)
  t.equal((await a.operate('/threads/t1/grants', { user: 'corp:bob', right: 'read' })).status, 201)
  t.equal(await b.reads(bob), 200)
})

void test('a cursor that one has sealed is opened by the other', async (t) => {
  const { a, b, alice, upstream } = await replicas(t)
  for (const threadId of ['t1', 't2']) await a.run(alice, threadId)
  upstream.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ threads: [{ id: 't1' }, { id: 't2' }], nextCursor: null }))
  })
  const first = (await call(`${a.base}/threads?limit=1`, { token: alice })).json as { nextCursor: string }
  t.match(first, { threads: [{ id: 't1' }], nextCursor: String })
  t.match(await call(`${b.base}/threads?limit=1&cursor=${first.nextCursor}`, { token: alice }), {
    status: 200,
    json: { threads: [{ id: 't2' }] },
  })
})
