/** An operation that many ask for at once runs once at a time, and for a tenth of the time at most. */
import { test } from 'tap'
import { singleFlight } from '../../src/http/listeners/single-flight.ts'
import { deferred } from '../../testing/support/until.ts'

/** An operation whose runs the test ends, on a clock that the test moves. */
function operation() {
  let now = 0
  let timer = deferred()
  const waits: number[] = []
  const runs: { readonly resolve: (value: string) => void; readonly reject: (error: Error) => void }[] = []
  const ask = singleFlight(
    () => {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      runs.push({ resolve, reject })
      return promise
    },
    {
      now: () => now,
      wait: (duration) => {
        waits.push(duration)
        return timer.promise
      },
    },
  )
  return {
    ask,
    runs,
    waits,
    /** Moves the clock alone. */
    tick: (duration: number): void => void (now += duration),
    /** Lets time pass, and what waited go on. */
    pass: async (duration: number): Promise<void> => {
      await settled()
      now += duration
      timer.resolve()
      timer = deferred()
      await settled()
    },
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

void test('all who ask during a run share it', async (t) => {
  const { ask, runs, pass } = operation()
  const first = Array.from({ length: 64 }, ask)
  await pass(3)
  const later = Array.from({ length: 64 }, ask)
  t.equal(runs.length, 1)
  runs[0]?.resolve('one')
  t.same(new Set(await Promise.all([...first, ...later])), new Set(['one']))
  t.equal(runs.length, 1)
})

void test('who asks in the pause waits for the next run, all for the same, and gets nothing older', async (t) => {
  const { ask, runs, waits, pass } = operation()
  const first = ask()
  await pass(20)
  runs[0]?.resolve('old')
  t.equal(await first, 'old')
  const later = Array.from({ length: 64 }, ask)
  await settled()
  t.same([runs.length, waits], [1, [180]], 'nine times as long as the run took')
  await pass(180)
  t.equal(runs.length, 2)
  runs[1]?.resolve('new')
  t.same(new Set(await Promise.all(later)), new Set(['new']))
})

void test('the pause is neither too short nor too long, and after it nobody waits', async (t) => {
  for (const [took, pause] of [
    [0, 50],
    [1, 50],
    [10, 90],
    [60_000, 1000],
  ] as const) {
    const { ask, runs, waits, pass } = operation()
    const first = ask()
    await pass(took)
    runs[0]?.resolve('one')
    await first
    await pass(pause - 1)
    const second = ask()
    await settled()
    t.same([runs.length, waits], [1, [1]], `after ${took} ms`)
    await pass(1)
    t.equal(runs.length, 2)
    runs[1]?.resolve('two')
    t.equal(await second, 'two')
    await pass(pause)
    const third = ask()
    await settled()
    t.same([runs.length, waits], [3, [1]])
    runs[2]?.resolve('three')
    t.equal(await third, 'three')
  }
})

void test('a timer that comes late starts nothing beside a run that has begun', async (t) => {
  const { ask, runs, tick, pass } = operation()
  const first = ask()
  await settled()
  runs[0]?.resolve('one')
  await first
  const waiting = ask()
  tick(50)
  const early = ask()
  await pass(0)
  t.equal(runs.length, 2)
  runs[1]?.resolve('two')
  t.same(await Promise.all([waiting, early]), ['two', 'two'])
})

void test('a failure is that of all who shared the run, and of nobody after them', async (t) => {
  const { ask, runs, pass } = operation()
  const asked = [ask(), ask()]
  await settled()
  runs[0]?.reject(new Error('no'))
  for (const one of asked) await t.rejects(one, { message: 'no' })
  const next = ask()
  await pass(50)
  t.equal(runs.length, 2, 'the pause holds after a failure, too')
  runs[1]?.resolve('yes')
  t.equal(await next, 'yes')
  let calls = 0
  const thrown = singleFlight(
    (): Promise<string> => {
      calls += 1
      throw new Error('at once')
    },
    { now: () => 0, wait: () => Promise.resolve() },
  )
  await t.rejects(thrown(), { message: 'at once' })
  t.equal(calls, 1)
})
