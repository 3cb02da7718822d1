/** Long work of all requests together has a quarter of a millisecond in each turn of the event loop, one task after the other. */
import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { firstTurn, inTurns } from '../../src/http/pipeline/event-loop-turns.ts'
import type { Steps } from '../../src/core/json/steps.ts'

let clock = 0

/** Tasks whose steps take as long as a test says, and in which turn of the event loop each of them ran. */
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

const LONG = 1024 * 1024

/** Long tasks. Each of them comes when the one before runs already, or waits. */
async function started(...tasks: readonly Steps<string>[]): Promise<readonly string[]> {
  const results: Promise<string>[] = []
  for (const steps of tasks) {
    results.push(
      (async () => {
        await firstTurn(LONG)
        return inTurns(steps)
      })(),
    )
    await new Promise<void>((resolve) => process.nextTick(resolve))
  }
  return Promise.all(results)
}

void test('each step that takes longer than the share has a turn of its own', async (t) => {
  const { work, steps, together } = await watched(t)
  t.same(await started(work('a', [1, 1, 1]), work('b', [1, 1, 1]), work('c', [1, 1, 1])), ['a', 'b', 'c'])
  t.same(steps(), ['a1', 'a2', 'a3', 'b1', 'b2', 'b3', 'c1', 'c2', 'c3'], 'in the order in which they came')
  t.same(together(), [1, 1, 1, 1, 1, 1, 1, 1, 1])
})

void test('shorter steps share a turn until they have taken its share together', async (t) => {
  const { work, together } = await watched(t)
  await inTurns(work('a', [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.01, 0.1]))
  t.same(together(), [3, 3, 3])
})

void test('a task that begins later in a turn has only what is left of its share', async (t) => {
  const { work, steps, together } = await watched(t)
  await started(work('a', [0.1]), work('b', [0.2, 0.1]), work('c', [0.1]))
  t.same(steps(), ['a1', 'b1', 'b2', 'c1'])
  t.same(together(), [2, 1, 1])
})

void test('no long task begins while another one that has begun waits, even where a turn has time left', async (t) => {
  const { work, steps } = await watched(t)
  let late: Promise<unknown> | undefined
  function* first(): Steps<void> {
    yield* work('a', [1, 0.1])
    late = started(work('new', [0.1]))
  }
  await Promise.all([inTurns(first()), inTurns(work('b', [1, 1]))])
  await late
  t.same(steps(), ['a1', 'a2', 'b1', 'b2', 'new1'])
})

const ones = (count: number): readonly number[] => Array.from({ length: count }, () => 1)

void test('a task that is much longer than others waits behind them after its turns in a row', async (t) => {
  const { work, steps } = await watched(t)
  await started(work('long', ones(20)), work('other', ones(2)), work('third', ones(1)))
  const before = ones(16).map((_, at) => `long${at + 1}`)
  t.same(steps(), [...before, 'other1', 'other2', 'third1', 'long17', 'long18', 'long19', 'long20'])
})

void test('a task that begins when another one has had its turns in a row does not wait behind the others', async (t) => {
  const { work, steps } = await watched(t)
  let short: Promise<string> | undefined
  function* long(): Steps<string> {
    yield* work('long', ones(15))
    work('last', [1]).next()
    short = inTurns(work('short', [1]))
    yield
    return 'long'
  }
  await started(long(), work('other', ones(2)))
  await short
  t.same(steps().slice(15), ['last1', 'short1', 'other1', 'other2'])
})

void test('a long task that waits has its turn, however many short ones come', async (t) => {
  const { work, steps } = await watched(t)
  const short = ones(40).map((_, at) => work(`short${at}-`, [1]))
  const all = short.map((steps) => inTurns(steps))
  await Promise.all([started(work('long', ones(3))), ...all])
  t.same(
    [1, 2, 3].map((step) => steps().indexOf(`long${step}`)),
    [16, 41, 42],
  )
})

void test('a short task does not wait until others end', async (t) => {
  const { work, steps } = await watched(t)
  const others = started(work('long', ones(3)), work('other', ones(1)))
  await setImmediate()
  t.equal(firstTurn(1000), null)
  await Promise.all([others, inTurns(work('short', [1]))])
  t.ok(steps().indexOf('short1') < steps().indexOf('other1'))
})

void test('a task that fails ends with its error, and others go on', async (t) => {
  const { work } = await watched(t)
  function* failing(): Steps<void> {
    yield* work('failing', [1])
    throw new Error('a step failed')
  }
  const [failed, done] = await Promise.allSettled([inTurns(failing()), inTurns(work('other', [1, 1]))])
  t.match(failed, { status: 'rejected', reason: { message: 'a step failed' } })
  t.match(done, { status: 'fulfilled', value: 'other' })
})
