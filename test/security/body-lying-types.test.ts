/**
 * A content type or coding that makes somebody else read the body in another way than it was checked: Fastify took
 * `application/json\tx` for JSON and skipped its checks (CVE-2026-25223), and `application/json garbage` too
 * (CVE-2026-3419); the real runtime never looks at the type, and inflates gzip behind some adapters (runtime-behaviour.md, "Run input"). One type
 * and no coding passes, and the upstream gets it in the gateway's own spelling.
 */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { events } from '../../testing/support/upstream.ts'
import { BASE, BODY_TARGETS, codeIn } from './thread-routes.ts'

const RUN = `${BASE}/agent/default/run`
const BODY = Buffer.from(JSON.stringify(runInput('t1')))
const length = (body: Uint8Array): string => `Content-Length: ${body.length}`

void testEachPair('application/json passes, with no charset but utf-8, and goes on as application/json', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair })
  for (const type of [
    'application/json',
    'Application/JSON',
    '  application/json  ',
    'application/json; charset=utf-8',
    'application/json ; CHARSET=UTF-8',
    'application/json;charset="UTF-8"',
  ]) {
    const framing = [`Content-Type: ${type}`, length(BODY)]
    t.equal((await gateway.ask({ target: RUN, token: alice, body: BODY, framing })).status, 200, type)
    t.same(upstream.requests.at(-1)?.headers.get('content-type'), ['application/json'], type)
    t.ok(upstream.requests.at(-1)?.body.equals(BODY), type)
  }
})

const OTHER_TYPES = [
  'text/plain',
  'text/json',
  'text/plain; application/json',
  'text/plain;charset=application/json',
  'application/x-www-form-urlencoded',
  'application/octet-stream',
  'application/json; charset=utf-16',
  'application/json; charset=utf-7',
  'application/json; charset=utf8',
  'application/json; charset=iso-8859-1',
  'application/json; charset=',
  "application/json; charset*=utf-8''utf-16",
  'application/json; charset=utf-8; charset=utf-16',
  'application/json; charset=utf-8, text/plain',
  'application/json; profile="x"',
  'application/json;',
  'application/json;;',
  'application/json\tx',
  'application/json\t; charset=utf-8',
  'application/json garbage',
  'application/json, text/plain',
  'application/json,application/json',
  'application/ld+json',
  'application/json-patch+json',
  'application/json-seq',
  'application/x-ndjson',
  'application/jsonx',
  'application/json/x',
  'xapplication/json',
  '"application/json"',
  'application /json',
  'application/jſon',
  'multipart/form-data; boundary=x',
  'json',
  '*/*',
  'application/*',
  '',
]

void testEachPair('every other type is 415 on every route that takes JSON, and nothing arrives', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  for (const type of OTHER_TYPES) {
    const framing = [`Content-Type: ${Buffer.from(type).toString('latin1')}`, length(BODY)]
    const answer = await gateway.ask({ target: RUN, token: alice, body: BODY, framing })
    t.same([answer.status, codeIn(answer)], [415, 'media-type-unsupported'], type)
  }
  for (const { target } of BODY_TARGETS) {
    for (const framing of [['Content-Type: text/plain', length(BODY)], [length(BODY)]]) {
      const answer = await gateway.ask({ target, token: alice, body: BODY, framing })
      t.same([answer.status, codeIn(answer)], [415, 'media-type-unsupported'], target)
    }
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('every coding but identity is 415, whether the body has it or not', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair })
  for (const [coding, body] of [
    ['gzip', gzipSync(BODY)],
    ['gzip', BODY],
    ['x-gzip', gzipSync(BODY)],
    ['GZIP', gzipSync(BODY)],
    ['br', brotliCompressSync(BODY)],
    ['deflate', deflateSync(BODY)],
    ['zstd', BODY],
    ['compress', BODY],
    ['identity, gzip', gzipSync(BODY)],
    ['gzip, identity', gzipSync(BODY)],
    ['identity;q=1', BODY],
    ['', BODY],
    ['chunked', BODY],
    ['aws-chunked', BODY],
    ['x', BODY],
  ] as const) {
    const framing = ['Content-Type: application/json', `Content-Encoding: ${coding}`, length(body)]
    const answer = await gateway.ask({ target: RUN, token: alice, body, framing })
    t.same([answer.status, codeIn(answer)], [415, 'media-type-unsupported'], coding)
  }
  t.equal(upstream.beginnings(), 0)
  const framing = ['Content-Type: application/json', 'Content-Encoding: identity', length(BODY)]
  t.equal((await gateway.ask({ target: RUN, token: alice, body: BODY, framing })).status, 200)
  t.notOk(upstream.requests[0]?.headers.has('content-encoding'))
  t.ok(upstream.requests[0]?.body.equals(BODY))
})

void testEachPair('two types or two codings are 400, whichever is the good one', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  const json = 'Content-Type: application/json'
  for (const lines of [
    [json, json],
    [json, 'content-type: text/plain'],
    ['CONTENT-TYPE: text/plain', json],
    [json, 'Content-Encoding: identity', 'Content-Encoding: gzip'],
    [json, 'Content-Encoding: gzip', 'content-encoding: identity'],
  ]) {
    const answer = await gateway.ask({ target: RUN, token: alice, body: BODY, framing: [...lines, length(BODY)] })
    t.same([answer.status, codeIn(answer)], [400, 'header-malformed'], lines.join(' | '))
  }
  t.equal(upstream.beginnings(), 0)
})
