/** An address whose connections do not come about for now: a listener that accepts nothing and whose queue is full. */
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'

// The thread listens and then sleeps: the kernel queues what fits and lets the rest wait. Woken, it answers every request
// with an event, which is the body of the request.
const LISTENER = `
  const { parentPort, workerData } = require('node:worker_threads')
  const server = require('node:http').createServer((request, response) => {
    parentPort.postMessage(request.url)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: ')
    request.on('data', (chunk) => response.write(chunk)).on('end', () => response.end('\\n\\n'))
  })
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    parentPort.postMessage(server.address().port)
    setImmediate(() => Atomics.wait(workerData, 0, 0))
  })
`

/** The address. */
export interface FullBacklog {
  readonly url: string
  /** The targets of the requests that have come. */
  readonly requests: readonly string[]
  /** Accepts connections from now on. Those that wait come about as soon as the kernel tries again. */
  accept(): void
  close(): Promise<void>
}

/** Fills the queue; gives the address. */
export async function startFullBacklog(): Promise<FullBacklog> {
  const asleep = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(LISTENER, { eval: true, workerData: asleep })
  const port = await new Promise<number>((resolve) => worker.once('message', resolve))
  const requests: string[] = []
  worker.on('message', (target: string) => void requests.push(target))
  const sockets: Socket[] = []
  for (let count = 0; count < 16; count += 1) sockets.push(connect(port, '127.0.0.1').on('error', () => {}))
  await new Promise((resolve) => sockets[0]!.once('connect', resolve))
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    accept() {
      Atomics.store(asleep, 0, 1)
      Atomics.notify(asleep, 0)
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await worker.terminate()
    },
  }
}
