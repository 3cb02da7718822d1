/** A fresh page connects to a thread that nobody owns yet: it gets what a new thread has, and the upstream is not asked. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated } from '../../testing/support/gated.ts'
import { events, INFO, json, startUpstream } from '../../testing/support/upstream.ts'

void test('connect with an unknown id is an empty event stream, in every setting', async (t) => {
  for (const unknownThread of ['claim', 'verify', 'deny']) {
    const { base, alice, upstream } = await gated(t, events({ type: 'SECRET' }), { config: { ownership: { unknownThread } } })
    const answer = await call(`${base}/agent/default/connect`, { token: alice, body: runInput('t1') })
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('content-type'), 'text/event-stream')
    t.equal(answer.headers.get('cache-control'), 'no-cache, no-transform')
    t.equal(answer.headers.get('x-accel-buffering'), 'no')
    t.equal(answer.text, '')
    t.same(upstream.requests, [])
  }
})

void test('with x-threadwarden-quiet the empty stream stays open so long, with keep-alive comments', async (t) => {
  const config = { streams: { keepAlive: '400ms' } }
  const { base, alice, upstream } = await gated(t, events({ type: 'SECRET' }), { config })
  const connect = async (quiet: string) => {
    const headers = { 'x-threadwarden-quiet': quiet }
    return call(`${base}/agent/default/connect`, { token: alice, body: runInput('t1'), headers })
  }
  const began = performance.now()
  const answer = await connect('1')
  t.ok(performance.now() - began >= 999)
  t.match(answer.text, /^: quiet\n\n(?:: keep-alive\n\n)+: over\n\n$/)
  t.equal(answer.headers.get('x-accel-buffering'), 'no')
  t.equal(answer.headers.get('cache-control'), 'no-cache, no-transform')
  for (const wrong of ['0', '301', '1.5', '-1', 'x', '1, 1']) t.equal((await connect(wrong)).text, '', wrong)
  t.same(upstream.requests, [])
})

void test('where /info names the managed platform it is a 204', async (t) => {
  for (const info of [
    { ...INFO, mode: 'intelligence' },
    { ...INFO, mode: undefined, intelligence: { wsUrl: 'wss://x' } },
  ]) {
    const upstream = await startUpstream(events())
    t.teardown(() => upstream.close())
    upstream.answerQuestions(json(info))
    const { base, alice, gateway } = await gateBefore(t, upstream.url, { config: { upstream: { transport: 'auto' } } })
    await gateway.ready()
    const answer = await call(`${base}/agent/default/connect`, { token: alice, body: runInput('t1') })
    t.equal(answer.status, 204)
    t.equal(answer.text, '')
    t.equal(answer.headers.get('cache-control'), 'no-store')
    t.equal(answer.headers.get('content-length') ?? '0', '0', 'nothing comes behind it (RFC 9110 §8.6)')
    t.same(upstream.requests, [])
  }
})

void test('connect with a known id reaches the upstream for its owner alone', async (t) => {
  const { base, alice, bob, upstream } = await gated(t, events({ type: 'RUN_STARTED' }))
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  t.match((await call(`${base}/agent/default/connect`, { token: alice, body: runInput('t1') })).text, 'RUN_STARTED')
  t.equal(codeOf(await call(`${base}/agent/default/connect`, { token: bob, body: runInput('t1') })), 'not-owner')
  t.equal(upstream.requests.length, 2)
})
