/** Who reads slowly holds back their own stream only: the gateway reads no more of it, and others of the same upstream go on. */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'tap'
import { unchunked } from '../../testing/support/event-stream.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { head, openRaw, type RawConnection } from '../../testing/support/raw.ts'
import { runInput } from '../../testing/support/client.ts'
import { until } from '../../testing/support/until.ts'

const MIB = 1024 ** 2
const EVENT = `data: ${'x'.repeat(64 * 1024)}\n\n`
/** More than a gateway and the system hold of a stream together. */
const LARGE = 128 * MIB

/** What is asked: each answer is one that goes on, and comes as fast as it is read. */
const ASKED = {
  run: { route: 'agent/default/run', type: 'text/event-stream' },
  connect: { route: 'agent/default/connect', type: 'text/event-stream' },
  'plain body': { route: 'agent/default/run', type: 'application/json' },
  'binary events': { route: 'agent/default/run', type: 'application/vnd.ag-ui.event+proto' },
} as const

interface Endless {
  readonly socket: Socket
  /** Bytes that the gateway took, or its socket's queue in the system. */
  readonly taken: () => number
}

/** An upstream whose large answers are written without a pause, and whose other ones the test writes. */
async function startEndless(type: string) {
  const large: Endless[] = []
  const other: Socket[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      const named = /"threadId":"(large|other)"/.exec(text)?.[1]
      // What the gateway asks on its own account has no request id.
      if (!/\r\nx-request-id:/i.test(text)) {
        if (text.includes('\r\n\r\n')) socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n')
        return
      }
      if (named === undefined) return
      text = ''
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: ${named === 'large' ? type : 'text/event-stream'}\r\ntransfer-encoding: chunked\r\n\r\n`,
      )
      if (named === 'other') {
        other.push(socket)
        return
      }
      const event = `${EVENT.length.toString(16)}\r\n${EVENT}\r\n`
      let left = LARGE
      const fill = (): void => {
        while (left > 0) {
          left -= event.length
          if (!socket.write(event)) return void socket.once('drain', fill)
        }
        socket.write('0\r\n\r\n')
      }
      large.push({ socket, taken: () => socket.bytesWritten - socket.writableLength })
      fill()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    large,
    other,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

for (const [name, { route, type }] of Object.entries(ASKED)) {
  void test(`${name}: a reader who has stopped`, async (t) => {
    const upstream = await startEndless(type)
    t.teardown(() => upstream.close())
    const gate = await gateBefore(t, upstream.url, { config: { streams: { keepAlive: '0s' } } })
    const ask = async (path: string, threadId: string): Promise<RawConnection> => {
      const connection = await openRaw(gate.gateway.url)
      if (threadId === 'large') connection.socket.pause()
      const body = JSON.stringify(runInput(threadId))
      const lines = [`Authorization: Bearer ${gate.alice}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
      connection.write(head(`POST /api/copilotkit/${path} HTTP/1.1`, 'Host: a', ...lines) + body)
      return connection
    }
    // Whoever connects has to have a thread.
    for (const threadId of ['large', 'other']) {
      const first = await ask('agent/default/run', threadId)
      await until(() => upstream.large.length + upstream.other.length > 0)
      first.destroy()
      await until(() => [...upstream.large.map(({ socket }) => socket), ...upstream.other].every(({ destroyed }) => destroyed))
      upstream.large.length = upstream.other.length = 0
    }
    const slow = await ask(route, 'large')
    await until(() => upstream.large.length === 1)
    const { taken } = upstream.large[0]!
    const other = await ask('agent/default/run', 'other')
    await until(() => upstream.other.length === 1)
    // Each event comes, one after the other, for as long as the large one is taken any more, and beyond.
    let before = -1
    let still = 0
    for (let at = 0; still < 50; at += 1) {
      const event = `data: ${at}\n\n`
      upstream.other[0]!.write(`${event.length.toString(16)}\r\n${event}\r\n`)
      await until(() => unchunked(other.text()).endsWith(event))
      still = taken() === before ? still + 1 : 0
      before = taken()
    }
    t.ok(taken() < 0.75 * LARGE, `${(taken() / MIB).toFixed(1)} MiB were taken`)
    t.notOk(other.isClosed())
    slow.socket.removeAllListeners('data')
    let bytes = 0
    slow.socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
    slow.socket.resume()
    await until(() => bytes > LARGE)
    t.pass('and who reads on gets all of it')
    slow.destroy()
    other.destroy()
  })
}
