/** The HTTP parser's bounds, old protocol versions and requests in a row: answered in our words and in order. */
import { test } from 'tap'
import { gated } from '../../testing/support/gated.ts'
import { firstAnswer, head, sendRaw } from '../../testing/support/raw.ts'
import { json } from '../../testing/support/upstream.ts'

void test('answers of the parser carry a request id as all others do', async (t) => {
  const { gateway } = await gated(t, undefined, { config: { limits: { headers: '4KiB' } } })
  const unreadable = firstAnswer(await sendRaw(gateway.url, 'nonsense\r\n\r\n'))
  const large = firstAnswer(await sendRaw(gateway.url, head('GET / HTTP/1.1', 'Host: a', `X-Pad: ${'p'.repeat(5000)}`)))
  t.match(unreadable.headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
  t.match(large.headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
})

void test('a request of HTTP/1.1 without a host is refused in our words', async (t) => {
  const { gateway, alice, upstream } = await gated(t)
  const text = await sendRaw(
    gateway.url,
    head('GET /api/copilotkit/info HTTP/1.1', `Authorization: Bearer ${alice}`, 'Connection: close'),
  )
  t.equal(firstAnswer(text).status, 400)
  t.match(firstAnswer(text).body, '"code":"header-malformed"')
  t.same(upstream.requests, [])
})

void test('HTTP/1.0 is answered, a stream too, without chunks', async (t) => {
  const { gateway, alice } = await gated(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {}\n\n')
  })
  const refused = firstAnswer(await sendRaw(gateway.url, head('GET /api/copilotkit/info HTTP/1.0')))
  t.equal(refused.status, 401)
  const text = await sendRaw(gateway.url, head('GET /api/copilotkit/info HTTP/1.0', `Authorization: Bearer ${alice}`))
  const answer = firstAnswer(text)
  t.equal(answer.status, 200)
  t.notOk(answer.headers.has('transfer-encoding'))
  t.equal(answer.body, 'data: {}\n\n')
})

void test('requests in a row are each decided by their own credential and answered in order', async (t) => {
  const { gateway, alice, bob, upstream } = await gated(t)
  let release = (): void => {}
  upstream.answer((request, response) => {
    const who = request.headers.get('authorization')?.[0] === `Bearer ${alice}` ? 'alice' : 'bob'
    const answer = (): unknown => json({ who })(request, response)
    if (who === 'alice') release = answer
    else {
      answer()
      release()
    }
  })
  const request = (...lines: string[]): string => head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', ...lines)
  const text = await sendRaw(
    gateway.url,
    request(`Authorization: Bearer ${alice}`) + request(`Authorization: Bearer ${bob}`) + request('Connection: close'),
  )
  t.same(
    [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1]),
    ['200', '200', '401'],
  )
  t.ok(text.indexOf('"alice"') < text.indexOf('"bob"'), 'the slow first answer comes first')
  t.equal(upstream.requests.length, 2)
})
