/** After a refused GET /info the client posts {"method":"info"} to the base path and shows that answer: it is the same one, but
 * for what works by envelope (transports.test.ts). */
import { test } from 'tap'
import { call, codeOf } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { ask } from '../../testing/support/raw.ts'
import { json } from '../../testing/support/upstream.ts'

const ENVELOPE = { method: 'info' }

void test('the handshake gets what GET /info would have said', async (t) => {
  const { base, alice, upstream, signer } = await gated(t)
  const expired = signer.sign('alice', { iat: 1000, exp: 2000 })
  for (const [token, status] of [
    [alice, 200],
    [undefined, 401],
    ['nonsense', 401],
    [expired, 401],
    [signer.sign(''), 400],
  ] as const) {
    const given = token === undefined ? {} : { token }
    const get = await call(`${base}/info`, given)
    const post = await call(base, { ...given, body: ENVELOPE })
    t.equal(get.status, status)
    t.equal(post.status, status)
    if (status !== 200) t.equal(post.text, get.text)
    t.equal(post.headers.get('www-authenticate'), get.headers.get('www-authenticate'))
  }
  for (const [status, answering] of [
    [503, json({ error: 'theirs' }, 503)],
    [502, json({}, 302)],
  ] as const) {
    upstream.answer(answering)
    t.equal((await call(`${base}/info`, { token: alice })).status, status)
    t.equal((await call(base, { token: alice, body: ENVELOPE })).status, status)
  }
})

void test('it goes upstream as GET /info, with nothing of the envelope', async (t) => {
  const { base, alice, upstream } = await gated(t)
  await call(base, { token: alice, body: { ...ENVELOPE, params: { agentId: 'x' }, body: { threadId: 't' } } })
  const [request] = upstream.requests
  t.equal(request?.method, 'GET')
  t.equal(request?.target, '/api/copilotkit/info')
  t.equal(request?.body.length, 0)
  t.notOk(request?.headers.has('content-type'))
})

void test('the policy has its say, as on /info', async (t) => {
  const policy = 'version: 1\nrules:\n  - { routes: [transcribe], allow: [signed-in] }\n'
  const { base, alice, upstream } = await gated(t, undefined, { policy })
  t.equal(codeOf(await call(`${base}/info`, { token: alice })), 'not-allowed')
  t.equal(codeOf(await call(base, { token: alice, body: ENVELOPE })), 'not-allowed')
  t.same(upstream.requests, [])
})

void test('what is no envelope is 404 on the base path', async (t) => {
  const { base, gateway, alice, upstream } = await gated(t)
  const posts: readonly (readonly [string, string])[] = [
    ['application/json', '{}'],
    ['application/json', ''],
    ['application/json', '{"method":"threads/clear"}'],
    ['application/json', '{"method":["info"]}'],
    ['application/json', '{"method":"INFO"}'],
    ['application/json', '{"method":"cpk-debug-events"}'],
    ['application/json', '{"method":null}'],
    ['text/plain', '{"method":"info"}'],
    ['application/x-www-form-urlencoded', 'method=info'],
    ['multipart/form-data; boundary=b', '--b--'],
  ]
  for (const [type, body] of posts) {
    const answer = await fetch(base, {
      method: 'POST',
      headers: { authorization: `Bearer ${alice}`, 'content-type': type },
      body,
    })
    t.equal(answer.status, 404, `${type} ${body}`)
    t.equal(((await answer.json()) as { code: string }).code, 'not-found')
  }
  const limits = { config: { limits: { body: '1KiB' } } }
  const small = await gated(t, undefined, limits)
  const large = await call(small.base, { token: small.alice, body: { ...ENVELOPE, params: 'x'.repeat(1024) } })
  t.same([large.status, codeOf(large)], [413, 'body-too-large'], 'more than a body may be')
  for (const body of ['{"method":"info"', '[{"method":"info"}]', '{"method":"threads/clear","method":"info"}']) {
    const answer = await ask(gateway.url, { target: '/api/copilotkit', token: alice, body })
    t.match(answer, { status: 400, body: /"body-malformed"/ }, body)
  }
  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    t.equal((await call(base, { method, token: alice })).status, 404, method)
  }
  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY']) {
    const { status } = await ask(gateway.url, { method, target: '/api/copilotkit', token: alice, body: JSON.stringify(ENVELOPE) })
    t.equal(status, 404, `the envelope by ${method}`)
  }
  t.equal((await call(base, { method: 'POST', token: alice })).status, 404, 'no body at all')
  t.equal(codeOf(await call(base, { body: { method: 'threads/clear' } })), 'credential-missing', 'after the credential')
  t.same(upstream.requests, [])
})

void test('a preflight for it is answered as for any path', async (t) => {
  const { base } = await gated(t, undefined, { config: { cors: { origins: ['https://a.example'] } } })
  const headers = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
  t.equal((await call(base, { method: 'OPTIONS', headers })).status, 204)
})
