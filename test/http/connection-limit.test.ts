/**
 * The limit of open connections at the public listener. A caller without a token can open any number, and can do on them what it
 * likes: it takes no memory beyond the limit, no stream of another caller, and keeps nobody out.
 */
import { once } from 'node:events'
import { Server } from 'node:http'
import { connect, createServer, Socket, type AddressInfo } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { test, type Test } from 'tap'
import { makeApp } from '../../src/http/listeners/app.ts'
import { limitConnections } from '../../src/http/listeners/connection-limit.ts'
import { listenOn } from '../../src/http/listeners/listening.ts'
import type { Answer } from '../../src/http/pipeline/answer.ts'
import type { Classified } from '../../src/http/pipeline/stages.ts'
import { makeLog } from '../../src/observe/log.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { runInput } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { head, openRaw, requestBytes, type RawConnection } from '../../testing/support/raw.ts'
import { steadySnapshot } from '../../testing/support/requests.ts'
import { secureFiles } from '../../testing/support/secure.ts'
import { deferred, until } from '../../testing/support/until.ts'

const MOST = 16
const INFO = '/api/copilotkit/info'
const RUN = '/api/copilotkit/agent/default/run'
const LIMITED = { listen: { host: '127.0.0.1', port: 0, connections: MOST } }

/** A gateway with a small limit, whose upstream begins each run and writes an event whenever the test says. */
async function limited(t: Test, config: object = LIMITED) {
  const writers: (() => void)[] = []
  const gate = await gated(
    t,
    (request, response) => {
      if (request.target.endsWith('/info')) return void response.writeHead(200).end('{}')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      const write = () => response.write('data: {"type":"STEP"}\n\n')
      write()
      writers.push(write)
    },
    { config: { ...config } },
  )
  const opened: Socket[] = []
  t.teardown(() => opened.forEach((socket) => socket.destroy()))
  const open = async (): Promise<RawConnection> => {
    const connection = await openRaw(gate.gateway.url)
    opened.push(connection.socket)
    return connection
  }
  /** Asks for /info, and keeps the connection. */
  const asking = async (token: string | undefined): Promise<RawConnection> => {
    const connection = await open()
    connection.write(request(token))
    await connection.until(token === undefined ? 'HTTP/1.1 401' : 'HTTP/1.1 200')
    return connection
  }
  const streaming = async (threadId: string): Promise<RawConnection> => {
    const connection = await open()
    connection.write(
      requestBytes({ target: RUN, token: gate.alice, body: JSON.stringify(runInput(threadId, 'x')), keepAlive: true }),
    )
    await connection.until('STEP')
    return connection
  }
  return { ...gate, open, asking, streaming, opened, write: () => writers.forEach((one) => one()) }
}

function answersIn(connection: RawConnection): number {
  return connection.text().split('HTTP/1.1 ').length - 1
}

function request(token: string | undefined): Buffer {
  return requestBytes({ target: INFO, ...(token === undefined ? {} : { token }), keepAlive: true })
}

async function figures({ gateway }: Pick<GatedUpstream, 'gateway'>) {
  const text = await (await fetch(`${gateway.healthUrl}/metrics`)).text()
  const of = (name: string): number => Number(new RegExp(`^threadwarden_${name} (\\d+)$`, 'm').exec(text)?.[1])
  return {
    open: of('open_connections'),
    closed: of('connections_over_limit_total\\{outcome="idle-closed"\\}'),
    refused: of('connections_over_limit_total\\{outcome="refused"\\}'),
  }
}

function warnings({ gateway }: Pick<GatedUpstream, 'gateway'>): readonly unknown[] {
  return gateway.lines.filter(({ msg }) => String(msg).startsWith('listen.connections')).map(({ msg }) => msg)
}

const CLOSED = 'listen.connections is reached: idle connections are closed for new ones'
const REFUSED = 'listen.connections is reached, and a request is in progress on each connection: new ones are refused'

/** True when an event that is written now arrives. */
async function isAlive(stream: RawConnection, write: () => void): Promise<boolean> {
  const before = stream.text().split('STEP').length
  write()
  await until(() => stream.isClosed() || stream.text().split('STEP').length > before)
  return !stream.isClosed()
}

void test('a flood of idle connections ends no stream, keeps no caller out, and takes no more than the limit', async (t) => {
  const gate = await limited(t)
  const stream = await gate.streaming('t1')
  const flood: RawConnection[] = []
  for (let at = 0; at < 3 * MOST; at += 1) flood.push(await gate.open())
  t.match((await gate.asking(gate.alice)).text(), /^HTTP\/1\.1 200 /)
  t.ok(await isAlive(stream, gate.write))
  // The stream, the one who asked, and those who came last.
  const left = MOST - 2
  await until(() => flood.filter((one) => !one.isClosed()).length === left)
  t.ok(flood.slice(-left).every((one) => !one.isClosed()))
  t.same(await figures(gate), { open: MOST, closed: 2 * MOST + 2, refused: 0 })
  t.same(warnings(gate), [CLOSED], 'once for all of them')
  for (const one of [...flood, stream]) one.destroy()
  await until(async () => (await figures(gate)).open === 1)
})

void test('nothing that a caller without a token sends makes its connection busy, or one that became idle later', async (t) => {
  const gate = await limited(t)
  const preflight = head(
    `OPTIONS ${INFO} HTTP/1.1`,
    'Host: a',
    'Origin: https://app.example.com',
    'Access-Control-Request-Method: GET',
  )
  const upload = head(`POST ${RUN} HTTP/1.1`, 'Host: a', 'Content-Type: application/json', 'Content-Length: 1000')
  const row = Buffer.concat(Array.from({ length: 10 }, () => request('no.good.token')))
  /** What it sends at first, how many answers it gets, and what it sends later than all who are honest. */
  const attacks: Readonly<Record<string, readonly [first: string | Buffer, answers: number, later: string | Buffer]>> = {
    nothing: ['', 0, ''],
    'one byte': ['G', 0, 'E'],
    'a head without an end': [`GET ${INFO} HTTP/1.1\r\nHost: a\r\n`, 0, 'X-More: 1\r\n'],
    'a body that does not come': [`${upload}{`, 1, ' '],
    'a refused request': [request(undefined), 1, request(undefined)],
    'refused requests in a row': [row, 10, row],
    'a preflight': [preflight, 1, preflight],
  }
  const attackers: RawConnection[] = []
  for (const [first, answers] of Object.values(attacks)) {
    const attacker = await gate.open()
    attackers.push(attacker)
    if (first.length > 0) attacker.write(first)
    await until(() => answersIn(attacker) === answers)
  }
  const honest: RawConnection[] = []
  while (honest.length + attackers.length < MOST) honest.push(await gate.asking(gate.alice))
  for (const [at, [, , later]] of Object.values(attacks).entries()) if (later.length > 0) attackers[at]!.write(later)
  await until(() => [2, 20, 2].every((count, at) => answersIn(attackers[4 + at]!) === count))
  for (const name of Object.keys(attacks)) {
    await gate.asking(gate.alice)
    const attacker = attackers.shift()!
    await until(() => attacker.isClosed())
    t.ok(
      attackers.every((one) => !one.isClosed()),
      name,
    )
  }
  t.ok(honest.every((one) => !one.isClosed()))
})

void test('a connection is idle from the end of its last accepted request', async (t) => {
  const gate = await limited(t)
  const first = await gate.asking(gate.alice)
  const others: RawConnection[] = []
  while (others.length < MOST - 1) others.push(await gate.asking(gate.alice))
  first.write(request(gate.bob))
  await until(() => answersIn(first) === 2)
  await gate.asking(gate.alice)
  await until(() => others[0]!.isClosed())
  t.notOk(first.isClosed())
  t.ok(others.slice(1).every((one) => !one.isClosed()))
})

void test('with a request in progress on each connection, a new one is refused until one of them ends', async (t) => {
  const gate = await limited(t)
  const streams: RawConnection[] = []
  for (let at = 0; at < MOST; at += 1) streams.push(await gate.streaming(`t${at}`))
  for (let at = 0; at < 3; at += 1) {
    const late = await gate.open()
    late.write(request(gate.alice))
    t.equal(await late.ended(), '')
  }
  t.same(await figures(gate), { open: MOST, closed: 0, refused: 3 })
  t.same(warnings(gate), [REFUSED])
  for (const stream of streams) t.ok(await isAlive(stream, gate.write))
  streams[0]!.destroy()
  await until(async () => (await figures(gate)).open === MOST - 1)
  t.match((await gate.asking(gate.alice)).text(), /^HTTP\/1\.1 200 /)
  t.ok((await Promise.all(streams.slice(1).map((one) => isAlive(one, gate.write)))).every(Boolean))
})

void test('a pipelined request behind a stream keeps its connection, and one that is refused does not free it', async (t) => {
  const gate = await limited(t)
  const stream = await gate.streaming('t1')
  stream.write(Buffer.concat([request(gate.alice), request(undefined)]))
  await gate.upstream.arrived(2)
  for (let at = 0; at < 2 * MOST; at += 1) await gate.open()
  t.ok(await isAlive(stream, gate.write))
})

void test('TLS: handshakes that do not end are connections too, and those who have a stream keep it', async (t) => {
  const { tls } = secureFiles(t)
  const gate = await limited(t, { listen: { ...LIMITED.listen, tls } })
  const hello = await clientHello(t)
  const port = Number(new URL(gate.gateway.url).port)
  const stream = await gate.streaming('t1')
  const flood: Socket[] = []
  for (let at = 0; at < 3 * MOST; at += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    flood.push(socket)
    gate.opened.push(socket)
    await once(socket, 'connect')
    if (at % 3 === 0) continue
    socket.write(at % 3 === 1 ? hello.subarray(0, 40) : hello)
    // The gateway's part of the handshake.
    if (at % 3 === 2) await once(socket, 'data')
  }
  t.match((await gate.asking(gate.alice)).text(), /^HTTP\/1\.1 200 /)
  t.ok(await isAlive(stream, gate.write))
  for (const socket of flood) socket.resume()
  await until(() => flood.filter((socket) => !socket.closed).length === MOST - 2)
  t.match(await figures(gate), { open: MOST, closed: 2 * MOST + 2 })
  // A finished handshake is no request.
  const idle = await Promise.all(Array.from({ length: MOST }, () => gate.open()))
  t.match((await gate.asking(gate.alice)).text(), /^HTTP\/1\.1 200 /)
  t.ok(idle.some((one) => !one.isClosed()))
  t.ok(await isAlive(stream, gate.write))
  t.match(await figures(gate), { open: MOST, refused: 0 })
  const streams = [stream]
  while (streams.length < MOST) streams.push(await gate.streaming(`t${streams.length + 1}`))
  await t.rejects(gate.open(), 'refused in its handshake')
  t.ok((await Promise.all(streams.map((one) => isAlive(one, gate.write)))).every(Boolean))
  t.match(await figures(gate), { open: MOST, refused: 1 })
})

/** What a client of TLS sends first. */
async function clientHello(t: Test): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const client = connectSecurely({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' }).on('error', () => {})
  const [accepted] = (await once(server, 'connection')) as [Socket]
  const [bytes] = (await once(accepted, 'data')) as [Buffer]
  accepted.destroy()
  client.destroy()
  return bytes
}

void test('authentication that takes long protects no connection, and one that closed meanwhile counts no more', async (t) => {
  const metrics = makeMetrics()
  const authenticated = deferred<Classified | Answer>()
  let asked = 0
  const { app } = makeApp({
    enter: () =>
      steadySnapshot({
        admit: () => {
          asked += 1
          return authenticated.promise
        },
        complete: () => new Promise(() => {}),
      }),
    upstreamUrl: 'http://127.0.0.1:1',
    log: makeLog('silent'),
    onUnreadable: () => {},
    maxHeaderSize: 16_384,
    trustedProxies: [],
    tls: null,
    tracing: null,
    mostConnections: 3,
    metrics,
    requestId: () => 'r1',
  })
  await listenOn(app, '127.0.0.1', 0)
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  const connections: RawConnection[] = []
  t.teardown(async () => {
    for (const one of connections) one.destroy()
    await app.close()
  })
  const open = async (): Promise<RawConnection> => {
    const connection = await openRaw(url)
    connections.push(connection)
    return connection
  }
  const openNow = async (): Promise<number | undefined> => {
    const found = (await metrics.figures()).find(({ name }) => name === 'threadwarden_open_connections')
    return (found as unknown as { readonly values: readonly { readonly value: number }[] } | undefined)?.values[0]?.value
  }
  for (let at = 0; at < 3; at += 1) (await open()).write(request('x'))
  await until(() => asked === 3)
  const [first, second, third] = connections
  await open()
  await until(() => first!.isClosed())
  t.notOk(second!.isClosed())
  authenticated.resolve({ outcome: 'classified', route: null } as Classified)
  await new Promise((resolve) => setImmediate(resolve))
  // Now two are busy and one is idle: of three more, each takes the place of the one before.
  for (let at = 0; at < 3; at += 1) await open()
  const [, , , fourth, fifth, sixth, seventh] = connections
  await until(() => [fourth, fifth, sixth].every((one) => one!.isClosed()))
  t.notOk([second, third, seventh].some((one) => one!.isClosed()))
  t.equal(await openNow(), 3)
  for (const one of connections) one.destroy()
  await until(async () => (await openNow()) === 0)
})

void test('a caller who leaves in the middle of a stream leaves no room that is given twice', async (t) => {
  const gate = await limited(t)
  for (const thread of ['t1', 't2', 't3']) {
    const stream = await gate.streaming(thread)
    stream.socket.destroy()
    await until(async () => (await figures(gate)).open === 0)
  }
  for (let at = 0; at < 2 * MOST; at += 1) await gate.open()
  await until(async () => (await figures(gate)).closed === MOST)
  t.equal((await figures(gate)).open, MOST)
})

void test('the count and the order are right at once, also for connections that arrive together', (t) => {
  const server = new Server()
  let open = 0
  const limit = limitConnections(
    server,
    3,
    { connectionOpened: () => (open += 1), connectionClosed: () => (open -= 1), overLimit: () => {} },
    makeLog('silent'),
  )
  const arrive = () => {
    const socket = new Socket()
    server.emit('connection', socket)
    t.ok(open <= 3)
    return { socket, connection: limit.of(socket)! }
  }
  const [first, second, third, ...later] = Array.from({ length: 5 }, arrive)
  t.same(
    [first, second, third, ...later].map((one) => one!.socket.destroyed),
    [true, true, false, false, false],
  )
  limit.idle.delete(third!.connection)
  const [next, last] = [arrive(), arrive()]
  t.same(
    [...later, third, next].map((one) => one!.socket.destroyed),
    [true, true, false, false],
  )
  third!.socket.emit('close')
  t.equal(open, 2)
  // Two are open, and no longer the third.
  const more = Array.from({ length: 4 }, arrive)
  t.same(
    [next, last, ...more].map((one) => one.socket.destroyed),
    [true, true, true, false, false, false],
  )
  t.equal(open, 3)
  t.end()
})
