/** An address whose connections never come about: a listener that accepts nothing and whose queue is full. */
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'

// The thread listens and then sleeps for good: the kernel queues what fits and lets the rest wait.
const LISTENER = `
  const { parentPort } = require('node:worker_threads')
  const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    parentPort.postMessage(server.address().port)
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))
  })
`

/** Fills the queue; gives the address. */
export async function startFullBacklog(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const worker = new Worker(LISTENER, { eval: true })
  const port = await new Promise<number>((resolve) => worker.once('message', resolve))
  const sockets: Socket[] = []
  for (let count = 0; count < 16; count += 1) sockets.push(connect(port, '127.0.0.1').on('error', () => {}))
  await new Promise((resolve) => sockets[0]!.once('connect', resolve))
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      for (const socket of sockets) socket.destroy()
      await worker.terminate()
    },
  }
}
