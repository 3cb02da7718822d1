/** Limits the connections of the public listener: for a new one, the one that has been idle longest is closed. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../../observe/log.ts'
import type { ConnectionMetrics } from '../../observe/metrics.ts'
import { carrierOf } from './tls.ts'

/** An open connection. */
export interface LimitedConnection {
  readonly socket: Socket
  /** Accepted requests without a complete answer: the gateway has authenticated them, and the first decision did not refuse them. */
  busy: number
  isOpen: boolean
}

export interface ConnectionLimit {
  /** @param socket of a request, with or without TLS */
  readonly of: (socket: Socket) => LimitedConnection | undefined
  /**
   * Open connections that are not busy, in the order in which they became so: when they opened, or when the last accepted request was
   * answered. Nothing else that a caller sends changes the order: it would cost a caller without a token nothing.
   */
  readonly idle: Set<LimitedConnection>
}

/** Milliseconds between two lines of the same message: a flood must not fill the log. */
const SAY_EVERY_MS = 60_000

/** @param most open connections, those with unfinished TLS handshakes included */
export function limitConnections(server: Server, most: number, metrics: ConnectionMetrics, log: Logger): ConnectionLimit {
  const known = new WeakMap<Socket, LimitedConnection>()
  const idle = new Set<LimitedConnection>()
  let open = 0

  const leave = (connection: LimitedConnection): void => {
    if (!connection.isOpen) return
    connection.isOpen = false
    idle.delete(connection)
    open -= 1
    metrics.connectionClosed()
  }

  const closedIdle = everyMinute((count) =>
    log.warn({ connections: most, count }, 'listen.connections is reached: idle connections are closed for new ones'),
  )
  const refused = everyMinute((count) =>
    log.warn(
      { connections: most, count },
      'listen.connections is reached, and a request is in progress on each connection: new ones are refused',
    ),
  )

  server.on('connection', (socket: Socket) => {
    if (open >= most) {
      const [longestIdle] = idle
      metrics.overLimit(longestIdle === undefined ? 'refused' : 'idle-closed')
      if (longestIdle === undefined) {
        refused()
        socket.destroy()
        return
      }
      closedIdle()
      // Not when the socket reports its end, which is later: the next one must not find this one open.
      leave(longestIdle)
      longestIdle.socket.destroy()
    }
    const connection: LimitedConnection = { socket, busy: 0, isOpen: true }
    known.set(socket, connection)
    open += 1
    metrics.connectionOpened()
    idle.add(connection)
    socket.once('close', () => leave(connection))
  })

  return { of: (socket) => known.get(carrierOf(socket)), idle }
}

/** Counts events, and reports the first at once and later ones together. */
function everyMinute(say: (count: number) => void): () => void {
  let count = 0
  let saidAt = -Infinity
  return () => {
    count += 1
    const now = performance.now()
    if (now - saidAt < SAY_EVERY_MS) return
    saidAt = now
    say(count)
    count = 0
  }
}
