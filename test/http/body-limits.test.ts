/** Bodies are bounded, each by its route's limit and all together by one; what was held is given back. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { firstAnswer, head, openRaw, sendRaw } from '../support/raw.ts'
import { events, json } from '../support/upstream.ts'

const LIMITS = { config: { limits: { body: '1KiB', runBody: '4KiB' } } }

void test('runBody bounds run, connect, suggest and transcribe; body bounds all others', async (t) => {
  const { base, alice, upstream } = await gated(t, events(), LIMITS)
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
    ['annotate', 'POST', { threadId: 't1', type: 'x', payload: pad(900) }, 200],
    ['annotate', 'POST', { threadId: 't1', type: 'x', payload: pad(1024) }, 413],
    ['threads/t1', 'PATCH', { name: pad(1024) }, 413],
    ['agent/default/stop/t1', 'POST', { runId: pad(1024) }, 413],
  ] as const) {
    const answer = await call(`${base}/${path}`, { method, token: alice, body })
    t.equal(answer.status, status, `${path} ${JSON.stringify(body).length}`)
    if (status === 413) t.equal(codeOf(answer), 'body-too-large')
  }
})

void test('a body is bounded by what comes, not by what was stated', async (t) => {
  const { gateway, alice, upstream } = await gated(t, events(), LIMITS)
  const run = [
    'POST /api/copilotkit/agent/default/run HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${alice}`,
    'Content-Type: application/json',
  ]
  const connection = await openRaw(gateway.url)
  connection.write(head(...run, 'Transfer-Encoding: chunked'))
  for (let count = 0; count < 5; count += 1) connection.write(`400\r\n${' '.repeat(1024)}\r\n`)
  const answer = firstAnswer(await connection.until(/\r\n\r\n\{.*\}/))
  t.equal(answer.status, 413)
  connection.destroy()

  const stated = await openRaw(gateway.url)
  stated.write(head(...run, 'Content-Length: 5000'))
  t.equal(firstAnswer(await stated.until(/\r\n\r\n\{.*\}/)).status, 413, 'before a byte of it has come')
  stated.destroy()
  t.same(upstream.requests, [])
})

void test('many chunks of a body within its bound are one body', async (t) => {
  const { gateway, alice, upstream } = await gated(t, events(), LIMITS)
  const body = JSON.stringify(runInput('t1', 'ünïcödé'))
  const chunks = [...Buffer.from(body)].map((byte) =>
    Buffer.concat([Buffer.from('1;ext="x"\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]),
  )
  const text = await sendRaw(
    gateway.url,
    Buffer.concat([
      Buffer.from(
        head(
          'POST /api/copilotkit/agent/default/run HTTP/1.1',
          'Host: a',
          `Authorization: Bearer ${alice}`,
          'Content-Type: application/json',
          'Transfer-Encoding: chunked',
          'Trailer: authorization',
          'Connection: close',
        ),
      ),
      ...chunks,
      Buffer.from('0\r\nauthorization: Bearer forged\r\nx-trailer: 1\r\n\r\n'),
    ]),
  )
  t.equal(firstAnswer(text).status, 200)
  t.same(upstream.requests[0]?.json, JSON.parse(body))
  t.same(upstream.requests[0]?.headers.get('authorization'), [`Bearer ${alice}`], 'trailers are no headers')
})

void test('bodies that together hold too much are 503, and the memory comes back', async (t) => {
  const { gateway, base, alice, upstream } = await gated(t, () => {}, { config: { limits: { bodiesInFlight: '3KiB' } } })
  const held: ((status: number) => void)[] = []
  upstream.answer((request, response) => void held.push((status) => void json({}, status)(request, response)))
  const run = (id: string) => call(`${base}/agent/default/run`, { token: alice, body: runInput(id, 'x'.repeat(1000)) })
  const first = [run('t1'), run('t2')]
  await upstream.arrived(2)
  const third = await run('t3')
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
  t.same(
    (await Promise.all(first)).map(({ status }) => status),
    [200, 400],
  )
  // Given back once each, whatever became of it: refused, too large, left.
  const pad = 'x'.repeat(1500)
  for (const body of [
    `{"threadId":"clear","state":"${pad}"}`,
    `{"threadId":"t4","state":"${pad}`,
    `{"state":"${pad.repeat(3)}"}`,
  ]) {
    await fetch(`${base}/agent/default/run`, {
      method: 'POST',
      headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json' },
      body,
    })
  }
  const leaving = await openRaw(gateway.url)
  leaving.write(
    head(
      'POST /api/copilotkit/agent/default/run HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${alice}`,
      'Content-Type: application/json',
      'Content-Length: 2000',
    ) + '{'.padEnd(1500),
  )
  leaving.socket.end()
  await leaving.ended()
  const again = [run('t5'), run('t6')]
  await upstream.arrived(4)
  held[2]!(200)
  held[3]!(200)
  t.same(
    (await Promise.all(again)).map(({ status }) => status),
    [200, 200],
  )
})
