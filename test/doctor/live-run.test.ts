/** A run through the gateway: events that come one by one, and events that something on the way holds back. */
import { setTimeout as pause } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { buffer } from 'node:stream/consumers'
import { test, type Test } from 'tap'
import { clearThreads, startRuntime } from '../../examples/runtime.ts'
import { call } from '../../testing/support/client.ts'
import { events, INFO, json, startUpstream, type Answering } from '../../testing/support/upstream.ts'
import { examined, hush } from './examination.ts'
import { startProxy, startScene, type Passing } from './gateway-scene.ts'

const RUN = { agentId: 'default', message: 'hello' }

/** A run that says something every so many milliseconds. */
function paced(milliseconds: number, ...types: readonly string[]): Answering {
  return async (request, response) => {
    if (!request.target.endsWith('/run')) return json(INFO)(request, response)
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    for (const type of types) {
      response.write(`data: ${JSON.stringify({ type })}\n\n`)
      await pause(milliseconds)
    }
    response.end()
    return undefined
  }
}

const SLOW = paced(250, 'RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_END', 'RUN_FINISHED')

/** What a run through a gateway, and through what stands before it, is told to be. */
async function ran(t: Test, answering: Answering, pass?: Passing) {
  const upstream = await startUpstream(answering)
  t.teardown(() => upstream.close())
  const { gateway, base, signer, changes } = await startScene(t, upstream.url)
  await gateway.ready()
  const url = pass === undefined ? null : base.replace(gateway.url, await startProxy(t, gateway.url, pass))
  const { of, each } = await examined(t, changes, { wishes: { token: signer.sign('alice'), run: RUN, url } })
  const runs = upstream.requests.filter(({ method, target }) => method === 'POST' && target.endsWith('/run'))
  return { of, each, runs, lines: gateway.lines }
}

void test('events that come one by one are fine, and one run is made', async (t) => {
  const { of, runs } = await ran(t, SLOW)
  t.match(of('gateway.run'), { level: 'ok', message: /^events arrive one by one: the first after \d+ ms, the last of 4 after/ })
  t.equal(runs.length, 1)
  t.match(runs[0]?.json, { messages: [{ role: 'user', content: 'hello' }], tools: [] })
})

void test('through a proxy that passes them on as they come, too', async (t) => {
  const { of } = await ran(t, SLOW, (answer, response) => {
    // As nginx: it obeys the header and takes it out.
    const headers = Object.entries(answer.headers).filter(([name]) => name !== 'x-accel-buffering')
    response.writeHead(answer.statusCode ?? 0, Object.fromEntries(headers))
    answer.pipe(response)
  })
  t.match(of('gateway.run'), { level: 'ok' })
})

void test('a proxy that holds events back is a problem', async (t) => {
  const { of } = await ran(t, SLOW, (answer, response) => {
    void buffer(answer).then((whole) => response.writeHead(answer.statusCode ?? 0, answer.headers).end(whole))
  })
  t.match(of('gateway.run'), {
    level: 'problem',
    message: /^events are delayed on the way: all 4 arrived together after [\d.]+ m?s$/,
    remedy: /proxy_buffering off.*X-Accel-Buffering/,
  })
})

void test('one that compresses them is a problem', async (t) => {
  const { of } = await ran(t, SLOW, (answer, response) => {
    void buffer(answer).then((whole) => {
      response.writeHead(answer.statusCode ?? 0, { ...answer.headers, 'content-encoding': 'gzip' }).end(gzipSync(whole))
    })
  })
  t.match(of('gateway.run'), { level: 'problem', message: /compresses the stream/, remedy: /text\/event-stream/ })
})

void test('a run that is over at once tells nothing', async (t) => {
  const { of } = await ran(t, paced(1, 'RUN_STARTED', 'RUN_FINISHED'))
  t.match(of('gateway.run'), { level: 'unknown', message: /too fast to see/ })
})

void test('a run that fails, or that says nothing', async (t) => {
  t.match((await ran(t, events({ type: 'RUN_STARTED' }, { type: 'RUN_ERROR', message: 'private' }))).of('gateway.run'), {
    level: 'warning',
    message: /^the run ended with an error after \d+ ms$/,
  })
  t.match((await ran(t, events())).of('gateway.run'), { level: 'problem', message: /without an event/ })
})

void test('a stream that is cut on its way is a problem', async (t) => {
  const { of } = await ran(t, SLOW, (answer, response) => {
    response.writeHead(answer.statusCode ?? 0, answer.headers)
    // An answer that is no stream comes whole: a cut would hit the next request on its connection.
    if (answer.headers['content-type'] !== 'text/event-stream') return void answer.pipe(response)
    answer.once('data', (chunk) => {
      response.write(chunk)
      setTimeout(() => response.destroy(), 100)
    })
  })
  t.match(of('gateway.run'), {
    level: 'problem',
    message: /^the stream broke off after \d+ ms and 1 event$/,
    remedy: /keepAlive/,
  })
})

void test('a run that is refused is a problem, with its code', async (t) => {
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { gateway, changes, signer } = await startScene(t, upstream.url, { ownership: { unknownThread: 'deny' } })
  await gateway.ready()
  const token = signer.sign('alice')
  const { of } = await examined(t, changes, { wishes: { token, run: RUN } })
  t.match(of('gateway.run'), { level: 'problem', message: /answered with 403 \(not-owner\)/ })
  const bare = await examined(t, changes, { wishes: { run: RUN } })
  t.match(bare.of('gateway.run'), { level: 'unknown', message: /needs a token of a caller/ })
})

void test('an address without a gateway lacks the header that a gateway sets', async (t) => {
  const upstream = await startUpstream(SLOW)
  t.teardown(() => upstream.close())
  const { each } = await examined(t, { 'listen.port': Number(new URL(upstream.url).port) }, { wishes: { token: 'x', run: RUN } })
  t.match(each('gateway.run'), [{ level: 'ok' }, { level: 'warning', message: /lacks X-Accel-Buffering: no/ }])
})

void test('the real runtime is run once if it is asked for, and never otherwise', async (t) => {
  hush(t)
  clearThreads()
  const runtime = await startRuntime()
  t.teardown(() => runtime.close())
  const { gateway, changes, signer } = await startScene(t, runtime.url)
  await gateway.ready()
  const token = signer.sign('alice')
  const threads = async () => (await call(`${runtime.url}${runtime.basePath}/threads`)).json as { threads: unknown[] }
  const runs = () => runtime.requests.filter(({ method, url }) => method === 'POST' && url.endsWith('/run')).length
  await examined(t, changes, { wishes: { token } })
  t.equal((await threads()).threads.length, 0)
  t.equal(runs(), 0)
  const { of } = await examined(t, changes, { wishes: { token, run: { ...RUN, message: 'slow' } } })
  t.match(of('gateway.run'), { level: 'ok', message: /one by one/ })
  t.equal((await threads()).threads.length, 1)
  t.equal(runs(), 1)
})
