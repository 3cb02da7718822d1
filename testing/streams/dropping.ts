/**
 * Streams that are opened and dropped by their callers, as many as one likes, through a gateway of this process; and what of them
 * is still there. Test and long run (scripts/dropped-streams.ts) are the same but for the number.
 */
import { once } from 'node:events'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { connect, Socket, type AddressInfo } from 'node:net'
import { queryObjects } from 'node:v8'
import { ArrivingBody } from '../../src/http/upstream/answer-body.ts'
import { runInput } from '../support/client.ts'
import { collectGarbage } from '../support/garbage-collection.ts'
import { startTestGateway } from '../support/gateway.ts'
import { head } from '../support/raw.ts'
import { makeSigner } from '../support/tokens.ts'
import { until } from '../support/until.ts'

/** Where a stream is when its caller leaves; the thread id begins with it, so that the upstream knows. */
const MOMENTS = ['halfway-through-the-request', 'before-the-head', 'after-the-head', 'after-an-event', 'within-an-event'] as const
type Moment = (typeof MOMENTS)[number]

/** How a caller leaves: with a FIN and no more reading, with a FIN that waits for the other one, with a reset. */
const LEAVINGS: readonly ((socket: Socket) => unknown)[] = [
  (socket) => socket.destroy(),
  (socket) => socket.end(),
  (socket) => socket.resetAndDestroy(),
]

/** What the upstream says of a stream before its caller leaves. */
const SAID: Readonly<Record<Moment, string | null>> = {
  'halfway-through-the-request': null,
  'before-the-head': null,
  'after-the-head': '',
  'after-an-event': 'data: {"type":"RUN_STARTED"}\n\n',
  'within-an-event': 'data: {"type":"RUN_STA',
}

/** What is alive in this process: gateway, upstream and callers. */
export interface Alive {
  /** How many of each kind, after everything was collected that can be. */
  readonly objects: Readonly<Record<string, number>>
  /** What keeps the process running, by kind. */
  readonly resources: Readonly<Record<string, number>>
  /** Bytes of the heap. */
  readonly heap: number
}

/** What was seen. */
export interface Dropped {
  /** When each way to leave had been taken once by a batch. */
  readonly first: Alive
  readonly halfway: Alive
  readonly last: Alive
  /** The gauge of open streams, and the upstream's connections that are open, at the end. */
  readonly openStreams: string | undefined
  readonly upstreamConnections: number
  /** How many requests reached the upstream, and how many streams the gateway's gauge ever showed at once. */
  readonly arrived: number
  readonly mostOpen: number
}

function alive(): Alive {
  collectGarbage()
  const kinds = { Socket, IncomingMessage, ServerResponse, ArrivingBody, AbortController }
  const objects = Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => [name, queryObjects(kind as never, { format: 'count' } as never)]),
  )
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  return { objects, resources, heap: process.memoryUsage().heapUsed }
}

/**
 * Opens and drops them.
 * @param count how many; a multiple of twice the batch
 * @param batch how many at once; a multiple of the ways to leave
 * @param onBatch told how many there have been
 */
export async function dropStreams(count: number, batch: number, onBatch: (dropped: number) => void = () => {}): Promise<Dropped> {
  const sockets = new Set<Socket>()
  let arrived = 0
  const upstream = createServer((message, response) => {
    let text = ''
    response.on('error', () => {})
    message.on('error', () => {})
    message.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    message.on('end', () => {
      // What the gateway asks on its own account, now and then, on a connection that it keeps for a while.
      if (message.headers['x-request-id'] === undefined) return void response.writeHead(404).end()
      const { socket } = message
      sockets.add(socket.once('close', () => sockets.delete(socket)))
      arrived += 1
      const { threadId } = JSON.parse(text) as { threadId: string }
      const said = SAID[threadId as Moment]
      if (said === null) return
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (said === '') response.flushHeaders()
      else response.write(said)
    })
  })
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const signer = makeSigner()
  const gateway = await startTestGateway({
    authentication: signer.authentication,
    upstream: { url: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`, transport: 'multi-route' },
  })
  const token = signer.sign('alice')
  const { hostname, port } = new URL(gateway.url)
  const figures = async (): Promise<string | undefined> =>
    /^threadwarden_open_streams (\d+)$/m.exec(await (await fetch(`${gateway.healthUrl}/metrics`)).text())?.[1]

  const open = async (moment: Moment): Promise<Socket> => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    await once(socket, 'connect')
    const body = JSON.stringify(runInput(moment))
    const lines = [
      'Host: a',
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]
    const start = head('POST /api/copilotkit/agent/default/run HTTP/1.1', ...lines)
    const said = SAID[moment]
    let text = ''
    const heard = said === null ? null : Promise.withResolvers<undefined>()
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (text.includes('\r\n\r\n') && text.includes(said ?? '')) heard?.resolve(undefined)
    })
    socket.write(moment === 'halfway-through-the-request' ? start + body.slice(0, 20) : start + body)
    await heard?.promise
    return socket
  }

  let mostOpen = 0
  const dropBatch = async (): Promise<void> => {
    const before = arrived
    const opened = await Promise.all(Array.from({ length: batch }, (_, at) => open(MOMENTS[at % MOMENTS.length]!)))
    // Of each five one never gets there.
    await until(() => arrived === before + (batch / MOMENTS.length) * (MOMENTS.length - 1))
    mostOpen = Math.max(mostOpen, Number(await figures()))
    const closed = Promise.all(opened.map((socket) => once(socket, 'close')))
    for (const [at, socket] of opened.entries()) LEAVINGS[Math.floor(at / MOMENTS.length) % LEAVINGS.length]!(socket)
    await closed
    await until(() => sockets.size === 0)
    // What a test keeps of the log is no part of the gateway.
    gateway.lines.length = 0
  }

  try {
    const seen: Alive[] = []
    for (let dropped = batch; dropped <= count; dropped += batch) {
      await dropBatch()
      onBatch(dropped)
      if (dropped === batch || dropped === count / 2 || dropped === count) {
        await until(async () => (await figures()) === '0')
        seen.push(alive())
      }
    }
    const [first, halfway, last] = seen as [Alive, Alive, Alive]
    return { first, halfway, last, openStreams: await figures(), upstreamConnections: sockets.size, arrived, mostOpen }
  } finally {
    await gateway.close()
    signer.remove()
    upstream.closeAllConnections()
    upstream.close()
  }
}
