/** What the operator configured wins over what the caller sends, whatever the case, and arrives once. */
import { test } from 'tap'
import { call, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { head, sendRaw } from '../support/raw.ts'
import { events } from '../support/upstream.ts'

void test('server headers win over the same header of a caller in any case, and arrive once', async (t) => {
  const { gateway, alice, upstream } = await gated(t, undefined, {
    config: {
      forwardHeaders: ['x-tenant'],
      upstream: { headers: { 'X-Service-Token': 'service', AUTHORIZATION: 'Basic server', 'user-agent': 'gateway' } },
    },
  })
  for (const spell of [(name: string) => name.toLowerCase(), (name: string) => name.toUpperCase()]) {
    await sendRaw(
      gateway.url,
      head(
        'GET /api/copilotkit/info HTTP/1.1',
        'Host: a',
        `${spell('authorization')}: Bearer ${alice}`,
        `${spell('x-service-token')}: forged`,
        `${spell('X-Service-Token')}: forged too`,
        `${spell('x_service_token')}: forged`,
        `${spell('user-agent')}: chat/1`,
        'Connection: close',
      ),
    )
  }
  t.equal(upstream.requests.length, 2)
  for (const request of upstream.requests) {
    t.same(request.headers.get('authorization'), ['Basic server'])
    t.same(request.headers.get('x-service-token'), ['service'])
    t.same(request.headers.get('user-agent'), ['gateway'])
    t.notOk(request.headers.has('x_service_token'))
  }
})

void test('server headers go along with bodies, and with what the gateway asks on its own account', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t, events(), {
    config: { upstream: { headers: { 'x-service-token': 'service' }, transport: 'auto' } },
  })
  await gateway.ready()
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  t.same(upstream.requests[0]?.headers.get('x-service-token'), ['service'])
  t.ok(upstream.questions.length > 0)
  for (const question of upstream.questions) {
    t.same(question.headers.get('x-service-token'), ['service'])
    t.notOk(question.headers.has('authorization'), 'there is no caller to lend a credential')
  }
})

void test('forwardAuthorization: false keeps the credential here', async (t) => {
  const { base, alice, upstream } = await gated(t, undefined, { config: { upstream: { forwardAuthorization: false } } })
  await call(`${base}/info`, { token: alice })
  t.equal(upstream.requests.length, 1)
  t.notOk(upstream.requests[0]?.headers.has('authorization'))
  t.notOk(upstream.requests[0]?.rawHeaders.join('\n').includes(alice))
})

void test('forwardAuthorization: false leaves room for an Authorization of the server', async (t) => {
  const { base, alice, upstream } = await gated(t, undefined, {
    config: { upstream: { forwardAuthorization: false, headers: { authorization: 'Basic server' } } },
  })
  await call(`${base}/info`, { token: alice })
  t.same(upstream.requests[0]?.headers.get('authorization'), ['Basic server'])
})
