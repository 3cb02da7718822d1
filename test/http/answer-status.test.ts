/** What the upstream answers passes as it is, except redirects and pages: a chat client can show neither. */
import { test } from 'tap'
import { call, codeOf } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { json } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

void test('the upstream’s own refusals pass unchanged', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const status of [400, 401, 404, 409, 422, 429, 500, 503]) {
    upstream.answer(json({ error: 'theirs', status }, status))
    const answer = await call(`${base}/info`, { token: alice })
    t.equal(answer.status, status)
    t.same(answer.json, { error: 'theirs', status })
    t.equal(answer.headers.get('cache-control'), 'private, no-store')
  }
})

void test('an answer without content passes', async (t) => {
  const { base, alice } = await gated(t, (_request, response) => void response.writeHead(204).end())
  const answer = await call(`${base}/info`, { token: alice })
  t.equal(answer.status, 204)
  t.equal(answer.text, '')
})

void test('a redirect is an unusable answer and its target is not told', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const status of [300, 301, 302, 303, 304, 307, 308]) {
    upstream.answer((_request, response) => void response.writeHead(status, { location: 'https://secret.example/' }).end())
    const answer = await call(`${base}/info`, { token: alice })
    t.equal(answer.status, 502, String(status))
    t.equal(codeOf(answer), 'upstream-unusable')
    t.notOk(answer.headers.has('location'))
    t.notMatch(answer.text, 'secret')
  }
  t.equal(upstream.requests.length, 7, 'none was followed')
})

void test('a page in place of an answer is a 502, an error page keeps its status with our JSON', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const type of ['text/html', 'Text/HTML; charset=utf-8', 'application/xhtml+xml']) {
    for (const [theirs, ours] of [
      [200, 502],
      [201, 502],
      [400, 400],
      [404, 404],
      [500, 500],
    ] as const) {
      upstream.answer((_request, response) => void response.writeHead(theirs, { 'content-type': type }).end('<h1>secret</h1>'))
      const answer = await call(`${base}/info`, { token: alice })
      t.equal(answer.status, ours, `${type} ${theirs}`)
      t.equal(answer.headers.get('content-type'), 'application/json')
      t.equal(codeOf(answer), 'upstream-unusable')
      t.notMatch(answer.text, 'secret')
    }
  }
})

void test('what does not pass is let go at once, and not read to its end', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const [status, type] of [
    [302, 'text/plain'],
    [200, 'text/html'],
    [500, 'text/html'],
  ] as const) {
    // The end of this answer never comes.
    upstream.answer((_request, response) => void response.writeHead(status, { 'content-type': type }).write('secret'))
    t.equal(codeOf(await call(`${base}/info`, { token: alice })), 'upstream-unusable')
    await until(() => upstream.requests.at(-1)!.left())
  }
})
