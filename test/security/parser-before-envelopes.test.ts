/**
 * What the parser is to refuse, it refuses of envelopes too: framing with two readings (request-smuggling.test.ts), heads
 * beyond their bound (oversized-heads.test.ts). Their full tables are of requests; here is one of each with an envelope behind it,
 * for a parser knows nothing of transports, and the base path is no way round it.
 */
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testEachUpstream } from '../../testing/support/pairs.ts'
import { firstAnswer, head, openRaw } from '../../testing/support/raw.ts'
import { BASE, codeIn } from './thread-routes.ts'

const RUN = JSON.stringify({ method: 'agent/run', params: { agentId: 'default' }, body: runInput('t1') })
const CHUNKED = `${RUN.length.toString(16)}\r\n${RUN}\r\n0\r\n\r\n`
const LENGTH = `Content-Length: ${RUN.length}`

/** Header lines with two readings, and what stands behind them. */
const FRAMINGS: Readonly<Record<string, readonly [lines: readonly string[], body: string]>> = {
  'length and chunked': [[LENGTH, 'Transfer-Encoding: chunked'], CHUNKED],
  'two lengths': [[LENGTH, 'Content-Length: 2'], RUN],
  'two lengths in a line': [[`${LENGTH}, 2`], RUN],
  'a length with a sign': [[`Content-Length: +${RUN.length}`], RUN],
  'a length in other digits': [[`Content-Length: 0x${RUN.length.toString(16)}`], RUN],
  'a coding besides chunked': [['Transfer-Encoding: gzip, chunked'], CHUNKED],
  'chunked twice': [['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], CHUNKED],
  'a space before the colon': [['Transfer-Encoding : chunked'], CHUNKED],
  'a folded line': [['X-A: 1', ' Transfer-Encoding: chunked', LENGTH], RUN],
}

void testEachUpstream('framing with two readings is 400, and the envelope behind it arrives nowhere', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  for (const [name, [lines, body]] of Object.entries(FRAMINGS)) {
    const connection = await openRaw(gateway.url)
    const start = [`POST ${BASE} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${alice}`, 'Content-Type: application/json']
    connection.write(head(...start, ...lines) + body)
    const answer = firstAnswer(await connection.until(/^HTTP\/1\.1 \d+[^]*\r\n\r\n\{.*\}/))
    t.same([answer.status, codeIn(answer)], [400, 'header-malformed'], name)
    connection.destroy()
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachUpstream('an envelope in an envelope’s body is no second request', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  const inner = gateway.bytes({ target: BASE, token: alice, body: '{"method":"info"}', keepAlive: true }).toString()
  for (const [framing, body] of [
    [`Content-Length: ${inner.length}`, inner],
    ['Transfer-Encoding: chunked', `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`],
  ] as const) {
    const connection = await openRaw(gateway.url)
    connection.write(head(`POST ${BASE} HTTP/1.1`, 'Host: a', 'Content-Type: application/json', framing) + body)
    connection.write(gateway.bytes({ target: `${BASE}/nowhere` }))
    const statuses = [...(await connection.ended()).matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])
    t.same(statuses, ['401', '401'], framing)
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachUpstream('a head beyond its bound is 431, whatever envelope follows', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair, config: { limits: { headers: '4KiB' } } })
  for (const lines of [
    [`X-Pad: ${'p'.repeat(5000)}`],
    [`X-${'p'.repeat(5000)}: 1`],
    Array.from({ length: 500 }, (_, at) => `X-${at}: ${'p'.repeat(10)}`),
  ]) {
    const answer = await gateway.ask({ target: BASE, token: alice, lines, body: RUN })
    t.same([answer.status, codeIn(answer)], [431, 'headers-too-large'])
  }
  t.equal(upstream.beginnings(), 0)
})
