/** Browsers ask before they send: the gateway answers for listed origins, without a token, and the upstream never does. */
import { test } from 'tap'
import { call, codeOf } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { firstAnswer, head, sendRaw } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'

const APP = 'https://app.example.com'

/** Sends a preflight as a browser does. */
async function preflight(
  { gateway }: GatedUpstream,
  origin: string,
  path = '/api/copilotkit/agent/default/run',
  more: string[] = [],
) {
  const text = await sendRaw(
    gateway.url,
    head(
      `OPTIONS ${path} HTTP/1.1`,
      'Host: a',
      `Origin: ${origin}`,
      'Access-Control-Request-Method: POST',
      'Access-Control-Request-Headers: authorization, content-type, x-copilotkit',
      'Connection: close',
      ...more,
    ),
  )
  return firstAnswer(text)
}

void test('a listed origin gets a 204 that names itself, the methods and the headers it asked for', async (t) => {
  const gate = await gated(t, undefined, { config: { cors: { origins: [APP, 'http://localhost:3000'] } } })
  for (const origin of [APP, 'http://localhost:3000']) {
    const { status, headers, body } = await preflight(gate, origin)
    t.equal(status, 204)
    t.equal(body, '')
    t.equal(headers.get('access-control-allow-origin'), origin)
    t.equal(headers.get('access-control-allow-headers'), 'authorization, content-type, x-copilotkit')
    for (const method of ['GET', 'POST', 'PATCH', 'DELETE']) t.match(headers.get('access-control-allow-methods'), method)
    t.match(headers.get('vary'), /^Origin\b/)
    t.notOk(headers.has('access-control-allow-credentials'))
    t.match(headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
    t.equal(headers.get('content-length') ?? '0', '0', 'nothing comes behind it (RFC 9110 §8.6)')
  }
  t.equal((await preflight(gate, APP, '/api/copilotkit/nowhere')).status, 204, 'the path does not matter')
  t.same(gate.upstream.requests, [])
})

void test('any other origin gets a 403 and no CORS header', async (t) => {
  const gate = await gated(t, undefined, { config: { cors: { origins: [APP] } } })
  for (const origin of [
    'https://evil.example',
    'https://app.example.com.evil.example',
    'https://evilapp.example.com',
    'http://app.example.com',
    'https://app.example.com:8443',
    'https://APP.example.com',
    `${APP}/`,
    `${APP}, ${APP}`,
    'null',
    '*',
    '',
  ]) {
    const { status, headers, body } = await preflight(gate, origin)
    t.equal(status, 403, origin)
    t.match(body, '"code":"not-allowed"')
    t.notOk(
      [...headers.keys()].some((name) => name.startsWith('access-control-')),
      origin,
    )
    t.match(headers.get('vary'), 'Origin', 'caches keep it apart from the answers to others')
  }
  t.same(gate.upstream.requests, [])
})

void test('without a configured origin every preflight is a 403', async (t) => {
  const gate = await gated(t)
  for (const origin of [APP, '*', 'null', gate.gateway.url]) {
    const { status, headers } = await preflight(gate, origin)
    t.equal(status, 403)
    t.notOk([...headers.keys()].some((name) => name.startsWith('access-control-')))
  }
})

void test('of the headers that were asked for only names are echoed', async (t) => {
  const gate = await gated(t, undefined, { config: { cors: { origins: [APP] } } })
  const text = await sendRaw(
    gate.gateway.url,
    head(
      'OPTIONS /api/copilotkit/info HTTP/1.1',
      'Host: a',
      `Origin: ${APP}`,
      'Access-Control-Request-Method: POST',
      `Access-Control-Request-Headers: x-a,,x b, x-c: 1, <script>, "q", x-d, ${'x'.repeat(129)}`,
      'Access-Control-Request-Headers: x-e',
      'Connection: close',
    ),
  )
  t.equal(firstAnswer(text).headers.get('access-control-allow-headers'), 'x-a, x-d, x-e')
})

void test('OPTIONS that is no preflight needs a token and is 405', async (t) => {
  const gate = await gated(t, undefined, { config: { cors: { origins: [APP] } } })
  const half = [{ origin: APP }, { 'access-control-request-method': 'POST' }, {}]
  for (const headers of half) {
    const ask = (token?: string) =>
      call(`${gate.base}/info`, {
        method: 'OPTIONS',
        headers: headers,
        ...(token === undefined ? {} : { token }),
      })
    t.equal(codeOf(await ask()), 'credential-missing')
    const answer = await ask(gate.alice)
    t.equal(answer.status, 405)
    t.equal(answer.headers.get('allow'), 'GET')
  }
})

void test('what comes before the credential comes before a preflight too', async (t) => {
  const gate = await gated(t, undefined, { config: { cors: { origins: [APP] } } })
  t.equal((await preflight(gate, APP, '/api/copilotkit//info')).status, 400)
  t.equal((await preflight(gate, APP, '/api/copilotkit/info', [`Origin: ${APP}`])).status, 400)
})

void test('the log tells preflights that were permitted from those that were not', async (t) => {
  const gate = await gated(t, undefined, { config: { cors: { origins: [APP] } } })
  await preflight(gate, APP)
  await preflight(gate, 'https://evil.example')
  const reasons = () => gate.gateway.lines.filter(({ msg }) => msg === 'request').map(({ reason }) => reason)
  await until(() => reasons().length === 2)
  t.same(reasons(), ['permitted', 'origin-not-listed'])
})
