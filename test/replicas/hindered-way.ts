/**
 * A way to a PostgreSQL server on which news are lost: a proxy that reads what the server says (PostgreSQL documentation,
 * "Message Flow"), as a pooler does that hands a session's connection to another after each transaction.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

/** The way. */
export interface HinderedWay {
  readonly url: string
  /** From now on no notification gets through; everything else does. */
  readonly loseNotifications: () => void
  /** From now on nothing of what the server says gets through on connections that listen. */
  readonly stallListening: () => void
  /** How many notifications were lost. */
  readonly lost: () => number
}

/** The type of NotificationResponse. */
const NOTIFICATION = 'A'.charCodeAt(0)

/** Opens it. The server must be spoken to without TLS. */
export async function hinderedWay(t: Test, to: string): Promise<HinderedWay> {
  const target = new URL(to)
  const sockets = new Set<Socket>()
  const listening = new Set<Socket>()
  let isLosing = false
  let isStalling = false
  let lost = 0
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    client.on('data', (chunk: Buffer) => {
      if (chunk.includes('LISTEN')) listening.add(upstream)
      upstream.write(chunk)
    })
    let rest = Buffer.alloc(0)
    upstream.on('data', (chunk: Buffer) => {
      if (isStalling && listening.has(upstream)) return
      rest = Buffer.concat([rest, chunk])
      // A type of one byte, and a length that counts itself.
      while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
        const end = 1 + rest.readInt32BE(1)
        if (isLosing && rest[0] === NOTIFICATION) lost += 1
        else client.write(rest.subarray(0, end))
        rest = rest.subarray(end)
      }
    })
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  const url = new URL(to)
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: url.href,
    loseNotifications: () => void (isLosing = true),
    stallListening: () => void (isStalling = true),
    lost: () => lost,
  }
}
