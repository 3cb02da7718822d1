/** What the head of a stream tells of what stands between gateway and runtime. */
import { test } from 'tap'
import { RUNTIMES, start } from '../contract/runtimes.ts'
import { INFO, json, startUpstream, type Answering } from '../../testing/support/upstream.ts'
import { examined, hush } from './examination.ts'

for (const name of RUNTIMES) {
  for (const mode of ['multi-route', 'single-route'] as const) {
    void test(`a stream of ${name} as ${mode} comes as it should`, async (t) => {
      hush(t)
      const runtime = await start(t, name, mode)
      const { of } = await examined(t, { 'upstream.url': runtime.url })
      t.match(of('upstream.streams'), { level: 'ok', message: /no proxy changes the streams/ })
    })
  }
}

/** An upstream whose streams have these headers. */
function streaming(headers: Readonly<Record<string, string>>, status = 200): Answering {
  return (request, response) => {
    if (!request.target.endsWith('/connect')) return json(INFO)(request, response)
    response.writeHead(status, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', ...headers })
    response.flushHeaders()
    response.end(': \n\n')
    return undefined
  }
}

for (const [title, headers, told] of [
  ['as a runtime sends it', {}, null],
  ['with a content-length', { 'content-length': '4' }, /has a content-length/],
  ['compressed', { 'content-encoding': 'gzip' }, /is compressed/],
  ['that may be cached', { 'cache-control': 'max-age=60' }, /may be cached/],
  ['not in chunks', { 'transfer-encoding': 'identity', connection: 'close' }, /is not sent in chunks/],
  ['through a proxy', { via: '1.1 cache' }, /comes through a proxy \(via\)/],
  ['through a cache', { 'x-cache': 'MISS' }, /comes through a proxy \(x-cache\)/],
] as const) {
  void test(`a stream ${title} is ${told === null ? 'fine' : 'a warning'}`, async (t) => {
    const upstream = await startUpstream(streaming(headers))
    t.teardown(() => upstream.close())
    const { of } = await examined(t, { 'upstream.url': upstream.url })
    if (told === null) t.match(of('upstream.streams'), { level: 'ok' })
    else t.match(of('upstream.streams'), { level: 'warning', message: told, remedy: /buffering/ })
  })
}

void test('a connect that gives no stream, or an upstream without agents or with a platform, leaves it open', async (t) => {
  const upstream = await startUpstream(streaming({}, 403))
  t.teardown(() => upstream.close())
  const refused = await examined(t, { 'upstream.url': upstream.url })
  t.match(refused.of('upstream.streams'), { level: 'unknown', message: /with 403 and no stream/ })
  upstream.answerQuestions(json({ ...INFO, agents: {} }))
  const none = await examined(t, { 'upstream.url': upstream.url })
  t.match(none.of('upstream.streams'), { level: 'unknown', message: /has no agent/ })
  upstream.answerQuestions(json({ ...INFO, mode: 'intelligence' }))
  const managed = await examined(t, { 'upstream.url': upstream.url })
  t.match(managed.of('upstream.runtime'), { level: 'ok', message: /of the managed platform/ })
  t.match(managed.of('upstream.streams'), { level: 'unknown', message: /managed platform/ })
})
