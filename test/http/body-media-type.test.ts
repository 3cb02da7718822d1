/** Which types and codings a JSON route takes: one, so that nobody reads a body in another way than it was checked. */
import { test } from 'tap'
import { codeOf, call, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { head, openRaw, firstAnswer } from '../support/raw.ts'
import { events } from '../support/upstream.ts'

const BODY = runInput('t1')

void test('application/json passes, with no charset but utf-8, and goes on as application/json', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  const types = ['application/json', 'Application/JSON', 'application/json; charset=utf-8', 'application/json;charset="UTF-8"']
  for (const type of types) {
    const answer = await call(`${base}/agent/default/run`, { token: alice, body: BODY, headers: { 'content-type': type } })
    t.equal(answer.status, 200, type)
  }
  for (const { headers } of upstream.requests) t.same(headers.get('content-type'), ['application/json'])
})

void test('every other type is 415', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const type of [
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'application/json; charset=utf-16',
    'application/json; charset=iso-8859-1',
    'application/json; profile="x"',
    'application/json; charset=utf-8; charset=utf-16',
    'application/json, text/plain',
    'application/ld+json',
    'application/jsonx',
    'xapplication/json',
    'multipart/form-data; boundary=x',
    '*/*',
  ]) {
    const answer = await call(`${base}/agent/default/run`, { token: alice, body: BODY, headers: { 'content-type': type } })
    t.equal(answer.status, 415, type)
    t.equal(codeOf(answer), 'media-type-unsupported', type)
  }
  t.same(upstream.requests, [])
})

void test('every coding but identity is 415', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  for (const coding of ['gzip', 'br', 'deflate', 'identity, gzip', 'x']) {
    const answer = await call(`${base}/agent/default/run`, { token: alice, body: BODY, headers: { 'content-encoding': coding } })
    t.equal(answer.status, 415, coding)
    t.equal(codeOf(answer), 'media-type-unsupported')
  }
  t.same(upstream.requests, [])
  const identity = await call(`${base}/agent/default/run`, {
    token: alice,
    body: BODY,
    headers: { 'content-encoding': 'identity' },
  })
  t.equal(identity.status, 200)
  t.notOk(upstream.requests[0]?.headers.has('content-encoding'))
})

void test('a body without a type is 415, and two types are 400', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const body = JSON.stringify(BODY)
  for (const [lines, status] of [
    [[], 415],
    [['Content-Type:'], 415],
    [['Content-Type: application/json', 'Content-Type: application/json'], 400],
    [['Content-Type: application/json', 'content-type: text/plain'], 400],
  ] as const) {
    const connection = await openRaw(gateway.url)
    connection.write(
      head(
        'POST /api/copilotkit/agent/default/run HTTP/1.1',
        'Host: a',
        `Authorization: Bearer ${alice}`,
        'Connection: close',
        `Content-Length: ${body.length}`,
        ...lines,
      ) + body,
    )
    t.equal(firstAnswer(await connection.ended()).status, status)
  }
  t.same(upstream.requests, [])
})
