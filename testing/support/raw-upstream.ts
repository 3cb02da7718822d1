/** An upstream that misbehaves byte by byte: a plain server that reads requests whole and does with the socket what the test says. */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { MULTI_ROUTE, type Pair } from './pair.ts'
import { until } from './until.ts'
import { unwrapped } from './unwrapped.ts'

/** The upstream. */
export interface RawUpstream {
  readonly url: string
  /** The whole text of each request of a caller, oldest first; of an envelope, that of the request that it stands for. */
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
  { pair = MULTI_ROUTE }: { readonly pair?: Pair } = {},
): Promise<RawUpstream> {
  const { upstream: transport } = pair
  const requests: string[] = []
  const faults: unknown[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let pending = ''
    socket.on('data', (chunk) => {
      pending += chunk.toString('latin1')
      for (let end = endOf(pending); end !== null; end = endOf(pending)) {
        let request = pending.slice(0, end)
        pending = pending.slice(end)
        // The gateway's own questions have no request id; they learn nothing here, and a named transport needs nothing.
        if (!/\r\nx-request-id:/i.test(request)) {
          socket.write('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n')
          continue
        }
        try {
          if (transport === 'single-route') request = unwrappedText(request)
        } catch (error) {
          faults.push(error)
          socket.destroy()
          return
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
      if (faults.length > 0) throw faults[0]
    },
  }
}

function unwrappedText(text: string): string {
  const [top = '', body = ''] = text.split('\r\n\r\n')
  const [line = '', ...lines] = top.split('\r\n')
  const [method = '', target = ''] = line.split(' ')
  const rawHeaders = lines.flatMap((one) => [one.slice(0, one.indexOf(':')), one.slice(one.indexOf(':') + 1).trim()])
  const request = unwrapped({ method, target, rawHeaders, body: Buffer.from(body, 'latin1') })
  const headers = request.rawHeaders.map((part, at) => (at % 2 === 0 ? `${part}: ` : `${part}\r\n`)).join('')
  return `${request.method} ${request.target} HTTP/1.1\r\n${headers}\r\n${request.body.toString('latin1')}`
}

/** Where the first request of a text ends, or null if it is not whole. */
function endOf(text: string): number | null {
  const head = text.indexOf('\r\n\r\n')
  if (head === -1) return null
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head + 2))?.[1] ?? 0)
  const end = head + 4 + length
  return text.length >= end ? end : null
}
