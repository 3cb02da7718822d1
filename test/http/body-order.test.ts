/** Which refusal comes first where several would do, and which routes have a body at all. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { firstAnswer, head, sendRaw } from '../../testing/support/raw.ts'
import { events, json } from '../../testing/support/upstream.ts'

void test('each refusal comes before those behind it', async (t) => {
  const { gateway, base, alice, bob, upstream } = await gated(t, events(), {
    config: { limits: { body: '1KiB', runBody: '1KiB' } },
  })
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('foreign') })
  const before = upstream.requests.length
  const large = `{"threadId":"foreign","pad":"${'x'.repeat(2000)}`
  const ask = async (target: string, lines: readonly string[], body: string): Promise<string> => {
    const text = await sendRaw(
      gateway.url,
      head(
        `POST /api/copilotkit/${target} HTTP/1.1`,
        'Host: a',
        'Connection: close',
        `Content-Length: ${body.length}`,
        ...lines,
      ) + body,
    )
    return `${firstAnswer(text).status} ${(JSON.parse(firstAnswer(text).body) as { code: string }).code}`
  }
  const bearer = `Authorization: Bearer ${bob}`
  const type = 'Content-Type: application/json'
  const steps: readonly (readonly [string, string, readonly string[], string])[] = [
    ['400 target-malformed', 'x//run', ['Origin: a', 'Origin: b'], large],
    ['400 header-malformed', 'nowhere', ['Origin: a', 'Origin: b'], large],
    ['401 credential-missing', 'nowhere', [], large],
    ['401 credential-invalid', 'nowhere', [`${bearer}x`], large],
    ['404 not-found', 'nowhere', [bearer], large],
    ['405 method-not-allowed', 'info', [bearer], large],
    ['400 agent-id-invalid', 'agent/clear/run', [bearer], large],
    ['403 not-allowed', 'threads/clear', [bearer], large],
    ['415 media-type-unsupported', 'agent/default/run', [bearer], large],
    ['415 media-type-unsupported', 'agent/default/run', [bearer, type, 'Content-Encoding: gzip'], large],
    ['413 body-too-large', 'agent/default/run', [bearer, type], large],
    ['400 body-malformed', 'agent/default/run', [bearer, type], '{"threadId":"foreign"'],
    ['400 thread-id-invalid', 'agent/default/run', [bearer, type], '{"threadId":"clear"}'],
    ['403 not-owner', 'agent/default/run', [bearer, type], '{"threadId":"foreign"}'],
  ]
  for (const [expected, target, lines, body] of steps) t.equal(await ask(target, lines, body), expected)
  t.equal(upstream.requests.length, before)
})

void test('a GET with a body is 400, whatever the body', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  for (const body of ['{}', 'x', '{"threadId":"t1"}']) {
    for (const framing of [
      `Content-Length: ${body.length}\r\n\r\n${body}`,
      `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    ]) {
      const text = await sendRaw(
        gateway.url,
        `GET /api/copilotkit/info HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${alice}\r\nContent-Type: application/json\r\nConnection: close\r\n${framing}`,
      )
      t.equal(firstAnswer(text).status, 400)
      t.match(firstAnswer(text).body, '"code":"body-malformed"')
    }
  }
  t.same(upstream.requests, [])
})

void test('a GET that states an empty body passes without one', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const text = await sendRaw(
    gateway.url,
    head(
      'GET /api/copilotkit/info HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${alice}`,
      'Content-Length: 0',
      'Connection: close',
    ),
  )
  t.equal(firstAnswer(text).status, 200)
  t.equal(upstream.requests[0]?.body.length, 0)
})

void test('a route that needs a body says so, also where one was announced and never came', async (t) => {
  const { base, gateway, alice, upstream } = await gated(t)
  for (const path of ['agent/default/run', 'agent/default/connect', 'agent/default/suggest', 'annotate']) {
    const answer = await call(`${base}/${path}`, { method: 'POST', token: alice })
    t.equal(answer.status, 400, path)
    t.equal(codeOf(answer), 'body-malformed', path)
    const lines = [`POST /api/copilotkit/${path} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${alice}`, 'Connection: close']
    const empty = head(...lines, 'Content-Type: application/json', 'Transfer-Encoding: chunked')
    t.match(firstAnswer(await sendRaw(gateway.url, `${empty}0\r\n\r\n`)), { status: 400, body: '"code":"body-malformed"' }, path)
  }
  t.same(upstream.requests, [])
})

void test('stop may have a JSON content type and no body, as the client sends it', async (t) => {
  const { base, gateway, alice, upstream } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  upstream.answer(json({ stopped: true }))
  const stop = [
    `POST /api/copilotkit/agent/default/stop/t1 HTTP/1.1`,
    'Host: a',
    `Authorization: Bearer ${alice}`,
    'Connection: close',
  ]
  const type = 'Content-Type: application/json'
  for (const request of [
    head(...stop),
    head(...stop, type),
    head(...stop, type, 'Content-Length: 0'),
    `${head(...stop, type, 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    `${head(...stop, type, 'Content-Length: 2')}{}`,
  ]) {
    t.equal(firstAnswer(await sendRaw(gateway.url, request)).status, 200, request.slice(-60))
  }
  const stops = upstream.requests.filter(({ target }) => target.endsWith('/stop/t1'))
  t.equal(stops.length, 5)
  t.same(
    stops.map(({ body }) => body.toString()),
    ['', '', '', '', '{}'],
  )
})
