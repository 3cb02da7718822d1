/** The contract of a limiter, on the counters in memory. Time stands still unless a test moves it. */
import { test, type Test } from 'tap'
import { mock } from 'node:test'
import { makeMemoryLimiter } from '../../src/limits/memory.ts'
import type { Limiter } from '../../src/limits/port.ts'

const PER_MINUTE = { amount: 3, per: 60_000 }

function stopped(t: Test): Limiter {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 })
  t.teardown(() => mock.timers.reset())
  return makeMemoryLimiter()
}

/** Takes until there is nothing left; how many there were. */
async function exhaust(limiter: Limiter, who: string, rate = PER_MINUTE): Promise<number> {
  for (let taken = 0; ; taken += 1) if ((await limiter.take('runs', who, rate)) !== null) return taken
}

void test('twice the amount in a window of twice the time', async (t) => {
  const limiter = stopped(t)
  t.equal(await exhaust(limiter, 'alice'), 6)
  t.strictSame(await limiter.take('runs', 'alice', PER_MINUTE), { name: 'runs', most: 6, window: 120_000, retryAfter: 120_000 })
  mock.timers.tick(50_000)
  t.match(await limiter.take('runs', 'alice', PER_MINUTE), { retryAfter: 70_000 }, 'the window began with the first')
  mock.timers.tick(69_999)
  t.match(await limiter.take('runs', 'alice', PER_MINUTE), { retryAfter: 1 })
  mock.timers.tick(1)
  t.equal(await exhaust(limiter, 'alice'), 6, 'refused ones have not put it off')
})

void test('callers, names and rates are counted apart', async (t) => {
  const limiter = stopped(t)
  await exhaust(limiter, 'alice')
  t.equal(await exhaust(limiter, 'bob'), 6)
  t.equal(await limiter.take('newThreads', 'alice', PER_MINUTE), null)
  t.equal(await exhaust(limiter, 'alice', { amount: 1, per: 1000 }), 2)
  t.not(await limiter.take('runs', 'alice', PER_MINUTE), null, 'the first counter is as it was')
})

void test('so many takers at once get what there is, and no more', async (t) => {
  const limiter = stopped(t)
  const all = await Promise.all(Array.from({ length: 50 }, () => limiter.take('runs', 'alice', PER_MINUTE)))
  t.equal(all.filter((limit) => limit === null).length, 6)
})

void test('a caller who is gone is forgotten', async (t) => {
  const limiter = stopped(t)
  const timers = mock.method(globalThis, 'clearTimeout')
  t.teardown(() => timers.mock.restore())
  for (let at = 0; at < 1000; at += 1) await limiter.take('runs', `user-${at}`, PER_MINUTE)
  mock.timers.tick(120_000)
  for (let at = 0; at < 1000; at += 1) t.equal(await limiter.take('runs', `user-${at}`, PER_MINUTE), null)
  // A record that were still there would be replaced, and its timer taken back.
  t.equal(timers.mock.callCount(), 0)
})

/** Opens streams until there is no room; what closes each. */
async function openAll(limiter: Limiter, who: string, most: number): Promise<(() => void)[]> {
  const closes: (() => void)[] = []
  for (;;) {
    const opened = await limiter.open(who, most)
    if (typeof opened !== 'function') return closes
    closes.push(opened)
  }
}

void test('so many streams at once; one that is closed makes room for one', async (t) => {
  const limiter = stopped(t)
  const [first, second, ...more] = await openAll(limiter, 'alice', 2)
  t.ok(first !== undefined && second !== undefined && more.length === 0)
  t.strictSame(await limiter.open('alice', 2), { name: 'streams', most: 2, window: 0, retryAfter: 1000 })
  t.equal((await openAll(limiter, 'bob', 2)).length, 2, "another's are others")
  mock.timers.tick(24 * 3_600_000)
  t.notOk(typeof (await limiter.open('alice', 2)) === 'function', 'none ends by its age')
  first?.()
  first?.()
  t.equal((await openAll(limiter, 'alice', 2)).length, 1, 'closing it twice is closing it once')
})

void test('the last stream that closes makes no room beyond the bound', async (t) => {
  const limiter = stopped(t)
  const [close] = await openAll(limiter, 'alice', 1)
  close?.()
  // In the same turn: whatever the closing has still to do must not forget this one.
  t.equal(typeof (await limiter.open('alice', 1)), 'function')
  t.notOk(typeof (await limiter.open('alice', 1)) === 'function')
})

void test('the bound is that of who asks, and refused ones hold nothing', async (t) => {
  const limiter = stopped(t)
  const closes = await openAll(limiter, 'alice', 3)
  for (let at = 0; at < 10; at += 1) await limiter.open('alice', 3)
  t.notOk(typeof (await limiter.open('alice', 1)) === 'function')
  for (const close of closes) close()
  t.equal((await openAll(limiter, 'alice', 3)).length, 3)
})
