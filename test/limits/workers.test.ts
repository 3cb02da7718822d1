/** Limits of all workers: the primary counts, across a real message channel. */
import { once } from 'node:events'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { test, type Test } from 'tap'
import { borrowedLimiter, lend, type Lent } from '../../src/gateway/workers/limiter.ts'
import type { PrimaryHandlers } from '../../src/gateway/workers/messages.ts'
import { connectRpc, type Channel } from '../../src/gateway/workers/rpc.ts'
import { makeMemoryLimiter } from '../../src/limits/memory.ts'
import type { Limiter } from '../../src/limits/port.ts'

const PER_MINUTE = { amount: 3, per: 60_000 }

function channelOf(port: MessagePort): Channel {
  return {
    send(message, failed) {
      port.postMessage(message)
      failed(null)
    },
    onMessage: (listener) => void port.on('message', listener),
  }
}

/** A worker's limiter, with the primary's side of it. */
function worker(t: Test, counting: Limiter): { readonly limiter: Limiter; readonly lent: Lent; readonly port: MessagePort } {
  const { port1, port2 } = new MessageChannel()
  const lent = lend(counting)
  connectRpc(channelOf(port1), { take: lent.take, open: lent.open, close: lent.close })
  const { call } = connectRpc<PrimaryHandlers>(channelOf(port2), {})
  t.teardown(() => port1.close())
  return { limiter: borrowedLimiter(call), lent, port: port1 }
}

void test('what one worker counts, the others know', async (t) => {
  const counting = makeMemoryLimiter()
  const [first, second] = [worker(t, counting).limiter, worker(t, counting).limiter]
  for (let taken = 0; taken < 6; taken += 1)
    t.equal(await (taken % 2 === 0 ? first : second).take('runs', 'alice', PER_MINUTE), null)
  t.match(await first.take('runs', 'alice', PER_MINUTE), { name: 'runs', most: 6 })
  t.match(await second.take('runs', 'alice', PER_MINUTE), { name: 'runs', most: 6 })
})

void test('a stream beyond the limit is refused in every worker, until one is given back', async (t) => {
  const counting = makeMemoryLimiter()
  const [first, second] = [worker(t, counting), worker(t, counting)]
  const opened = await first.limiter.open('alice', 1)
  for (const { limiter } of [first, second]) t.match(await limiter.open('alice', 1), { name: 'streams', most: 1 })
  t.type(opened, 'function')
  if (typeof opened !== 'function') return
  const heard = once(first.port, 'message')
  opened()
  opened()
  await heard
  const again = await second.limiter.open('alice', 1)
  t.type(again, 'function')
  t.match(await first.limiter.open('alice', 1), { name: 'streams' }, 'what is given back twice counts once')
})

void test('a worker that is gone has no streams, also not those that were asked for before', async (t) => {
  const counting = makeMemoryLimiter()
  const [gone, left] = [worker(t, counting), worker(t, counting)]
  t.type(await gone.limiter.open('alice', 2), 'function')
  const late = gone.lent.open({ who: 'alice', most: 2 })
  gone.lent.takeBack()
  await late
  t.type(await left.limiter.open('alice', 1), 'function')
})
