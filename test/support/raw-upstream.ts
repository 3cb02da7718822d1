/** An upstream that misbehaves byte by byte: a plain server that reads requests whole and does with the socket what the test says. */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { until } from './until.ts'

/** The upstream. */
export interface RawUpstream {
  readonly url: string
  /** The whole text of each request of a caller, oldest first. */
  readonly requests: readonly string[]
  /** Waits for so many of them. */
  arrived(count: number): Promise<void>
  close(): Promise<void>
}

/**
 * Starts it on a free port.
 * @param misbehave told the socket, the text of a request that was read whole, and how many came before it
 */
export async function startRawUpstream(
  misbehave: (socket: Socket, request: string, before: number) => void,
): Promise<RawUpstream> {
  const requests: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let pending = ''
    socket.on('data', (chunk) => {
      pending += chunk.toString('latin1')
      for (let end = endOf(pending); end !== null; end = endOf(pending)) {
        const request = pending.slice(0, end)
        pending = pending.slice(end)
        // The gateway's own questions have no request id; they learn nothing here, and a named transport needs nothing.
        if (!/\r\nx-request-id:/i.test(request)) {
          socket.write('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n')
          continue
        }
        requests.push(request)
        misbehave(socket, request, requests.length - 1)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    arrived: (count) => until(() => requests.length >= count),
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Where the first request of a text ends, or null if it is not whole. */
function endOf(text: string): number | null {
  const head = text.indexOf('\r\n\r\n')
  if (head === -1) return null
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head + 2))?.[1] ?? 0)
  const end = head + 4 + length
  return text.length >= end ? end : null
}
