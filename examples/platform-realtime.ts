/**
 * The sockets of the stand-in of the managed platform, in the protocol of Phoenix channels: the runtime hands over the events
 * of its runs at `/runner`, browsers join a thread at `/client` with a join token. The gateway is on neither way.
 */
import type { IncomingMessage, Server } from 'node:http'
import { WebSocketServer, type WebSocket } from 'ws'
import type { PlatformEvent, PlatformThreads } from './platform-threads.ts'

/** A message of either side: the references of the join and of the message, its topic, event and payload. */
type Frame = readonly [join: string | null, ref: string | null, topic: string, event: string, payload: Record<string, unknown>]

/** How the runtime shows its key to a socket, which takes no header of its own (phoenix 1.8). */
const KEY_PROTOCOL = 'base64url.bearer.phx.'

/** Serves the sockets of a server, until that is closed. */
export function serveSockets(server: Server, threads: PlatformThreads, apiKey: string): void {
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => offered.has('phoenix') && 'phoenix' })
  server.on('upgrade', (request, socket, head) => {
    const serve = serverOf(request, threads, apiKey)
    if (serve === null) socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n')
    else sockets.handleUpgrade(request, socket, head, serve)
  })
  server.on('close', () => sockets.close())
}

/** The handler of a socket; null if it may not be opened. */
function serverOf(request: IncomingMessage, threads: PlatformThreads, apiKey: string): ((socket: WebSocket) => void) | null {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://platform')
  if (pathname === '/runner/websocket') {
    const offered = String(request.headers['sec-websocket-protocol']).split(/, */)
    const key = `${KEY_PROTOCOL}${btoa(apiKey).replaceAll('=', '')}`
    return offered.includes(key) ? (socket) => serveRunner(socket, threads) : null
  }
  const topic = pathname === '/client/websocket' ? threads.redeem(searchParams.get('join_token') ?? '') : undefined
  return topic === undefined ? null : (socket) => serveClient(socket, threads, topic)
}

/** A runtime's socket for one run: events arrive, each is confirmed. */
function serveRunner(socket: WebSocket, threads: PlatformThreads): void {
  let threadId = ''
  onFrame(socket, (event, payload) => {
    if (event === 'phx_join') {
      threadId = String(payload['thread_id'])
      if (threads.running(threadId) !== payload['run_id']) throw new Error('the run holds no lock')
    }
    if (event === 'event') threads.append(threadId, payload as PlatformEvent)
  })
}

/** A browser's socket: what happened in the thread, then what happens. */
function serveClient(socket: WebSocket, threads: PlatformThreads, allowed: string): void {
  onFrame(socket, (event, payload, topic) => {
    if (event !== 'phx_join') return
    if (topic !== allowed) throw new Error('the token is for another topic')
    if (!topic.startsWith('thread:')) return
    const threadId = topic.slice('thread:'.length)
    const before = threads.events(threadId)
    const push = (name: string, value: object) => socket.send(JSON.stringify([null, null, topic, name, value]))
    // A run's own page has seen what was before it; one that connects wants everything.
    const wanted = ({ runId }: PlatformEvent) => payload['stream_mode'] !== 'run' || runId === payload['run_id']
    const show = (one: PlatformEvent) => {
      if (wanted(one)) push('ag_ui_event', one)
    }
    const idle = () => {
      if (threads.running(threadId) === null) push('stream_idle', {})
    }
    // The join is confirmed first: a client knows no event of a topic that it has not joined.
    queueMicrotask(() => {
      for (const one of before) show(one)
      push('replay_complete', {})
      idle()
      const deaf = threads.listen(threadId, (one) => {
        show(one)
        idle()
      })
      socket.on('close', deaf)
    })
  })
}

/** Reads a socket's messages, and confirms each that `take` does not throw at. */
function onFrame(socket: WebSocket, take: (event: string, payload: Frame[4], topic: string) => void): void {
  socket.on('message', (data) => {
    const [join, ref, topic, event, payload] = JSON.parse((data as Buffer).toString()) as Frame
    const reply = (status: string, response: object) =>
      socket.send(JSON.stringify([join, ref, topic, 'phx_reply', { status, response }]))
    try {
      take(event, payload, topic)
      reply('ok', {})
    } catch (error) {
      reply('error', { reason: (error as Error).message, retryable: false })
    }
  })
}
