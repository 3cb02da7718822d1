/** Many who ask the health listener at once cost what one costs, and cannot keep a probe out. */
import { connect, type AddressInfo, type Socket } from 'node:net'
import { once } from 'node:events'
import { test, type Test } from 'tap'
import { makeHealthApp, MOST_CONNECTIONS } from '../../src/http/listeners/health.ts'
import { makeReadiness } from '../../src/http/listeners/readiness.ts'
import { makeMetrics, type Figures, type Metrics } from '../../src/observe/metrics.ts'
import { joinMetrics } from '../../src/gateway/workers/joined.ts'
import { call } from '../../testing/support/client.ts'
import { deferred, until } from '../../testing/support/until.ts'

const MANY = 64

/** The listener, before a store and figures that the test plays. */
async function listening(t: Test, fault: () => Promise<string | null>, metrics: Metrics = makeMetrics()) {
  const app = makeHealthApp({ readiness: makeReadiness(), store: { fault }, metrics, isStarted: () => true })
  let arrived = 0
  app.addHook('onRequest', (_request, _reply, done) => {
    arrived += 1
    done()
  })
  t.teardown(() => app.close())
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return { app, port, url: `http://127.0.0.1:${port}`, arrived: () => arrived }
}

void test('a scrape under way is that of all who ask meanwhile', async (t) => {
  const metrics = makeMetrics()
  const gate = deferred()
  let built = 0
  const expose = async () => {
    built += 1
    await gate.promise
    return metrics.expose()
  }
  const { url, arrived } = await listening(t, () => Promise.resolve(null), { ...metrics, expose })
  const answers = Array.from({ length: MANY }, () => call(`${url}/metrics`))
  await until(() => arrived() === MANY)
  t.equal(built, 1)
  gate.resolve()
  for (const { status, text } of await Promise.all(answers)) {
    t.equal(status, 200)
    t.match(text, /threadwarden_open_streams 0/)
  }
  t.equal(built, 1)
  metrics.streams.streamOpened()
  t.match((await call(`${url}/metrics`)).text, /threadwarden_open_streams 1/, 'and nothing of it is kept')
  t.equal(built, 2)
})

void test('with several workers each is asked once for all who ask meanwhile', async (t) => {
  const worker = makeMetrics()
  const gate = deferred()
  let asked = 0
  const ask = async (): Promise<readonly Figures[]> => {
    asked += 1
    await gate.promise
    return [await worker.figures()]
  }
  const { url, arrived } = await listening(t, () => Promise.resolve(null), joinMetrics(makeMetrics(), ask))
  const answers = Array.from({ length: MANY }, () => call(`${url}/metrics`))
  await until(() => arrived() === MANY && asked > 0)
  gate.resolve()
  for (const { status } of await Promise.all(answers)) t.equal(status, 200)
  t.equal(asked, 1)
})

void test('a question to the store under way is that of all who ask meanwhile, and its answer is not kept', async (t) => {
  const gate = deferred()
  let asked = 0
  let state: string | null = null
  const { url, arrived } = await listening(t, async () => {
    asked += 1
    await gate.promise
    return state
  })
  const answers = Array.from({ length: MANY }, () => call(`${url}/readyz`))
  await until(() => arrived() === MANY)
  gate.resolve()
  for (const { status } of await Promise.all(answers)) t.equal(status, 200)
  t.equal(asked, 1)
  for (const [fault, status] of [
    ['the disk is full', 503],
    ['the file is damaged', 503],
    [null, 200],
  ] as const) {
    state = fault
    const answer = await call(`${url}/readyz`)
    t.equal(answer.status, status)
    t.same((answer.json as { pending: object }).pending, fault === null ? {} : { store: fault })
  }
  t.equal(asked, 4)
})

void test('what is pending is that of the moment of the answer', async (t) => {
  const gate = deferred()
  const readiness = makeReadiness()
  const store = { fault: () => gate.promise.then(() => null) }
  const app = makeHealthApp({ readiness, store, metrics: makeMetrics(), isStarted: () => true })
  t.teardown(() => app.close())
  const answers = [app.inject('/readyz'), app.inject('/readyz')]
  readiness.set('shutting-down', 'it goes')
  gate.resolve()
  for (const { statusCode } of await Promise.all(answers)) t.equal(statusCode, 503)
})

void test('connections without requests keep no probe out: the oldest is closed for a new one', async (t) => {
  const { app, port, url } = await listening(t, () => Promise.resolve(null))
  const open = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }
  const sockets: Socket[] = []
  let closed = 0
  for (let at = 0; at < MOST_CONNECTIONS; at += 1) {
    const socket = await open()
    socket.once('close', () => (closed += 1))
    socket.resume()
    sockets.push(socket)
  }
  const count = (): Promise<number> =>
    new Promise((resolve, reject) => app.server.getConnections((error, number) => (error ? reject(error) : resolve(number))))
  await until(async () => (await count()) === MOST_CONNECTIONS)
  t.equal(closed, 0)
  // Half a head is a request that has begun.
  for (const socket of sockets) socket.write('GET /livez HTTP/1.1\r\n')
  const gone = new Promise((resolve) => sockets[0]?.once('close', resolve))
  t.equal((await call(`${url}/livez`)).status, 200)
  await gone
  await until(async () => (await count()) <= MOST_CONNECTIONS)
  t.equal(closed, 1, 'and no other')
})

void test('a store that does not answer holds no scrape up', async (t) => {
  const store = { fault: () => new Promise<null>(() => {}) }
  const app = makeHealthApp({ readiness: makeReadiness(), store, metrics: makeMetrics(), isStarted: () => true })
  t.teardown(() => app.close())
  t.match((await app.inject('/metrics')).body, 'threadwarden_build_info')
})
