/** Limits of what a caller may have open at once, and of how large a body may be. */
import { test, type Test } from 'tap'
import { ruled } from '../../testing/support/policies.ts'
import { codeOf, runInput } from '../../testing/support/client.ts'
import { openRun } from '../../testing/support/event-stream.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { MULTI_ROUTE, type Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { chunked, head, openRaw, sendRaw } from '../../testing/support/raw.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

/** A stream that goes on until its caller leaves. */
const ENDLESS: Answering = (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
}

const twoAtOnce = (t: Test, pair: Pair, answering: Answering = ENDLESS): Promise<GatedUpstream> =>
  gated(t, answering, { pair, config: { limits: { streams: 2 } } })

const post = ({ base, call, alice }: GatedUpstream, path: string, threadId: string, token = alice) =>
  call(`${base}/agent/default/${path}`, { token, body: runInput(threadId) })

/** Waits until a run is let through again. */
const room = (gate: GatedUpstream): Promise<void> => {
  gate.upstream.answer(events())
  return until(async () => (await post(gate, 'run', 'again')).status === 200)
}

void test('two streams at once, and no third, until one of them is over', async (t) => {
  const gate = await twoAtOnce(t, MULTI_ROUTE)
  const first = await openRun(gate, 'a')
  const second = await openRun(gate, 'b')
  await Promise.all([first.until('data: 1'), second.until('data: 1')])
  const before = gate.upstream.beginnings()
  for (const path of ['run', 'connect', 'suggest']) {
    const third = await post(gate, path, 'a')
    t.match([third.status, codeOf(third)], [429, 'rate-limited'], path)
    t.equal(third.headers.get('retry-after'), '1')
    t.equal(third.headers.get('ratelimit-policy'), '"streams";q=2')
    t.equal(third.headers.get('ratelimit'), '"streams";r=0;t=1')
  }
  t.equal(gate.upstream.beginnings(), before)
  const { base, call, alice } = gate
  t.equal((await post(gate, 'run', 'new')).status, 429)
  gate.upstream.answer(json({ messages: [] }))
  t.equal((await call(`${base}/threads/new/messages`, { token: alice })).status, 403, 'a refused run has claimed nothing')
  t.equal((await call(`${base}/threads/a/messages`, { token: alice })).status, 200, 'what is no stream goes on')
  t.equal((await post(gate, 'run', 'of-bob', gate.bob)).status, 200, "another's are others")
  first.destroy()
  await room(gate)
  second.destroy()
  await room(gate)
})

/** Each is the end of a request that may have held a stream: what the upstream does with it, and how it is asked for. */
const ENDS: Readonly<Record<string, { readonly answering: Answering; readonly path?: string; readonly status: number }>> = {
  'a stream that ends': { answering: events({ type: 'RUN_FINISHED' }), status: 200 },
  'an answer that is no stream': { answering: json({}), status: 200 },
  'an answer of nothing': { answering: (_request, response) => void response.writeHead(204).end(), status: 204 },
  'an error': { answering: json({}, 500), status: 500 },
  'an answer that is unusable': { answering: json({}, 302), status: 502 },
  'no answer': { answering: (_request, response) => void response.destroy(), status: 502 },
  'an answer of the gateway': { answering: json({}), path: 'connect', status: 200 },
}

for (const [name, { answering, path = 'run', status }] of Object.entries(ENDS)) {
  void test(`${name} holds no stream any more`, async (t) => {
    const gate = await twoAtOnce(t, MULTI_ROUTE, answering)
    t.equal((await post(gate, path, 'first')).status, status)
    for (let at = 0; at < 5; at += 1) {
      // The place is given back when the answer is closed, which its reader may see a moment sooner.
      await until(async () => (await post(gate, path, `t-${at}`)).status === status)
    }
  })
}

void test('a caller who leaves before the upstream has answered gives the place back', async (t) => {
  const gate = await twoAtOnce(t, MULTI_ROUTE, () => {})
  const connections = [await openRun(gate, 'a'), await openRun(gate, 'b')]
  await gate.upstream.arrived(2)
  t.equal((await post(gate, 'run', 'c')).status, 429)
  for (const connection of connections) connection.destroy()
  await room(gate)
})

void test('an upstream that breaks off gives the place back', async (t) => {
  const cuts: (() => void)[] = []
  const gate = await twoAtOnce(t, MULTI_ROUTE, (request, response) => {
    void ENDLESS(request, response)
    cuts.push(() => response.destroy())
  })
  const connections = [await openRun(gate, 'a'), await openRun(gate, 'b')]
  await Promise.all(connections.map((connection) => connection.until('data: 1')))
  for (const cut of cuts) cut()
  await Promise.all(connections.map((connection) => connection.ended()))
  await room(gate)
})

void test("the streams of a rule stand in place of the configuration's", async (t) => {
  const policy = ruled([{ routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'], limits: { streams: 1 } }])
  const gate = await gated(t, ENDLESS, { config: { limits: { streams: 100 } }, policy })
  const first = await openRun(gate, 'a')
  await first.until('data: 1')
  t.equal((await post(gate, 'run', 'b')).status, 429)
  first.destroy()
  await room(gate)
})

const SIZES = ruled(
  [
    { routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'], agents: ['small'], limits: { body: '1KiB' } },
    { routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'], agents: ['large'], limits: { body: '8KiB' } },
    { routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'], agents: ['default'] },
    { routes: ['transcribe'], allow: ['operator'], limits: { body: '8KiB' } },
    { routes: ['transcribe'], allow: ['signed-in'], limits: { body: '1KiB' } },
  ],
  { operators: [{ role: 'operator' }] },
)

const sized = (t: Test, pair: Pair): Promise<GatedUpstream> =>
  gated(t, events(), { pair, config: { limits: { runBody: '4KiB', body: '2KiB' } }, policy: SIZES })

void testEachPair(
  'a body is bounded by the rule that allows it, larger and smaller than the configuration says',
  async (t, pair) => {
    const gate = await sized(t, pair)
    const { base, call, alice, upstream } = gate
    const run = async (agent: string, size: number): Promise<readonly unknown[]> => {
      const reply = await call(`${base}/agent/${agent}/run`, { token: alice, body: runInput('t', 'x'.repeat(size)) })
      return [reply.status, codeOf(reply)]
    }
    t.same(await run('small', 100), [200, undefined])
    t.same(await run('default', 3000), [200, undefined])
    t.same(await run('large', 7000), [200, undefined])
    const before = upstream.beginnings()
    t.same(await run('small', 1200), [413, 'body-too-large'])
    t.same(await run('default', 5000), [413, 'body-too-large'])
    t.same(await run('large', 9000), [413, 'body-too-large'])
    t.equal(upstream.beginnings(), before)
  },
)

void test('so is one that does not say its length', async (t) => {
  const { gateway, alice, upstream } = await sized(t, MULTI_ROUTE)
  const run = async (agent: string, size: number): Promise<string> => {
    const text = JSON.stringify(runInput('t', 'x'.repeat(size)))
    const lines = ['Host: a', `Authorization: Bearer ${alice}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked']
    const start = head(`POST /api/copilotkit/agent/${agent}/run HTTP/1.1`, ...lines, 'Connection: close')
    const chunks = text.match(/.{1,500}/g) ?? []
    const body = chunked(chunks)
    return (await sendRaw(gateway.url, `${start}${body}0\r\n\r\n`)).slice(9, 12)
  }
  t.equal(await run('large', 7000), '200')
  const before = upstream.beginnings()
  t.equal(await run('small', 1200), '413')
  t.equal(await run('large', 9000), '413')
  t.equal(upstream.beginnings(), before)
})

void test('so is a recording, as it comes', async (t) => {
  const { gateway, alice, olga, upstream } = await sized(t, MULTI_ROUTE)
  const send = async (token: string, size: number, framing: 'length' | 'chunked'): Promise<number> => {
    const part = '--b\r\nContent-Disposition: form-data; name="audio"; filename="a.webm"\r\n\r\n'
    const body = `${part}${'x'.repeat(size)}\r\n--b--\r\n`
    const type = 'Content-Type: multipart/form-data; boundary=b'
    const answer = await gateway.ask({
      method: 'POST',
      target: '/api/copilotkit/transcribe',
      token,
      body: framing === 'chunked' ? `${chunked([body])}0\r\n\r\n` : body,
      framing: [type, framing === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`],
    })
    return answer.status
  }
  t.equal(await send(olga, 7000, 'length'), 200)
  t.equal(await send(olga, 7000, 'chunked'), 200)
  const whole = upstream.requests.length
  for (const framing of ['length', 'chunked'] as const) {
    t.equal(await send(olga, 9000, framing), 413, framing)
    t.equal(await send(alice, 2000, framing), 413, framing)
  }
  t.notOk(
    upstream.requests.slice(whole).some(({ body }) => body.includes('--b--')),
    'none of them came whole',
  )
})

void test('nobody holds a connection with a body that no rule of theirs allows', async (t) => {
  const { gateway, alice, upstream } = await sized(t, MULTI_ROUTE)
  const connection = await openRaw(gateway.url)
  t.teardown(() => connection.destroy())
  const lines = ['Host: a', `Authorization: Bearer ${alice}`, 'Content-Type: application/json', 'Content-Length: 5000']
  connection.write(head('POST /api/copilotkit/agent/small/run HTTP/1.1', ...lines))
  t.match(await connection.until('body-too-large'), /^HTTP\/1\.1 413 /)
  t.equal(upstream.beginnings(), 0)
})
