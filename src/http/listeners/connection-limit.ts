/** Limits the connections of the public listener: for a new one, the one that has been idle longest is closed. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '../../observe/log.ts'
import type { ConnectionMetrics } from '../../observe/metrics.ts'
import { carrierOf } from './tls.ts'

/**
 * An open connection, in the order in which the connections became idle. A connection becomes idle when it opens and when its last
 * accepted request is answered. Nothing else that a caller sends changes the order: it would cost a caller without a token nothing.
 */
interface Connection {
  readonly socket: Socket
  /** Accepted requests without a complete answer. The connection is in the list while there are none. */
  busy: number
  isOpen: boolean
  older: Connection | null
  newer: Connection | null
}

export type { Connection as LimitedConnection }

export interface ConnectionLimit {
  /** @param socket of a request, with or without TLS */
  readonly of: (socket: Socket) => Connection | undefined
  /** The gateway has authenticated a request, and the first decision did not refuse it. */
  readonly begin: (connection: Connection) => void
  readonly end: (connection: Connection) => void
}

/** Milliseconds between two lines of the same message: a flood must not fill the log. */
const SAY_EVERY_MS = 60_000

/** @param most open connections, those with unfinished TLS handshakes included */
export function limitConnections(server: Server, most: number, metrics: ConnectionMetrics, log: Logger): ConnectionLimit {
  const known = new WeakMap<Socket, Connection>()
  let open = 0
  let longestIdle: Connection | null = null
  let latestIdle: Connection | null = null

  const link = (connection: Connection): void => {
    connection.older = latestIdle
    if (latestIdle === null) longestIdle = connection
    else latestIdle.newer = connection
    latestIdle = connection
  }
  const unlink = (connection: Connection): void => {
    const { older, newer } = connection
    if (older === null) longestIdle = newer
    else older.newer = newer
    if (newer === null) latestIdle = older
    else newer.older = older
    connection.older = null
    connection.newer = null
  }
  const leave = (connection: Connection): void => {
    if (!connection.isOpen) return
    connection.isOpen = false
    if (connection.busy === 0) unlink(connection)
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
      const idle = longestIdle
      metrics.overLimit(idle === null ? 'refused' : 'idle-closed')
      if (idle === null) {
        refused()
        socket.destroy()
        return
      }
      closedIdle()
      // Not when the socket reports its end, which is later: the next one must not find this one open.
      leave(idle)
      idle.socket.destroy()
    }
    const connection: Connection = { socket, busy: 0, isOpen: true, older: null, newer: null }
    known.set(socket, connection)
    open += 1
    metrics.connectionOpened()
    link(connection)
    socket.once('close', () => leave(connection))
  })

  return {
    of: (socket) => known.get(carrierOf(socket)),
    begin(connection) {
      // Authentication may end after the connection has.
      if (!connection.isOpen) return
      if (connection.busy === 0) unlink(connection)
      connection.busy += 1
    },
    end(connection) {
      if (!connection.isOpen) return
      connection.busy -= 1
      if (connection.busy === 0) link(connection)
    },
  }
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
