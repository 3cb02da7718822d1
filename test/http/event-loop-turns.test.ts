/** Long work of all requests together has a quarter of a millisecond in each turn of the event loop. */
import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { inTurns } from '../../src/http/pipeline/event-loop-turns.ts'
import type { Steps } from '../../src/core/json/steps.ts'

let clock = 0

/** Work whose steps take as long as a test says, and in which turn of the event loop each of them ran. */
async function watched(t: Test) {
  // The turn of another test's work is over then.
  await setImmediate()
  const running = performance.now.bind(performance)
  performance.now = () => clock
  let turns = 0
  const watch = { isOver: false }
  const counting = (async () => {
    for (; !watch.isOver; turns += 1) await setImmediate()
  })()
  t.teardown(async () => {
    performance.now = running
    watch.isOver = true
    await counting
  })
  const ran: { readonly step: string; readonly turn: number }[] = []
  function* work(name: string, milliseconds: readonly number[]): Steps<string> {
    for (const [at, taken] of milliseconds.entries()) {
      ran.push({ step: `${name}${at + 1}`, turn: turns })
      clock += taken
      yield
    }
    return name
  }
  return {
    work,
    steps: () => ran.map(({ step }) => step),
    /** How many steps ran in each turn. */
    together: () => [...Map.groupBy(ran, ({ turn }) => turn).values()].map((some) => some.length),
  }
}

void test('each step that takes longer than the share has a turn of its own', async (t) => {
  const { work, steps, together } = await watched(t)
  const all = ['a', 'b', 'c'].map((name) => inTurns(work(name, [1, 1, 1])))
  t.same(await Promise.all(all), ['a', 'b', 'c'])
  t.same(steps(), ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'c2', 'b3', 'c3'], 'first who waited first')
  t.same(together(), [1, 1, 1, 1, 1, 1, 1, 1, 1])
})

void test('shorter steps share a turn until they have taken its share together', async (t) => {
  const { work, together } = await watched(t)
  await inTurns(work('a', [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.01, 0.1]))
  t.same(together(), [3, 3, 3])
})

void test('work that begins later in a turn has only what is left of its share', async (t) => {
  const { work, steps, together } = await watched(t)
  await Promise.all([inTurns(work('a', [0.1])), inTurns(work('b', [0.2, 0.1])), inTurns(work('c', [0.1]))])
  t.same(steps(), ['a1', 'b1', 'b2', 'c1'])
  t.same(together(), [2, 1, 1])
})

void test('work that fails ends with its error, and others go on', async (t) => {
  const { work } = await watched(t)
  function* failing(): Steps<void> {
    yield* work('failing', [1])
    throw new Error('a step failed')
  }
  const [failed, done] = await Promise.allSettled([inTurns(failing()), inTurns(work('other', [1, 1]))])
  t.match(failed, { status: 'rejected', reason: { message: 'a step failed' } })
  t.match(done, { status: 'fulfilled', value: 'other' })
})
