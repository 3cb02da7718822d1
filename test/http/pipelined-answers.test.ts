/**
 * Answers that wait behind others on their caller's connection, from an upstream that closes its own: nothing that a caller or an
 * upstream does there ends the process, loses a byte, or leaves the caller waiting for the rest of an answer that broke off.
 *
 * nodejs/undici#5360: a connection that ended while its answer was held back was an assertion that failed.
 */
import { createServer, type AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { head, openRaw } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'

interface Answer {
  readonly framing: 'content-length' | 'none'
  /** Bytes of the body. */
  readonly size: number
  /** That the upstream promises, and does not send. */
  readonly missing?: number
}

/** Two runs on one connection; the first is answered when the second has been sent whole. */
async function pipelined(t: Test, { framing, size, missing = 0 }: Answer) {
  const second = Promise.withResolvers<null>()
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (asked) => {
      const length = framing === 'none' ? '' : `content-length: ${size + missing}\r\n`
      const answer = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n${length}\r\n${'a'.repeat(size)}`
      if (String(asked).includes('"second"')) socket.end(answer, () => second.resolve(null))
      // The other one has come by then, and waits at the gateway.
      else void second.promise.then(() => setTimeout(() => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfirst'), 50))
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const gate = await gateBefore(t, `http://127.0.0.1:${port}`, { config: { upstream: { transport: 'multi-route' } } })
  const caller = await openRaw(gate.gateway.url)
  t.teardown(() => caller.destroy())
  const run = (threadId: string): string => {
    const body = JSON.stringify(runInput(threadId))
    const fields = [
      'Host: a',
      `Authorization: Bearer ${gate.alice}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]
    return head('POST /api/copilotkit/agent/default/run HTTP/1.1', ...fields) + body
  }
  caller.write(run('first') + run('second'))
  return { caller, gate }
}

for (const framing of ['content-length', 'none'] as const) {
  for (const size of [1000, 66_000, 90_000, 140_000, 300_000]) {
    void test(`${size} bytes, ${framing}`, async (t) => {
      const { caller } = await pipelined(t, { framing, size })
      await until(() => caller.text().split('a').length > size)
      t.match(caller.text(), 'first', 'the first answer comes first')
      t.ok(caller.text().includes('a'.repeat(size)) || framing === 'none', 'and the second whole')
    })
  }
}

void test('an answer that broke off behind another one ends the connection', async (t) => {
  const { caller } = await pipelined(t, { framing: 'content-length', size: 1000, missing: 10 })
  await caller.ended()
  t.pass('and nobody waits for the rest')
})
