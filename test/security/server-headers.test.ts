/**
 * A header of the operator's that a caller overrides, doubles or joins: proxies that set theirs by exact spelling leave the caller's
 * other spelling beside it, and a server that joins both with a comma reads a third value (RFC 9110 §5.2; docs/contributing/specification-map.md, "Authentication" 8).
 * What the operator configured wins here whatever the case, arrives once, and goes with the gateway's own questions too.
 */
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { events, json } from '../../testing/support/upstream.ts'

const INFO = '/api/copilotkit/info'

/** Headers of the operator, each in an odd case. */
const HEADERS = { 'X-Service-Token': 'service', AUTHORIZATION: 'Basic server', 'user-agent': 'gateway', aCCept: 'text/server' }

/** Ways of a caller to write the same names. */
const SPELLINGS: readonly ((name: string) => string)[] = [
  (name) => name.toLowerCase(),
  (name) => name.toUpperCase(),
  (name) => name.replace(/[a-z]/g, (letter, at: number) => (at % 2 === 0 ? letter.toUpperCase() : letter)),
  (name) => name.toLowerCase().replace(/(^|-)[a-z]/g, (start) => start.toUpperCase()),
]

void testFirstPair('server headers win over the same header of a caller in any case, and arrive once', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, json({}), {
    pair,
    config: { forwardHeaders: ['x-tenant'], upstream: { headers: HEADERS } },
  })
  const run = { target: '/api/copilotkit/agent/default/run', body: JSON.stringify(runInput('t1')) }
  for (const spell of SPELLINGS) {
    for (const request of [{ target: INFO }, run]) {
      const lines = [
        `${spell('authorization')}: Bearer ${alice}`,
        `${spell('x-service-token')}: forged`,
        `${spell('x-service-token')}: forged too`,
        `${spell('x-service-token')}:`,
        `${spell('x_service_token')}: forged`,
        `${spell('x-service_token')}: forged`,
        `${spell('user-agent')}: forged`,
        `${spell('accept')}: forged/one`,
        `${spell('accept')}: forged/two`,
        `${spell('x-tenant')}: honest`,
        'Connection: x-service-token, authorization, user-agent, accept',
      ]
      t.equal((await gateway.ask({ ...request, lines })).status, 200)
    }
  }
  t.equal(upstream.requests.length, 2 * SPELLINGS.length)
  for (const request of upstream.requests) {
    for (const [name, value] of Object.entries(HEADERS)) t.same(request.headers.get(name.toLowerCase()), [value], name)
    t.same(request.headers.get('x-tenant'), ['honest'])
    t.notMatch(request.rawHeaders.join('\n'), 'forged')
    t.notMatch(request.rawHeaders.join('\n'), alice, 'the caller’s credential went nowhere')
  }
})

void testFirstPair('a server header with nothing in it is still the server’s', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, {
    pair,
    config: { upstream: { headers: { 'user-agent': '' } } },
  })
  t.equal((await gateway.ask({ target: INFO, token: alice, lines: ['User-Agent: forged'] })).status, 200)
  t.notMatch(upstream.requests[0]?.rawHeaders.join('\n'), 'forged')
})

void testFirstPair('server headers go along with bodies, and with what the gateway asks on its own account', async (t, pair) => {
  const { base, call, alice, upstream, gateway } = await gated(t, events(), {
    pair,
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

void testFirstPair('forwardAuthorization: false keeps the credential here', async (t, pair) => {
  const { base, call, alice, upstream } = await gated(t, undefined, {
    pair,
    config: { upstream: { forwardAuthorization: false } },
  })
  await call(`${base}/info`, { token: alice })
  t.equal(upstream.requests.length, 1)
  t.notOk(upstream.requests[0]?.headers.has('authorization'))
  t.notOk(upstream.requests[0]?.rawHeaders.join('\n').includes(alice))
})

void testFirstPair('forwardAuthorization: false leaves room for an Authorization of the server', async (t, pair) => {
  const { base, call, alice, upstream } = await gated(t, undefined, {
    pair,
    config: { upstream: { forwardAuthorization: false, headers: { authorization: 'Basic server' } } },
  })
  await call(`${base}/info`, { token: alice })
  t.same(upstream.requests[0]?.headers.get('authorization'), ['Basic server'])
})
