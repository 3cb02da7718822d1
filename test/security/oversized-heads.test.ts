/**
 * Heads that are made to be expensive: node read them without a bound of their own once (CVE-2018-12121), and its default of 2000
 * lines is no refusal elsewhere, only a limit beyond which lines are not looked at, which hides a second credential. Here a head
 * beyond `limits.headers`, or of more than 200 lines, is 431 in our own form, and what is within is looked at to its last line.
 */
import { test } from 'tap'
import { gated } from '../../testing/support/gated.ts'
import { ask, firstAnswer, openRaw, requestBytes, type RawRequest } from '../../testing/support/raw.ts'

const TARGET = '/api/copilotkit/info'
const TOO_LARGE = { status: 431, body: '"code":"headers-too-large"' }

/** Heads of more than 4 KiB. */
const LARGE: Readonly<Record<string, RawRequest>> = {
  'one long value': { target: TARGET, lines: [`X-Pad: ${'p'.repeat(5000)}`] },
  'one very long value': { target: TARGET, lines: [`X-Pad: ${'p'.repeat(100_000)}`] },
  'one long name': { target: TARGET, lines: [`X-${'p'.repeat(5000)}: 1`] },
  'a long value in a usual name': { target: TARGET, lines: [`User-Agent: ${'p'.repeat(5000)}`] },
  'a long cookie': { target: TARGET, lines: [`Cookie: a=${'p'.repeat(5000)}`] },
  'a long name and a long value': { target: TARGET, lines: [`X-${'p'.repeat(3000)}: ${'p'.repeat(3000)}`] },
  'a long path': { target: `${TARGET}/${'p'.repeat(5000)}` },
  'a long query': { target: `${TARGET}?x=${'p'.repeat(5000)}` },
  'a long target that is malformed': { target: `${TARGET}/${'../'.repeat(2000)}` },
  'a long host': { target: TARGET, host: 'p'.repeat(5000) },
  'a long token': { target: TARGET, lines: [`Authorization: Bearer ${'p'.repeat(5000)}`] },
  'many lines': { target: TARGET, lines: Array.from({ length: 500 }, (_, at) => `X-${at}: ${'p'.repeat(10)}`) },
  'many lines of one name': { target: TARGET, lines: Array.from({ length: 500 }, () => 'Accept: text/html') },
  'many small parts': {
    target: `${TARGET}?x=${'p'.repeat(1500)}`,
    lines: [`X-A: ${'p'.repeat(1500)}`, `X-B: ${'p'.repeat(1500)}`],
  },
  'a long value before a body': { target: TARGET, lines: [`X-Pad: ${'p'.repeat(5000)}`], body: '{}' },
}

void test('a head beyond its bound is 431 in our JSON and ends the connection, whoever asks', async (t) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { config: { limits: { headers: '4KiB' } } })
  for (const [name, request] of Object.entries(LARGE)) {
    for (const token of [{ token: alice }, {}]) {
      const answer = await ask(gateway.url, { ...token, ...request })
      t.match(answer, TOO_LARGE, name)
      t.equal(answer.headers.get('content-type'), 'application/json')
      t.equal(answer.headers.get('cache-control'), 'no-store')
    }
  }
  t.equal(upstream.beginnings(), 0)
  const within = { target: `${TARGET}?x=${'p'.repeat(1000)}`, lines: [`X-Pad: ${'p'.repeat(1000)}`] }
  t.equal((await ask(gateway.url, { ...within, token: alice })).status, 200)
  t.same(
    upstream.requests.map(({ target }) => target),
    [TARGET],
  )
})

void test('a request behind a head that is too large is not read', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const connection = await openRaw(gateway.url)
  connection.write(requestBytes({ target: TARGET, lines: [`X-Pad: ${'p'.repeat(20_000)}`], keepAlive: true }))
  connection.write(requestBytes({ target: TARGET, token: alice }))
  const text = await connection.ended()
  t.match(firstAnswer(text), TOO_LARGE)
  t.equal(text.split('HTTP/1.1').length, 2, 'one answer')
  t.equal(upstream.beginnings(), 0)
})

void test('a head that comes in many pieces is bounded as a whole', async (t) => {
  const { gateway, upstream } = await gated(t, undefined, { config: { limits: { headers: '4KiB' } } })
  const connection = await openRaw(gateway.url)
  connection.write(`GET ${TARGET} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n`)
  for (let at = 0; at < 100 && connection.text() === ''; at += 1) {
    connection.write(`X-${at}: ${'p'.repeat(100)}\r\n`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  connection.write('\r\n')
  t.match(firstAnswer(await connection.ended()), TOO_LARGE)
  t.equal(upstream.beginnings(), 0)
})

void test('no number of lines hides a second credential', async (t) => {
  const { gateway, alice, bob, upstream } = await gated(t, undefined, { config: { limits: { headers: '64KiB' } } })
  for (const count of [
    0, 1, 30, 31, 32, 33, 194, 195, 196, 197, 198, 199, 200, 201, 202, 500, 900, 990, 994, 995, 996, 997, 998, 999, 1000, 1001,
    1500, 1999, 2000, 2001, 3000,
  ]) {
    const lines = [...Array.from({ length: count }, () => 'a:'), `Authorization: Bearer ${bob}`]
    const { status } = await ask(gateway.url, { target: TARGET, token: alice, lines })
    t.ok(status === 400 || status === 431, `${count} lines between them: ${status}`)
  }
  t.equal(upstream.beginnings(), 0)
  const lines = Array.from({ length: 190 }, () => 'a:')
  t.equal((await ask(gateway.url, { target: TARGET, lines: [...lines, `Authorization: Bearer ${bob}`] })).status, 200)
  t.same(upstream.requests[0]?.headers.get('authorization'), [`Bearer ${bob}`], 'and one behind many is found')
})
