/** A run whose answer is an open stream keeps nothing of its body, which may be larger than all else that it keeps. */
import { createServer } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { listen, stop } from '../../examples/http.ts'
import { runInput } from '../../testing/support/client.ts'
import { collectGarbage } from '../../testing/support/garbage-collection.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { PAIRS, pairName } from '../../testing/support/pair.ts'
import { openRaw } from '../../testing/support/raw.ts'

const STREAMS = 20
/** Characters of a message: a body that comes with one read of the socket, and one that is read in steps. */
const MESSAGES = [12_000, 300_000] as const

/** V8 gives back the memory of what it has collected in a thread, and at the latest with the next collection. */
async function heldBytes(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    collectGarbage()
    await setImmediate()
  }
  return process.memoryUsage().arrayBuffers
}

for (const pair of PAIRS) {
  void test(`${pairName(pair)}: an open stream keeps nothing of its request's body`, async (t) => {
    const server = createServer((request, response) => {
      // The upstream is in this process, and must not keep bodies either.
      request.resume()
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    })
    const { origin } = await listen(server, 0, '127.0.0.1')
    t.teardown(() => stop(server))
    const { gateway, alice } = await gateBefore(t, origin, { pair })
    const open = async (threadId: string, length: number): Promise<void> => {
      const connection = await openRaw(gateway.url)
      t.teardown(() => connection.destroy())
      const body = JSON.stringify(runInput(threadId, 'x'.repeat(length)))
      const request = { target: '/api/copilotkit/agent/default/run', token: alice, keepAlive: true, body }
      connection.write(gateway.bytes(request))
      await connection.until('data: 1')
    }
    for (const length of MESSAGES) {
      await open(`first-${length}`, length)
      const before = await heldBytes()
      for (let at = 0; at < STREAMS; at += 1) await open(`t${length}-${at}`, length)
      const kept = ((await heldBytes()) - before) / STREAMS
      t.ok(kept < length / 2, `${kept} bytes of each body of ${length} are kept`)
    }
  })
}
