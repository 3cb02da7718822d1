/** `Expect` (RFC 9110 §10.1.1): a body is asked for when it is wanted, and an expectation that can't be met is refused. */
import { test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { firstAnswer, head, openRaw, sendRaw } from '../../testing/support/raw.ts'

void test('an expectation that nobody can meet is refused in our words', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  for (const lines of [[], [`Authorization: Bearer ${alice}`]]) {
    const request = head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', 'Expect: nonsense', 'Connection: close', ...lines)
    const answer = firstAnswer(await sendRaw(gateway.url, request))
    t.equal(answer.status, 400)
    t.match(answer.body, '"code":"header-malformed"')
  }
  t.same(upstream.requests, [])
})

void test('a caller who waits to be asked for the body is asked only when it is wanted', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const body = JSON.stringify(runInput('t1'))
  const run = (...lines: string[]): string =>
    head(
      'POST /api/copilotkit/agent/default/run HTTP/1.1',
      'Host: a',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Expect: 100-continue',
      ...lines,
    )
  const refused = await openRaw(gateway.url)
  refused.write(run())
  t.match(await refused.until('credential-missing'), /^HTTP\/1\.1 401 /)
  refused.destroy()
  const known = await openRaw(gateway.url)
  known.write(run(`Authorization: Bearer ${alice}`))
  t.match(await known.until('\r\n\r\n'), /^HTTP\/1\.1 100 /)
  known.write(body)
  t.match(await known.until('HTTP/1.1 200'), 'HTTP/1.1 200')
  t.notOk(upstream.requests[0]?.headers.has('expect'))
  known.destroy()
})

void test('a caller who waits to be asked for a recording is asked', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const caller = await openRaw(gateway.url)
  caller.write(
    head(
      'POST /api/copilotkit/transcribe HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${alice}`,
      'Content-Type: multipart/form-data; boundary=b',
      'Content-Length: 5',
      'Expect: 100-continue',
    ),
  )
  t.match(await caller.until('\r\n\r\n'), /^HTTP\/1\.1 100 /)
  caller.write('--b--')
  t.match(await caller.until('HTTP/1.1 200'), 'HTTP/1.1 200')
  t.equal(upstream.requests[0]?.body.toString(), '--b--')
  caller.destroy()
})
