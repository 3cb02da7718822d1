/**
 * A body that costs far more than its sender: too long, too deep (Newtonsoft.Json, CVE-2024-21907; the real runtime answers 500
 * where its stack ends, runtime-behaviour.md, "Run input"), too many values, or a chunk whose extensions never end (Node, CVE-2024-22019). Each is
 * bounded by its route's limit and all together by one, the answer comes before the work, and what was held is given back.
 */
import { codeOf, runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { firstAnswer, openRaw, requestBytes, sendRaw, type RawRequest } from '../../testing/support/raw.ts'
import { events, json } from '../../testing/support/upstream.ts'
import { BASE, BODY_TARGETS, codeIn, PATH_ROUTES, run } from './thread-routes.ts'

const RUN = `${BASE}/agent/default/run`
const JSON_TYPE = 'Content-Type: application/json'
/** The head of a run alone, which says so much of its body. */
const begun = (token: string, framing: string): Buffer =>
  requestBytes({ target: RUN, token, body: '', framing: [JSON_TYPE, framing], keepAlive: true })

const LIMITS = { config: { limits: { body: '1KiB', runBody: '4KiB' } } }

void testEachPair('runBody bounds run, connect, suggest and transcribe; body bounds all others', async (t, pair) => {
  const { base, call, alice, upstream } = await gated(t, events(), { pair, ...LIMITS })
  const pad = (bytes: number): string => 'x'.repeat(bytes)
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1', pad(2000)) })).status, 200)
  upstream.answer(json({}))
  for (const [path, method, body, status] of [
    ['agent/default/run', 'POST', runInput('t1', pad(2000)), 200],
    ['agent/default/connect', 'POST', runInput('t1', pad(2000)), 200],
    ['agent/default/suggest', 'POST', runInput('t1', pad(2000)), 200],
    ['transcribe', 'POST', { audio: pad(2000) }, 200],
    ['agent/default/run', 'POST', runInput('t1', pad(4000)), 413],
    ['agent/default/connect', 'POST', runInput('t1', pad(4000)), 413],
    ['agent/default/suggest', 'POST', runInput('t1', pad(4000)), 413],
    ['transcribe', 'POST', { audio: pad(4096) }, 413],
    ['annotate', 'POST', { threadId: 't1', type: 'x', payload: pad(800) }, 200],
    ['annotate', 'POST', { threadId: 't1', type: 'x', payload: pad(1024) }, 413],
    ['threads/t1', 'PATCH', { name: pad(1024) }, 413],
    ['agent/default/stop/t1', 'POST', { runId: pad(1024) }, 413],
  ] as const) {
    const answer = await call(`${base}/${path}`, { method, token: alice, body })
    t.equal(answer.status, status, `${path} ${JSON.stringify(body).length}`)
    if (status === 413) t.equal(codeOf(answer), 'body-too-large')
  }
})

void testEachPair('the bound is exact: its last byte passes, one more does not', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair, ...LIMITS })
  const filled = (bytes: number): string => `{"threadId":"t1","state":"${'x'.repeat(bytes - 28)}"}`
  for (const framed of [(body: string) => `Content-Length: ${body.length}`, () => 'Transfer-Encoding: chunked']) {
    const send = (body: string): RawRequest => {
      const framing = framed(body)
      const chunked = framing.startsWith('Transfer') ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body
      return { target: RUN, token: alice, body: chunked, framing: [JSON_TYPE, framing] }
    }
    t.equal(filled(4096).length, 4096)
    t.equal((await gateway.ask(send(filled(4096)))).status, 200)
    t.equal(upstream.requests.at(-1)?.body.length, 4096)
    const before = upstream.beginnings()
    t.equal((await gateway.ask(send(filled(4097)))).status, 413)
    t.equal(upstream.beginnings(), before)
  }
})

void testEachPair(
  'a length that is too large is 413 before a byte has come, on every route, and 401 to a stranger',
  async (t, pair) => {
    const { gateway, alice, upstream } = await gated(t, events(), { pair, ...LIMITS })
    t.equal(await run(gateway, alice, 't1'), 200)
    const before = upstream.beginnings()
    const routes: readonly RawRequest[] = [
      ...BODY_TARGETS.map(({ target }) => ({ target })),
      ...PATH_ROUTES.map(({ to }) => to('t1')).filter(({ method }) => method !== undefined),
      { target: `${BASE}/transcribe` },
    ]
    for (const route of routes) {
      for (const length of ['4097', '999999999999', String(Number.MAX_SAFE_INTEGER)]) {
        const request = { method: 'POST', ...route, body: '', framing: [JSON_TYPE, `Content-Length: ${length}`] }
        for (const lines of [[], ['Expect: 100-continue']]) {
          // The answer ends the connection, though the body never came: it isn't waited for.
          const told = await sendRaw(gateway.url, gateway.bytes({ ...request, lines, token: alice, keepAlive: true }))
          t.match(told, /^HTTP\/1\.1 413 /, `${route.target} ${length}`)
          t.equal(codeIn(firstAnswer(told)), 'body-too-large')
        }
        const stranger = await openRaw(gateway.url)
        stranger.write(gateway.bytes(request))
        t.equal(firstAnswer(await stranger.until(/\r\n\r\n\{.*\}/)).status, 401)
        stranger.destroy()
      }
    }
    t.equal(upstream.beginnings(), before)
  },
)

void testEachPair('a body is bounded by what comes, not by what was stated', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair, ...LIMITS })
  const connection = await openRaw(gateway.url)
  connection.write(begun(alice, 'Transfer-Encoding: chunked'))
  for (let count = 0; count < 5; count += 1) connection.write(`400\r\n${' '.repeat(1024)}\r\n`)
  t.equal(firstAnswer(await connection.ended()).status, 413, 'it has not ended, and never will')
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('chunk extensions and trailers that do not end are no way to send without end', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair, ...LIMITS })
  for (const flood of [
    `1;${'x'.repeat(20_000)}\r\n \r\n`,
    ...['1;a="', '1;a='].map((start) => start + 'y'.repeat(20_000)),
    `1\r\n \r\n0\r\nx-trailer: ${'z'.repeat(20_000)}\r\n\r\n`,
    `1\r\n \r\n0\r\n${'x-trailer: z\r\n'.repeat(5000)}\r\n`,
  ]) {
    const connection = await openRaw(gateway.url)
    connection.write(begun(alice, 'Transfer-Encoding: chunked'))
    connection.write(flood)
    t.ok([400, 431].includes(firstAnswer(await connection.ended()).status), flood.slice(0, 20))
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('more values than a body may hold are 413: each costs far more than its bytes', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair })
  for (const [name, state] of Object.entries({
    objects: `[${'{},'.repeat(125_001)}0]`,
    arrays: `[${'[],'.repeat(125_001)}0]`,
    numbers: `[${'1,'.repeat(250_001)}1]`,
    members: `{${Array.from({ length: 250_001 }, (_, at) => `"${at.toString(36)}":0`).join(',')}}`,
    'commas alone': ','.repeat(250_001),
  })) {
    const answer = await gateway.ask({ target: RUN, token: alice, body: `{"threadId":"t1","state":${state}}` })
    t.same([answer.status, codeIn(answer)], [413, 'body-too-large'], name)
  }
  t.equal(upstream.beginnings(), 0)
  const most = `{"threadId":"t1","state":[${'1,'.repeat(200_000)}1]}`
  t.equal((await gateway.ask({ target: RUN, token: alice, body: most })).status, 200)
})

void testEachPair('numbers that grow when they are written anew are bounded by what they grow to', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair, ...LIMITS })
  const body = `{"threadId":"t1","state":[${'1e20,'.repeat(300)}1]}`
  t.ok(body.length < 4096)
  t.equal((await gateway.ask({ target: RUN, token: alice, body })).status, 413)
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('many chunks of a body within its bound are one body', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair, ...LIMITS })
  const body = JSON.stringify(runInput('t1', 'ünïcödé'))
  const chunks = [...Buffer.from(body)].map((byte) =>
    Buffer.concat([Buffer.from('1;ext="x"\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]),
  )
  const trailers = Buffer.from('0\r\nauthorization: Bearer forged\r\nx-trailer: 1\r\n\r\n')
  const framing = [JSON_TYPE, 'Transfer-Encoding: chunked', 'Trailer: authorization']
  t.equal((await gateway.ask({ target: RUN, token: alice, framing, body: Buffer.concat([...chunks, trailers]) })).status, 200)
  t.same(upstream.requests[0]?.json, JSON.parse(body))
  t.same(upstream.requests[0]?.headers.get('authorization'), [`Bearer ${alice}`], 'trailers are no headers')
})

void testEachPair('bodies that together hold too much are 503, and the memory comes back', async (t, pair) => {
  const { gateway, call, base, alice, upstream } = await gated(t, () => {}, {
    pair,
    config: { limits: { bodiesInFlight: '3KiB' } },
  })
  const held: ((status: number) => void)[] = []
  upstream.answer((request, response) => void held.push((status) => void json({}, status)(request, response)))
  const start = (id: string) => call(`${base}/agent/default/run`, { token: alice, body: runInput(id, 'x'.repeat(1000)) })
  const first = [start('t1'), start('t2')]
  await upstream.arrived(2)
  const third = await start('t3')
  t.equal(third.status, 503)
  t.equal(codeOf(third), 'not-ready')
  t.ok(third.headers.has('retry-after'))
  t.equal(
    (await call(`${base}/agent/default/stop/t9`, { method: 'POST', token: alice })).status,
    403,
    'what has no body is not concerned',
  )

  held[0]!(200)
  held[1]!(400)
  t.same((await Promise.all(first)).map(({ status }) => status).sort(), [200, 400])
  // Given back once each, whatever became of it: refused, too large, left.
  const pad = 'x'.repeat(1500)
  for (const body of [
    `{"threadId":"clear","state":"${pad}"}`,
    `{"threadId":"t4","state":"${pad}`,
    `{"state":"${pad.repeat(3)}"}`,
  ]) {
    await gateway.ask({ target: RUN, token: alice, body })
  }
  const leaving = await openRaw(gateway.url)
  leaving.write(begun(alice, 'Content-Length: 2000'))
  leaving.write('{'.padEnd(1500))
  leaving.socket.end()
  await leaving.ended()
  const again = [start('t5'), start('t6')]
  await upstream.arrived(4)
  held[2]!(200)
  held[3]!(200)
  t.same(
    (await Promise.all(again)).map(({ status }) => status),
    [200, 200],
  )
})
