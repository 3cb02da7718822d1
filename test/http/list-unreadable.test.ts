/** A list that can't be read for certain is a 502 and never passed through; a refusal of the upstream's is passed on. */
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { call, codeOf, runInput } from '../support/client.ts'
import { gated } from '../support/gated.ts'
import { events, json, type Answering } from '../support/upstream.ts'

const SECRET = '{"threads":[{"id":"foreign","name":"secret"}]}'

function plain(status: number, headers: Record<string, string>, body: string | Buffer): Answering {
  return (_request, response) => void response.writeHead(status, headers).end(body)
}

const JSON_TYPE = { 'content-type': 'application/json' }

const UNREADABLE: Record<string, Answering> = {
  'not JSON': plain(200, JSON_TYPE, `${SECRET},`),
  'half of it': plain(200, JSON_TYPE, SECRET.slice(0, -2)),
  'nothing at all': plain(200, JSON_TYPE, ''),
  'JSON behind a byte order mark': plain(200, JSON_TYPE, `\ufeff${SECRET}`),
  'another type': plain(200, { 'content-type': 'text/plain' }, SECRET),
  'no type': plain(200, {}, SECRET),
  'another charset': plain(200, { 'content-type': 'application/json; charset=utf-16' }, SECRET),
  'JSON lines': plain(200, { 'content-type': 'application/x-ndjson' }, SECRET),
  compressed: plain(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }, gzipSync(SECRET)),
  'said to be compressed': plain(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }, SECRET),
  'a page of HTML': plain(200, { 'content-type': 'text/html' }, SECRET),
  'a stream of events': plain(200, { 'content-type': 'text/event-stream' }, `data: ${SECRET}\n\n`),
  'no content': plain(204, {}, ''),
  accepted: plain(202, JSON_TYPE, SECRET),
  'partial content': plain(206, { ...JSON_TYPE, 'content-range': 'bytes 0-1/2' }, SECRET),
  'a redirect': plain(302, { ...JSON_TYPE, location: '/x' }, SECRET),
  'a list at the top': json([{ id: 'foreign' }]),
  'no threads': json({ items: [{ id: 'foreign' }] }),
  'threads that are no list': json({ threads: { id: 'foreign' } }),
  'an item without an id': json({ threads: [{ id: 'own' }, { name: 'secret' }] }),
  'an item with a number for an id': json({ threads: [{ id: 1 }] }),
  'an item that is none': json({ threads: ['own'] }),
  'a cursor that is no string': json({ threads: [{ id: 'own' }], nextCursor: 5 }),
}

void test('an answer that is no list is 502 upstream-unusable and shows nothing of it', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('own') })
  for (const [name, answering] of Object.entries(UNREADABLE)) {
    upstream.answer(answering)
    const answer = await call(`${base}/threads`, { token: alice })
    t.equal(answer.status, 502, name)
    t.equal(codeOf(answer), 'upstream-unusable', name)
    t.notMatch(answer.text, 'secret', name)
    t.notOk(answer.headers.has('location'), name)
  }
})

void test('a page that is too large is 502, however long it goes on', async (t) => {
  const { base, alice } = await gated(t, (_request, response) => {
    response.writeHead(200, JSON_TYPE).write('{"threads":[')
    const filler = ' '.repeat(1024 * 1024)
    const fill = (): void => {
      while (!response.destroyed && response.write(filler));
      if (!response.destroyed) response.once('drain', fill)
    }
    fill()
  })
  const answer = await call(`${base}/threads`, { token: alice })
  t.equal(answer.status, 502)
  t.equal(codeOf(answer), 'upstream-unusable')
})

void test('a second page that is unreadable spoils the list: half of it would look whole', async (t) => {
  const { base, alice, upstream } = await gated(t, events())
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('own') })
  upstream.answer((request, response) =>
    request.target.includes('cursor=')
      ? plain(200, JSON_TYPE, 'x')(request, response)
      : json({ threads: [{ id: 'own' }], nextCursor: 'two' })(request, response),
  )
  t.equal((await call(`${base}/threads`, { token: alice })).status, 502)
})

void test('a refusal of the upstream’s passes, an HTML one as our JSON', async (t) => {
  const { base, alice, upstream } = await gated(t)
  for (const status of [401, 422, 500]) {
    upstream.answer(json({ error: 'no lists here' }, status))
    const answer = await call(`${base}/threads`, { token: alice })
    t.equal(answer.status, status)
    t.same(answer.json, { error: 'no lists here' })
  }
  upstream.answer(plain(404, { 'content-type': 'text/html' }, 'secret'))
  const answer = await call(`${base}/threads`, { token: alice })
  t.equal(answer.status, 404)
  t.equal(codeOf(answer), 'upstream-unusable')
})
