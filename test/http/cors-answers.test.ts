/** Every answer to a listed origin can be read there, refusals and streams included, and says so in the gateway's words alone. */
import { test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { json } from '../../testing/support/upstream.ts'

const APP = 'https://app.example.com'
const EXPOSED = 'x-request-id, retry-after, www-authenticate, content-location, x-pagination-next, x-pagination-total'
const THEIRS = {
  'access-control-allow-origin': '*',
  'access-control-allow-credentials': 'true',
  'access-control-allow-headers': '*',
  'access-control-expose-headers': 'x-secret',
  'access-control-max-age': '86400',
}

void test('answers of every kind carry the origin, Vary and what may be read', async (t) => {
  const { base, alice, upstream } = await gated(t, json({}, 200, THEIRS), { config: { cors: { origins: [APP] } } })
  const headers = { origin: APP }
  const ask = async (): Promise<void> => {
    for (const [answer, status] of [
      [await call(`${base}/info`, { token: alice, headers }), 200],
      [await call(`${base}/info`, { headers }), 401],
      [await call(`${base}/nowhere`, { token: alice, headers }), 404],
      [await call(`${base}/threads/x/messages`, { token: alice, headers }), 403],
      [await call(`${base}//`, { token: alice, headers }), 400],
      [await call(`${base}/agent/default/connect`, { token: alice, headers, body: runInput('new') }), 200],
    ] as const) {
      t.equal(answer.status, status)
      t.equal(answer.headers.get('access-control-allow-origin'), APP)
      t.equal(answer.headers.get('access-control-expose-headers'), EXPOSED)
      t.equal(answer.headers.get('vary'), 'Origin')
      for (const name of ['access-control-allow-credentials', 'access-control-allow-headers', 'access-control-max-age']) {
        t.notOk(answer.headers.has(name), `${status} ${name}`)
      }
    }
  }
  await ask()
  upstream.answer((_request, response) => {
    response.writeHead(200, { ...THEIRS, 'content-type': 'text/event-stream' }).end('data: {}\n\n')
  })
  await ask()
  for (const [status, type, ours] of [
    [302, 'text/plain', 502],
    [500, 'text/html', 500],
  ] as const) {
    upstream.answer(
      (_request, response) => void response.writeHead(status, { ...THEIRS, 'content-type': type, location: '/' }).end(),
    )
    const answer = await call(`${base}/info`, { token: alice, headers })
    t.equal(answer.status, ours)
    t.equal(answer.headers.get('access-control-allow-origin'), APP)
  }
})

void test('another origin, and no origin, get none of it, whatever the upstream says', async (t) => {
  const { base, alice } = await gated(t, json({}, 200, THEIRS), { config: { cors: { origins: [APP] } } })
  for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }, {}] as Record<string, string>[]) {
    for (const token of [alice, undefined]) {
      const answer = await call(`${base}/info`, { headers, ...(token === undefined ? {} : { token }) })
      t.notOk([...answer.headers.keys()].some((name) => name.startsWith('access-control-')))
      t.equal(answer.headers.get('vary'), 'Origin')
    }
  }
})

void test('without a configured origin no answer has a CORS header', async (t) => {
  const { base, alice } = await gated(t, json({}, 200, THEIRS))
  for (const token of [alice, undefined]) {
    const answer = await call(`${base}/info`, { headers: { origin: APP }, ...(token === undefined ? {} : { token }) })
    t.notOk([...answer.headers.keys()].some((name) => name.startsWith('access-control-') || name === 'vary'))
  }
})

void test('"*" lets every origin read, and no cookie along', async (t) => {
  const { base, alice } = await gated(t, json({}, 200, THEIRS), { config: { cors: { origins: ['*'] } } })
  for (const origin of [APP, 'https://other.example', 'null']) {
    const answer = await call(`${base}/info`, { token: alice, headers: { origin } })
    t.equal(answer.headers.get('access-control-allow-origin'), '*')
    t.notOk(answer.headers.has('access-control-allow-credentials'))
    const asked = await call(`${base}/info`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' },
    })
    t.equal(asked.status, 204)
    t.equal(asked.headers.get('access-control-allow-origin'), '*')
    t.equal(asked.headers.get('access-control-allow-headers'), 'authorization', '"*" would not cover it')
  }
})

void test('credentials are allowed where the configuration says so, to listed origins', async (t) => {
  const { base, alice } = await gated(t, json({}), { config: { cors: { origins: [APP], credentials: true } } })
  const listed = await call(`${base}/info`, { token: alice, headers: { origin: APP } })
  t.equal(listed.headers.get('access-control-allow-origin'), APP)
  t.equal(listed.headers.get('access-control-allow-credentials'), 'true')
  const other = await call(`${base}/info`, { token: alice, headers: { origin: 'https://evil.example' } })
  t.notOk(other.headers.has('access-control-allow-credentials'))
})
