/** A caller who leaves ends what is done upstream for them, whenever they leave, and nobody is told of it twice. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { collect } from '../../src/http/upstream/answer-body.ts'
import { ClientDisconnectSignal } from '../../src/http/upstream/upstream.ts'
import { openUpstream } from '../../src/http/upstream/upstream.ts'

/** A departure that knows who waits for it. */
class Counted extends ClientDisconnectSignal {
  waiting = 0
  override addEventListener(type: 'abort', listener: () => void): void {
    this.waiting += 1
    super.addEventListener(type, listener)
  }
  override removeEventListener(type: 'abort', listener: () => void): void {
    this.waiting -= 1
    super.removeEventListener(type, listener)
  }
}

void test('whenever a caller leaves, the request of theirs ends and nobody waits for them any more', async (t) => {
  let onRequest: (response: ServerResponse) => void = () => {}
  let requests = 0
  const server = createServer((_request, response) => {
    requests += 1
    onRequest(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const upstream = openUpstream({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    timeouts: { connect: 5000, headers: 0, body: 0 },
  })
  t.teardown(async () => {
    await upstream.close()
    server.close()
  })
  const asked = { method: 'GET', target: '/', headers: {} }

  const early = new Counted()
  early.abort()
  t.match(await upstream.send(asked, early), { outcome: 'failed', refusal: { reason: 'caller-left' }, maybeSent: false })
  const connecting = new Counted()
  const unsent = upstream.send(asked, connecting)
  connecting.abort()
  t.match(await unsent, { outcome: 'failed', refusal: { reason: 'caller-left' } })
  t.equal(requests, 0, 'nothing is begun for nobody')

  const waiting = new Counted()
  const gone = new Promise((resolve) => {
    onRequest = (response) => {
      response.once('close', resolve)
      waiting.abort()
    }
  })
  t.match(await upstream.send(asked, waiting), { outcome: 'failed', refusal: { reason: 'caller-left' }, maybeSent: true })
  await gone

  const reading = new Counted()
  const cut = new Promise((resolve) => {
    onRequest = (response) => {
      response.once('close', resolve)
      response.write('x'.repeat(1000))
    }
  })
  const begun = await upstream.send(asked, reading)
  if (begun.outcome !== 'answered') throw new Error(begun.detail)
  const read = collect(begun.body, 10_000)
  reading.abort()
  reading.abort()
  t.equal(await read, 'broke-off')
  await cut

  const stayed = new Counted()
  onRequest = (response) => response.end('all')
  const whole = await upstream.send(asked, stayed)
  if (whole.outcome !== 'answered') throw new Error(whole.detail)
  t.equal(String(await collect(whole.body, 10)), 'all')
  t.equal(stayed.waiting, 0)
  stayed.abort()
  t.equal(waiting.waiting + reading.waiting, 0)
})
