/**
 * The values that run, of each setting of a library that could cut or cap a connection, a request or a stream. They stand here
 * once more, so that a library whose default changes, or that gets a new setting of this kind, is noticed (docs/reference/timeouts.md).
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import dns from 'node:dns'
import { IncomingMessage, ServerResponse, type Server } from 'node:http'
import { Socket } from 'node:net'
import fastify from 'fastify'
import { test, type Test } from 'tap'
import { beginExchange } from '../../src/http/pipeline/exchange.ts'
import { listenOn, OPERATOR_LISTENER, publicListener } from '../../src/http/listeners/listening.ts'
import { connectionsFor } from '../../src/http/upstream/upstream.ts'
import { gated } from '../../testing/support/gated.ts'
import { firstAnswer, head, openRaw } from '../../testing/support/raw.ts'
import { secureFiles } from '../../testing/support/secure.ts'
import { steadySnapshot } from '../../testing/support/requests.ts'
import { startUpstream } from '../../testing/support/upstream.ts'

/** What cuts or caps, by its name. */
const BOUND = /timeout|max|(?<!de)limit|interval|threshold|keepalive|watermark|nodelay/i

/** Every property of an object that does, by the name of its key; timers that run for one are no value. */
function boundsOf(object: object): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const key of Reflect.ownKeys(object)) {
    const name = typeof key === 'symbol' ? (key.description ?? '') : key
    const value = (object as Record<string | symbol, unknown>)[key]
    if (BOUND.test(name) && (typeof value !== 'object' || value === null)) found[name] = value
  }
  return found
}

/** The servers that begin to listen while something is done, with the lengths of their queues. */
async function listening(t: Test, act: () => Promise<unknown>): Promise<{ server: Server; backlog: unknown }[]> {
  const found: { server: Server; backlog: unknown }[] = []
  const hear = (message: unknown): void => {
    const { server, options } = message as { server: Server; options: { backlog?: number } }
    found.push({ server, backlog: options.backlog })
  }
  subscribe('tracing:net.server.listen:asyncStart', hear)
  t.teardown(() => unsubscribe('tracing:net.server.listen:asyncStart', hear))
  await act()
  unsubscribe('tracing:net.server.listen:asyncStart', hear)
  return found
}

const OF_EACH_SERVER = {
  _maxListeners: undefined,
  timeout: 0,
  headersTimeout: 60_000,
  connectionsCheckingInterval: 30_000,
  keepAliveTimeout: 72_000,
  keepAliveTimeoutBuffer: 1000,
  maxRequestsPerSocket: 0,
  keepAlive: true,
  // In seconds, unlike all others.
  keepAliveInitialDelay: 60,
  noDelay: true,
  highWaterMark: 65_536,
}

const OF_THE_PUBLIC_ONE = { ...OF_EACH_SERVER, maxHeadersCount: 201, requestTimeout: 300_000, maxHeaderSize: 20_480 }

const OF_THE_OPERATORS = {
  ...OF_EACH_SERVER,
  maxHeadersCount: 0,
  requestTimeout: 10_000,
  headersTimeout: 10_000,
  connectionsCheckingInterval: 5000,
  maxHeaderSize: 16_384,
}

void test('the servers of all listeners', async (t) => {
  const config = { limits: { headers: '20KiB' }, admin: { host: '127.0.0.1', port: 0, credential: 'x'.repeat(32) } }
  // The first is the upstream of the test's own.
  const [, ...found] = await listening(t, () => gated(t, undefined, { config }))
  t.equal(found.length, 3, 'public, health and admin')
  for (const [at, expected] of [OF_THE_PUBLIC_ONE, OF_THE_OPERATORS, OF_THE_OPERATORS].entries()) {
    const { server, backlog } = found[at]!
    t.strictSame(boundsOf(server), expected)
    t.equal(server.maxConnections, undefined)
    t.equal(backlog, 4096)
  }
})

void test('a listener with TLS has the limits of one without, and one for handshakes', async (t) => {
  const config = { limits: { headers: '20KiB' }, ...secureFiles(t).listen() }
  const [, found] = await listening(t, () => gated(t, undefined, { config }))
  // Without a value, Node has no such limit.
  const bounds = { maxRequestsPerSocket: 0, ...boundsOf(found!.server) }
  t.strictSame(bounds, { ...OF_THE_PUBLIC_ONE, 'handshake-timeout': 10_000, maxVersion: undefined })
  t.equal(found!.server.maxConnections, undefined)
  t.equal(found!.backlog, 4096)
})

void test('a name of several addresses is one server, as all that is set is set on one', async (t) => {
  const { lookup } = dns
  t.teardown(() => (dns.lookup = lookup))
  // As Fastify asks for the addresses of localhost, which this machine may have one of only. The cast leaves out the overloads
  // that Fastify does not use.
  const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
  dns.lookup = ((_name: string, _options: object, done: (error: null, found: object) => void) =>
    done(null, addresses)) as unknown as typeof lookup
  const app = fastify(publicListener(16_384))
  t.teardown(() => app.close())
  const found = await listening(t, () => listenOn(app, 'localhost', 0))
  t.equal(found.length, 1)
  t.equal(app.addresses().length, 1)
})

void test('what Fastify adds of its own', async (t) => {
  const rest = { connectionTimeout: 0, handlerTimeout: 0, maxRequestsPerSocket: 0, keepAliveTimeout: 72_000 }
  // What only concerns a start, other protocols, and parts of targets, which the public listener does not route by.
  const other = { pluginTimeout: 10_000, http2SessionTimeout: 72_000, maxParamLength: 100 }
  for (const [options, expected] of [
    [publicListener(1), { requestTimeout: 300_000, bodyLimit: Number.MAX_SAFE_INTEGER }],
    [OPERATOR_LISTENER, { requestTimeout: 10_000, bodyLimit: 4096 }],
  ] as const) {
    const app = fastify(options)
    t.strictSame(boundsOf(app.initialConfig), { ...rest, ...other, ...expected })
    await app.close()
  }
})

void test('the connections to the upstream', async (t) => {
  const origin = await startUpstream()
  t.teardown(() => origin.close())
  const connections = connectionsFor({ url: origin.url, timeouts: { connect: 1500, headers: 2500, body: 0 } })
  t.teardown(() => connections.destroy())
  const client = connections.take()
  const answer = await client.request({ method: 'GET', path: '/info' })
  await answer.body.dump()
  t.equal(answer.statusCode, 200)
  const part = (object: object, name: string): unknown =>
    (object as Record<symbol, unknown>)[Object.getOwnPropertySymbols(object).find(({ description }) => description === name)!]
  t.equal(part(client, 'pipelining'), 1)
  t.strictSame(boundsOf(client), {
    _maxListeners: undefined,
    'headers timeout': 2500,
    'body timeout': 0,
    'max headers size': 16_384,
    'max response size': -1,
    maxRequestsPerClient: 0,
    'default keep alive timeout': 1000,
    'max keep alive timeout': 600_000,
    'keep alive timeout threshold': 4000,
    // As the server here said: 5 s, less the margin.
    'keep alive timeout': 1000,
  })
})

void test('a head may have 200 lines, and is read to the last of them; one more is refused, also where Node drops what is beyond', async (t) => {
  const { gateway, alice } = await gated(t)
  const asked = async (count: number) => {
    const connection = await openRaw(gateway.url)
    const lines = Array.from({ length: count - 3 }, () => 'a:')
    const last = ['Host: a', `Authorization: Bearer ${alice}`, 'Connection: close']
    connection.write(head('GET /api/copilotkit/info HTTP/1.1', ...lines, ...last))
    return firstAnswer(await connection.ended())
  }
  t.equal((await asked(200)).status, 200)
  for (const count of [201, 202, 3000]) t.match(await asked(count), { status: 431, body: '"code":"headers-too-large"' })
  // As an older Node gives a longer one.
  const rawHeaders = Array.from({ length: 402 }, () => 'a')
  const message = Object.assign(new IncomingMessage(new Socket()), { rawHeaders, httpVersion: '1.1' })
  const known = { id: 'r1', startedAt: 0, address: '', target: '/' }
  const { head: begun } = beginExchange(message, new ServerResponse(message), known, steadySnapshot())
  t.match(begun.fault, { reason: 'http-headers-too-large' })
})
