/** Few of the caller's headers arrive, each once, and nothing that the caller writes takes one away. */
import { test } from 'tap'
import { call } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { head, sendRaw } from '../../testing/support/raw.ts'
import type { Recorded } from '../../testing/support/upstream.ts'

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

function names(request: Recorded | undefined): string[] {
  return [...(request?.headers.keys() ?? [])].sort()
}

void test('the headers of the design arrive and all others end here', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  await sendRaw(
    gateway.url,
    head(
      'GET /api/copilotkit/info HTTP/1.1',
      'Host: a',
      'ACCEPT: application/json',
      'Accept-Language: de',
      'Accept-Encoding: gzip, br',
      `AUTHORIZATION: Bearer ${alice}`,
      'User-Agent: chat/1',
      `Traceparent: ${TRACE}`,
      'Tracestate: a=b',
      'Cookie: session=1',
      'X-Forwarded-For: 10.0.0.1',
      'X-Forwarded-Host: evil',
      'Forwarded: for=10.0.0.1',
      'X-Real-IP: 10.0.0.1',
      'X-Original-URL: /threads/clear',
      'X-HTTP-Method-Override: DELETE',
      'X-Cpki-User-Id: bob',
      'X_Cpki_User_Id: bob',
      'X-Tenant: t',
      'If-None-Match: "a"',
      'Range: bytes=0-1',
      'X-Request-Id: mine',
      'Connection: close',
    ),
  )
  const [request] = upstream.requests
  t.same(names(request), [
    'accept',
    'accept-encoding',
    'accept-language',
    'authorization',
    'connection',
    'host',
    'traceparent',
    'tracestate',
    'user-agent',
    'x-request-id',
  ])
  t.same(request?.headers.get('accept-encoding'), ['identity'], 'nothing that is read here comes compressed')
  t.same(request?.headers.get('connection'), ['keep-alive'], 'the connection is the gateway’s own')
  t.same(request?.headers.get('authorization'), [`Bearer ${alice}`])
  t.same(request?.headers.get('traceparent'), [TRACE])
})

void test('what forwardHeaders names arrives as well, and each name once', async (t) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { config: { forwardHeaders: ['X-Tenant', 'x-locale'] } })
  await sendRaw(
    gateway.url,
    head(
      'GET /api/copilotkit/info HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${alice}`,
      'x-tenant: one',
      'X-TENANT: two',
      'X_Tenant: three',
      'x_locale: de',
      'Accept: text/plain',
      'accept: text/html',
      'Connection: close',
    ),
  )
  const [request] = upstream.requests
  t.same(request?.headers.get('x-tenant'), ['one, two'], 'two lines are one list (RFC 9110 §5.3)')
  t.same(request?.headers.get('accept'), ['text/plain, text/html'])
  t.notOk(request?.headers.has('x-locale'), 'x_locale is not x-locale')
  t.same(
    names(request).filter((name) => name.includes('_')),
    [],
  )
  const lower = (request?.rawHeaders ?? []).filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  t.equal(new Set(lower).size, lower.length, 'no name stands twice')
})

void test('the request id of the answer is the one that the upstream and the log got, and never the caller’s', async (t) => {
  const { base, alice, upstream, gateway } = await gated(t)
  const answers = [
    await call(`${base}/info`, { token: alice, headers: { 'x-request-id': 'mine' } }),
    await call(`${base}/info`, { token: alice, headers: { 'x-request-id': 'mine' } }),
  ]
  const ids = answers.map((answer) => answer.headers.get('x-request-id'))
  t.match(ids[0], /^[0-9a-f-]{36}$/)
  t.not(ids[0], ids[1])
  t.same(
    upstream.requests.map((request) => request.headers.get('x-request-id')),
    ids.map((id) => [id]),
  )
  t.same(
    gateway.lines.filter((line) => line['msg'] === 'request').map((line) => line['requestId']),
    ids,
  )
})
