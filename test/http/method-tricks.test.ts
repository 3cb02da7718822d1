/** Neither Upgrade nor an odd method nor a header that names another one changes what a request is. */
import { test } from 'tap'
import { call, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { firstAnswer, head, openRaw, sendRaw } from '../support/raw.ts'

void test('Upgrade is ignored: the request is answered as the one it is', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  for (const [protocol, ...more] of [
    ['websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
    ['h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
  ]) {
    const lines = ['Host: a', 'Connection: close, Upgrade', `Upgrade: ${protocol}`, ...more]
    const unknown = firstAnswer(await sendRaw(gateway.url, head('GET /api/copilotkit/info HTTP/1.1', ...lines)))
    t.equal(unknown.status, 401)
    const known = firstAnswer(
      await sendRaw(gateway.url, head('GET /api/copilotkit/info HTTP/1.1', ...lines, `Authorization: Bearer ${alice}`)),
    )
    t.equal(known.status, 200)
  }
  t.equal(upstream.requests.length, 2)
  for (const { headers } of upstream.requests) {
    t.notOk(headers.has('upgrade') || headers.has('http2-settings') || headers.has('sec-websocket-key'))
    t.same(headers.get('connection'), ['keep-alive'])
  }
})

void test('methods that a route does not have are 405 and name those it has', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  for (const [method, path, allow] of [
    ['HEAD', 'info', 'GET'],
    ['OPTIONS', 'info', 'GET'],
    ['DELETE', 'info', 'GET'],
    ['PROPFIND', 'info', 'GET'],
    ['TRACE', 'info', 'GET'],
    ['QUERY', 'threads', 'GET'],
    ['GET', 'threads/clear', 'POST'],
    ['PATCH', 'threads/clear', 'POST'],
    ['PUT', 'threads/t1', 'PATCH, DELETE'],
  ] as const) {
    const request = [`${method} /api/copilotkit/${path} HTTP/1.1`, 'Host: a', 'Connection: close']
    t.equal(firstAnswer(await sendRaw(gateway.url, head(...request))).status, 401, `${method} ${path} without a token`)
    const answer = firstAnswer(await sendRaw(gateway.url, head(...request, `Authorization: Bearer ${alice}`)))
    t.equal(answer.status, 405, `${method} ${path}`)
    t.equal(answer.headers.get('allow'), allow)
  }
  t.same(upstream.requests, [])
})

void test('a lower-case method is none, and CONNECT opens nothing', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const lower = await sendRaw(gateway.url, head('get /api/copilotkit/info HTTP/1.1', 'Host: a', `Authorization: Bearer ${alice}`))
  t.equal(firstAnswer(lower).status, 400)
  const tunnel = await sendRaw(
    gateway.url,
    head(`CONNECT ${new URL(upstream.url).host} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${alice}`),
  )
  t.notMatch(tunnel, /^HTTP\/1\.1 [123]/)
  t.same(upstream.requests, [])
})

void test('a header that names another method is no method', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override']) {
    await call(`${base}/info`, { token: alice, headers: { [name]: 'DELETE' } })
  }
  t.same(
    upstream.requests.map(({ method }) => method),
    ['GET', 'GET', 'GET'],
  )
})

void test('an expectation that nobody can meet is refused in our words', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  for (const lines of [[], [`Authorization: Bearer ${alice}`]]) {
    const request = head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', 'Expect: nonsense', 'Connection: close', ...lines)
    const answer = firstAnswer(await sendRaw(gateway.url, request))
    t.equal(answer.status, 400)
    t.match(answer.body, '"code":"header-malformed"')
  }
  t.same(upstream.requests, [])
})

void test('a caller who waits to be asked for the body is asked only when it is wanted', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const body = JSON.stringify(runInput('t1'))
  const run = (...lines: string[]): string =>
    head(
      'POST /api/copilotkit/agent/default/run HTTP/1.1',
      'Host: a',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Expect: 100-continue',
      ...lines,
    )
  const refused = await openRaw(gateway.url)
  refused.write(run())
  t.match(await refused.until('credential-missing'), /^HTTP\/1\.1 401 /)
  refused.destroy()
  const known = await openRaw(gateway.url)
  known.write(run(`Authorization: Bearer ${alice}`))
  t.match(await known.until('\r\n\r\n'), /^HTTP\/1\.1 100 /)
  known.write(body)
  t.match(await known.until('HTTP/1.1 200'), 'HTTP/1.1 200')
  t.notOk(upstream.requests[0]?.headers.has('expect'))
  known.destroy()
})
