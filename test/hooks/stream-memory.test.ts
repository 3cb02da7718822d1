/** A run in process whose answer is an open stream: the gateway keeps nothing of its body. The runtime has a copy. */
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { ClientDisconnectSignal } from '../../src/http/upstream/upstream.ts'
import { innerUpstream } from '../../src/sdk/hooks/inner-upstream.ts'
import { collectGarbage } from '../../testing/support/garbage-collection.ts'

const STREAMS = 10

/** As a runtime keeps them: Node ends the signal of no request that is collected. */
const running: Request[] = []

async function stream(request: Request): Promise<Response> {
  running.push(request)
  await request.arrayBuffer()
  const open = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('data: 1\n\n')) })
  return new Response(open, { headers: { 'content-type': 'text/event-stream' } })
}

void test('the pieces of the body are free while the answer is open', async (t) => {
  const upstream = innerUpstream(stream, () => 0)
  const signals: ClientDisconnectSignal[] = []
  const open = async (): Promise<WeakRef<Uint8Array>> => {
    const piece = new Uint8Array(1000)
    const signal = new ClientDisconnectSignal()
    signals.push(signal)
    const asked = { method: 'POST', target: '/agent/a/run', headers: {}, body: [piece], mayBegin: () => true }
    const answer = await upstream.send(asked, signal)
    if (answer.outcome === 'failed') throw new Error(answer.detail)
    t.teardown(() => answer.body.destroy())
    return new WeakRef(piece)
  }
  const pieces: WeakRef<Uint8Array>[] = []
  for (let at = 0; at < STREAMS; at += 1) pieces.push(await open())
  // A WeakRef keeps its object until the turn is over.
  await setImmediate()
  collectGarbage()
  t.equal(pieces.filter((piece) => piece.deref() !== undefined).length, 0)
  for (const signal of signals) signal.abort()
  t.equal(running.filter(({ signal }) => signal.aborted).length, STREAMS, 'and a caller who leaves still ends the run')
})
