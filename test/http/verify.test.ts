/** `unknownThread: verify`: the upstream is asked first whether it holds something of a thread that nobody owns. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated, NOWHERE, type GatedUpstream } from '../../testing/support/gated.ts'
import { startRawUpstream } from '../../testing/support/raw-upstream.ts'
import { owners } from '../../testing/support/rows.ts'
import { until } from '../../testing/support/until.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'

const VERIFY = { config: { ownership: { unknownThread: 'verify' } } }

/** A gateway before an upstream with these answers for the histories of every thread. */
async function holding(t: Parameters<typeof gated>[0], messages: Answering, itsEvents: Answering): Promise<GatedUpstream> {
  return gated(
    t,
    (request, response) => {
      const answering = request.target.endsWith('/messages')
        ? messages
        : request.target.endsWith('/events')
          ? itsEvents
          : events()
      return answering(request, response)
    },
    VERIFY,
  )
}

const NO_MESSAGES = json({ messages: [] })
const NO_EVENTS = json({ events: [] })

void test('nothing held: a run claims and is sent, a suggestion is sent', async (t) => {
  const none: readonly (readonly [Answering, Answering])[] = [
    [NO_MESSAGES, NO_EVENTS],
    [json({ error: 'no' }, 404), NO_EVENTS],
    [NO_MESSAGES, json({ error: 'no' }, 404)],
  ]
  for (const [messages, itsEvents] of none) {
    const { base, alice, bob, upstream, gateway } = await holding(t, messages, itsEvents)
    t.equal((await call(`${base}/agent/default/suggest`, { token: alice, body: runInput('t1') })).status, 200)
    t.same(owners(gateway.folder), [])
    t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 200)
    t.same(owners(gateway.folder), ['t1=corp:alice'])
    t.same(
      upstream.requests.map(({ target }) => target.slice('/api/copilotkit/'.length)),
      [
        'threads/t1/messages',
        'threads/t1/events',
        'agent/default/suggest',
        'threads/t1/messages',
        'threads/t1/events',
        'agent/default/run',
      ],
    )
    t.equal(codeOf(await call(`${base}/agent/default/run`, { token: bob, body: runInput('t1') })), 'not-owner')
    await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
    t.equal(upstream.requests.length, 7, 'a thread with an owner is not asked for')
  }
})

void test('a thread that gets an owner while the question is asked is decided anew, for a suggestion as for a run', async (t) => {
  const held: (() => void)[] = []
  const late: Answering = (request, response) => void held.push(() => void NO_EVENTS(request, response))
  for (const route of ['suggest', 'run']) {
    const { base, alice, bob, upstream, gateway } = await holding(t, NO_MESSAGES, late)
    const bobs = call(`${base}/agent/default/${route}`, { token: bob, body: runInput('t1') })
    await until(() => held.length === 1)
    const alices = call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
    await until(() => held.length === 2)
    held.pop()?.()
    t.equal((await alices).status, 200)
    held.pop()?.()
    t.equal(codeOf(await bobs), 'not-owner', route)
    t.same(owners(gateway.folder), ['t1=corp:alice'])
    const runs = upstream.requests.filter((request) => request.method === 'POST')
    t.same(
      runs.map((request) => request.headers.get('authorization')),
      [[`Bearer ${alice}`]],
      'nothing of his arrived',
    )
  }
})

void test('the question carries the credential of the caller and nothing of the body', async (t) => {
  const { base, alice, upstream } = await holding(t, NO_MESSAGES, NO_EVENTS)
  const answer = await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  for (const question of upstream.requests.slice(0, 2)) {
    t.equal(question.method, 'GET')
    t.same(question.headers.get('authorization'), [`Bearer ${alice}`])
    t.same(question.headers.get('x-request-id'), [answer.headers.get('x-request-id')])
    t.equal(question.body.length, 0)
    t.notOk(question.headers.has('content-type'))
  }
})

void test('something held, or a refusal: 403, nothing is sent and nothing claimed', async (t) => {
  const some: readonly (readonly [Answering, Answering])[] = [
    [json({ messages: [{ id: 'm' }] }), NO_EVENTS],
    [NO_MESSAGES, json({ events: [{ type: 'x' }] })],
    [json({}), NO_EVENTS],
    [json([]), NO_EVENTS],
    [json({ messages: [{ pad: 'x'.repeat(100_000) }] }), NO_EVENTS],
    [json({}, 401), NO_EVENTS],
    [json({}, 403), NO_EVENTS],
    [json({}, 429), NO_EVENTS],
    [NO_MESSAGES, json({}, 403)],
    [json({}, 422), NO_EVENTS],
  ]
  for (const [messages, itsEvents] of some) {
    const { base, alice, upstream, gateway } = await holding(t, messages, itsEvents)
    for (const path of ['run', 'suggest']) {
      const answer = await call(`${base}/agent/default/${path}`, { token: alice, body: runInput('t1') })
      t.equal(answer.status, 403)
      t.equal(codeOf(answer), 'not-owner')
    }
    t.ok(upstream.requests.every(({ method }) => method === 'GET'))
    t.same(owners(gateway.folder), [])
  }
})

void test('an upstream that fails cannot tell: 502, nothing is sent and nothing claimed', async (t) => {
  for (const status of [500, 502, 503, 301]) {
    const { base, alice, upstream, gateway } = await holding(t, json({}, status), NO_EVENTS)
    const answer = await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
    t.equal(answer.status, 502)
    t.equal(upstream.requests.length, 1)
    t.same(owners(gateway.folder), [])
  }
})

void test('an upstream that is away: 502, nothing claimed', async (t) => {
  const { base, alice, gateway } = await gateBefore(t, NOWHERE, VERIFY)
  const answer = await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  t.equal(answer.status, 502)
  t.equal(codeOf(answer), 'upstream-unreachable')
  t.same(owners(gateway.folder), [])
})

void test('a history that breaks off tells nothing: 502, nothing claimed', async (t) => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"messages":[')
    setImmediate(() => socket.end())
  })
  t.teardown(() => upstream.close())
  const { base, alice, gateway } = await gateBefore(t, upstream.url, VERIFY)
  const answer = await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  t.equal(answer.status, 502)
  t.same(owners(gateway.folder), [])
})

void test('an upstream that does not answer in time: 504, nothing claimed', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t, () => {}, {
    config: { ...VERIFY.config, upstream: { timeouts: { headers: '1s' } } },
  })
  const answer = await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  t.equal(answer.status, 504)
  t.equal(codeOf(answer), 'upstream-timeout')
  t.equal(upstream.requests.length, 1)
  t.same(owners(gateway.folder), [])
})

void test('two users who verify one thread at once: one of them gets it', async (t) => {
  const { base, alice, bob, gateway } = await holding(t, NO_MESSAGES, NO_EVENTS)
  const answers = await Promise.all(
    [alice, bob].map((token) => call(`${base}/agent/default/run`, { token, body: runInput('t1') })),
  )
  t.same(answers.map(({ status }) => status).sort(), [200, 403])
  t.equal(owners(gateway.folder).length, 1)
})

void test('one caller whose bodies wait for histories leaves others half of the memory for reading', async (t) => {
  const held: (() => void)[] = []
  const late: Answering = (request, response) => {
    if (request.target.includes('bobs')) return NO_MESSAGES(request, response)
    held.push(() => void NO_MESSAGES(request, response))
  }
  const { base, alice, bob } = await gated(
    t,
    (request, response) =>
      (request.target.endsWith('/messages') ? late : request.target.endsWith('/events') ? NO_EVENTS : events())(
        request,
        response,
      ),
    { config: { ...VERIFY.config, limits: { newThreads: 'off' } } },
  )
  const run = (token: string, threadId: string, state: unknown) =>
    call(`${base}/agent/default/run`, { token, body: runInput(threadId, 'hello', { state }) })
  const waiting: Promise<unknown>[] = []
  /** True if there was room for a body of so many values, which waits then. */
  const fits = async (values: number): Promise<boolean> => {
    const [before, threadId] = [held.length, crypto.randomUUID()]
    let status: number | undefined
    waiting.push(run(alice, threadId, Array(values).fill(0)).then((answer) => (status = answer.status)))
    await until(() => held.length > before || status !== undefined)
    if (status !== undefined) t.equal(status, 503)
    return status === undefined
  }
  // Values take more than bytes: none of these bodies is large.
  for (let values = 249_900; values > 500;) if (!(await fits(values))) values = Math.floor(values / 2)
  t.ok(held.length > 1)
  t.equal((await run(bob, 'bobs', 'x'.repeat(50_000))).status, 200)
  for (const answer of held) answer()
  await Promise.all(waiting)
})
