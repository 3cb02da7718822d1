/** A stream without events through the gateway, and through what a proxy before it does to one. No agent is run for it. */
import type { ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { test, type Test } from 'tap'
import { INFO, json, startUpstream } from '../../testing/support/upstream.ts'
import type { ConfigTree } from '../../testing/support/gateway.ts'
import { examined } from './examination.ts'
import { startProxy, startScene, type Passing } from './gateway-scene.ts'

/** Nothing that arrives is late, however busy the machine is. */
const QUIET = { quiet: 1000, timeout: 60_000 }

/** Passes on everything but the probe's stream as it comes. */
const onlyStreams =
  (pass: Passing): Passing =>
  (answer, response) => {
    if (answer.headers['content-type'] === 'text/event-stream') return pass(answer, response)
    response.writeHead(answer.statusCode ?? 0, answer.headers)
    return void answer.pipe(response)
  }

async function found(t: Test, pass: Passing, config: ConfigTree = {}, times = QUIET) {
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { gateway, base, signer, changes } = await startScene(t, upstream.url, config)
  await gateway.ready()
  const url = base.replace(gateway.url, await startProxy(t, gateway.url, onlyStreams(pass)))
  const token = signer.sign('alice')
  const { of } = await examined(t, changes, { wishes: { ...times, token, url } })
  const runs = upstream.requests.filter(({ headers }) => headers.has('x-threadwarden-quiet'))
  t.same(runs, [], 'the upstream is not asked')
  return of('gateway.quiet')
}

const asItIs: Passing = (answer, response) => {
  response.writeHead(answer.statusCode ?? 0, answer.headers)
  answer.pipe(response)
}

/** Passes on the first comment, and then does something else. */
const after =
  (then: (response: ServerResponse) => void): Passing =>
  (answer, response) => {
    response.writeHead(answer.statusCode ?? 0, answer.headers)
    answer
      .on('error', () => {})
      .once('data', (chunk) => {
        response.write(chunk)
        setTimeout(() => then(response), 100)
      })
  }

void test('a proxy that passes a stream on and leaves it open is fine', async (t) => {
  t.match(await found(t, asItIs), {
    level: 'ok',
    message: /^a stream without events stays open for 1 s, with at most [\d.]+ m?s of silence$/,
  })
})

void test('the silence that is told is that between keep-alive comments', async (t) => {
  const finding = await found(t, asItIs, { streams: { keepAlive: '100ms' } }, { ...QUIET, quiet: 5000 })
  t.match(finding, { level: 'ok', message: /open for 5 s, with at most (?:\d+ ms|[1-3](?:\.\d)? s) of silence$/ })
})

for (const [how, then] of [
  ['breaks it off', (response) => response.destroy()],
  ['ends it as if it were whole', (response) => response.end()],
] as const satisfies readonly (readonly [string, (response: ServerResponse) => unknown])[]) {
  void test(`a proxy that ${how} is a problem`, async (t) => {
    t.match(await found(t, after(then)), {
      level: 'problem',
      message: /^a proxy before the gateway cuts a stream after [\d.]+ m?s of silence$/,
      remedy: /proxy_read_timeout, HAProxy: timeout server, Caddy: read_timeout/,
    })
  })
}

void test('a proxy that holds a stream back is a problem, whether or not it sends the head', async (t) => {
  const holding = {
    level: 'problem',
    message: /^a proxy before the gateway holds back streams: nothing of one arrived within [\d.]+ m?s$/,
    remedy: /proxy_buffering off/,
  }
  const whole: Passing = (answer, response) => {
    void buffer(answer).then(
      (bytes) => response.writeHead(answer.statusCode ?? 0, answer.headers).end(bytes),
      () => {},
    )
  }
  const times = { quiet: 10_000, timeout: 500 }
  t.match(await found(t, whole, {}, times), holding)
  const headFirst: Passing = (answer, response) => {
    response.writeHead(answer.statusCode ?? 0, answer.headers).flushHeaders()
    void buffer(answer).then(
      (bytes) => response.end(bytes),
      () => {},
    )
  }
  t.match(await found(t, headFirst, {}, times), holding)
})

void test('a proxy that compresses it is a problem', async (t) => {
  const compressing: Passing = (answer, response) => {
    response.writeHead(200, { ...answer.headers, 'content-encoding': 'gzip' }).flushHeaders()
  }
  t.match(await found(t, compressing), { level: 'problem', message: /compresses the stream/ })
})

void test('a proxy that waits for an event until its own time is over is a problem', async (t) => {
  const waiting: Passing = (answer, response) => {
    answer.on('error', () => {}).destroy()
    response.writeHead(504).end('<h1>Gateway Timeout</h1>')
  }
  t.match(await found(t, waiting), {
    level: 'problem',
    message: 'a proxy before the gateway answers a quiet stream with 504',
    remedy: /proxy_buffering off.*proxy_read_timeout/,
  })
})

void test('what shows nothing about proxies is not checked', async (t) => {
  const shutDown = after((response) => response.end('data: {"type":"RUN_ERROR","message":"x","code":"shutting-down"}\n\n'))
  t.match(await found(t, shutDown), { level: 'unknown', message: /the gateway ended the quiet stream \(shutting-down\)/ })
  const elsewhere: Passing = (_answer, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end()
  t.match(await found(t, elsewhere), { level: 'unknown', message: /an empty stream that it did not keep open/ })
  const refusing: Passing = (_answer, response) => void response.writeHead(403).end('{"code":"forbidden"}')
  t.match(await found(t, refusing), { level: 'unknown', message: /answered with 403 \(forbidden\) and no stream/ })
})

void test('it needs an address, a token and a runtime, and a time', async (t) => {
  const upstream = await startUpstream(json(INFO))
  t.teardown(() => upstream.close())
  const { gateway, base, signer, changes } = await startScene(t, upstream.url)
  await gateway.ready()
  const token = signer.sign('alice')
  t.same((await examined(t, changes, { wishes: { ...QUIET, token } })).each('gateway.quiet'), [])
  t.same((await examined(t, changes, { wishes: { ...QUIET, token, url: base, quiet: 0 } })).each('gateway.quiet'), [])
  const without = await examined(t, changes, { wishes: { ...QUIET, url: base } })
  t.match(without.of('gateway.quiet'), { level: 'unknown', message: /needs a token/, remedy: /--token-file/ })
  const alone = { ...changes, upstream: undefined, 'upstream.url': undefined, agents: { helper: { url: upstream.url } } }
  const agent = await examined(t, alone, { wishes: { ...QUIET, token, url: base } })
  t.match(agent.of('gateway.quiet'), { level: 'unknown', message: /agents have no connect/ })
  const nowhere = await examined(t, changes, { wishes: { ...QUIET, token, url: 'http://127.0.0.1:1/api/copilotkit' } })
  t.match(nowhere.of('gateway.quiet'), { level: 'problem', message: /nothing listens/ })
})
