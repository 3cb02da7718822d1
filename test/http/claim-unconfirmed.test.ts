/**
 * A thread of which no run is confirmed is its owner's to run, and nothing else: what the upstream holds under its id may be
 * somebody else's, from before the gateway, and not every upstream asks whose (docs/explanation/ownership.md).
 */
import { test, type Test } from 'tap'
import { call, codeOf, runInput, type Call, type Reply } from '../../testing/support/client.ts'
import type { GatedOptions } from '../../testing/support/gated.ts'
import { rows } from '../../testing/support/rows.ts'
import { OWNERS_SHARE, sharing } from '../../testing/support/sharing.ts'
import { deferred, until } from '../../testing/support/until.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'

const WRITE = { user: 'corp:bob', right: 'write' }

/** What wants a confirmed run, as the upstream is asked for it, with the status of the refusal. */
const CLOSED: readonly (readonly [path: string, refused: number, options: Call])[] = [
  ['/threads/t1/messages', 403, {}],
  ['/threads/t1/events', 404, {}],
  ['/threads/t1/state', 404, {}],
  ['/threads/t1', 403, { method: 'PATCH', body: { name: 'Diary' } }],
  ['/threads/t1/archive', 403, { body: {} }],
  ['/annotate', 403, { body: { threadId: 't1', type: 'user_action', payload: {}, clientEventId: 'e-1' } }],
  ['/threads/t1', 403, { method: 'DELETE' }],
]

/** What belongs to a run. */
const RUNNING: readonly (readonly [path: string, body: unknown])[] = [
  ['/agent/default/connect', runInput('t1')],
  ['/agent/default/suggest', runInput('t1')],
  ['/agent/default/stop/t1', {}],
]

/** An upstream that gives everybody what it has, and holds runs back until the test answers them. */
async function holding(t: Test, options: GatedOptions = {}) {
  const held: ((how: Answering) => void)[] = []
  const gate = await sharing(
    t,
    (request, response) => {
      if (request.target.endsWith('/run')) return void held.push((how) => void how(request, response))
      return json({ threads: [{ id: 't1' }], messages: [], events: [] })(request, response)
    },
    options,
  )
  const { base, upstream, run } = gate
  const ask = (token: string, path: string, options: Call = {}): Promise<Reply> => call(`${base}${path}`, { token, ...options })
  return {
    ...gate,
    ask,
    /** A run that is at the upstream; it ends as it is answered. */
    start: async (token: string, before = 0) => {
      const reply = run(token)
      await upstream.arrived(upstream.requests.length + 1 + before)
      const answerIt = held.at(-1)
      return (how: Answering) => {
        answerIt?.(how)
        return reply
      }
    },
    /** All that wants a confirmed run is refused, and nothing of it reaches the upstream. */
    isClosed: async (token: string) => {
      const sent = upstream.requests.length
      for (const [path, refused, options] of CLOSED) {
        const reply = await ask(token, path, options)
        t.same([reply.status, codeOf(reply)], [refused, refused === 403 ? 'not-owner' : 'not-found'], path)
      }
      t.equal(upstream.requests.length, sent, 'nothing was sent')
    },
    isOpen: async (token: string) => {
      for (const [path, , options] of CLOSED) t.equal((await ask(token, path, options)).status, 200, path)
    },
    listed: async (token: string) => ((await ask(token, '/threads')).json as { threads: unknown }).threads,
  }
}

for (const [unknownThread, questions] of [
  ['claim', 0],
  ['verify', 2],
] as const) {
  void test(`${unknownThread}: until the first run is answered it alone is open; from the head of a 2xx all is`, async (t) => {
    const { gateway, alice, bob, start, ask, isClosed, isOpen, listed, grants } = await holding(t, {
      config: { ownership: { unknownThread } },
      policy: OWNERS_SHARE,
    })
    const answerRun = await start(alice, questions)
    await isClosed(alice)
    await isClosed(bob)
    t.same(await listed(alice), [], 'nor does it stand in a list')
    for (const method of ['GET', 'POST', 'DELETE']) {
      const body = method === 'GET' ? undefined : method === 'POST' ? WRITE : { user: 'corp:bob' }
      const refused = await grants(alice, body, method)
      t.same([refused.status, codeOf(refused)], [403, 'not-owner'], 'nobody is let in, whose run could confirm it')
    }
    for (const [path, body] of RUNNING) t.equal((await ask(alice, path, { body })).status, 200, path)
    const reasons = gateway.lines.filter(({ msg, status }) => msg === 'request' && Number(status) >= 400)
    const told = (who: string) => new Set(reasons.filter(({ principal }) => principal === who).map(({ reason }) => reason))
    t.same([...told('corp:alice'), ...told('corp:bob')], ['thread-unconfirmed', 'thread-foreign'])
    const ending = deferred<() => void>()
    const reply = answerRun((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n')
      ending.resolve(() => response.end())
    })
    await until(() => rows(gateway.folder)[0]?.provisional === 0)
    t.same(await listed(alice), [{ id: 't1' }])
    t.equal((await grants(alice, WRITE)).status, 201)
    await isOpen(alice)
    ;(await ending.promise)()
    t.equal((await reply).status, 200, 'the run went on all the while')
  })
}

void test('a caller who disconnects before the refusal, or gets no answer, keeps the row and no access', async (t) => {
  const { gateway, bob, base, start, isClosed, isOpen, listed, upstream } = await holding(t)
  for (const status of [500, 504, 408]) {
    const answerRun = await start(bob)
    t.equal((await answerRun(json({ error: 'no' }, status))).status, status)
    t.match(rows(gateway.folder), [{ user_id: 'corp:bob', provisional: 1 }])
    await isClosed(bob)
  }
  const leaving = new AbortController()
  const left = fetch(`${base}/agent/default/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bob}`, 'content-type': 'application/json' },
    body: JSON.stringify(runInput('t1')),
    signal: leaving.signal,
  })
  const before = upstream.requests.length
  await upstream.arrived(before + 1)
  leaving.abort()
  await t.rejects(left)
  await (
    await start(bob)
  )(json({ error: 'no' }, 404))
  await isClosed(bob)
  t.same(await listed(bob), [])
  await (
    await start(bob)
  )(events())
  t.same(await listed(bob), [{ id: 't1' }], 'a run of theirs that the upstream takes opens it')
  await isOpen(bob)
})

void test('a guest’s run does not confirm what its owner only asked for, and a grant opens nothing of it', async (t) => {
  const { gateway, alice, bob, start, ask, isClosed, isOpen, listed, operate } = await holding(t)
  const alices = await start(alice)
  t.equal((await operate(WRITE)).status, 201)
  await isClosed(bob)
  t.same(await listed(bob), [])
  // What an upstream that keeps users apart says of bob's run holds for bob.
  const bobs = await start(bob)
  t.equal((await bobs(events())).status, 200)
  t.match(rows(gateway.folder), [{ user_id: 'corp:alice', provisional: 1 }])
  await isClosed(alice)
  await isClosed(bob)
  t.equal((await alices(json({ error: 'no' }, 404))).status, 404)
  t.match(rows(gateway.folder), [{ user_id: 'corp:alice', provisional: 1 }], 'it stays, for the run of bob’s')
  await (
    await start(alice)
  )(events())
  t.equal((await ask(bob, '/threads/t1/messages')).status, 200, 'now the grant counts')
  await isOpen(alice)
})
