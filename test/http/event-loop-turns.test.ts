/** Long work leaves the event loop to others after its share of a turn, whoever does it. */
import { test } from 'tap'
import { inTurns } from '../../src/http/pipeline/event-loop-turns.ts'
import type { Steps } from '../../src/core/json/steps.ts'

/** Longer than long work may take in one turn. */
const LONG_STEP_MS = 1

function spin(): void {
  const until = performance.now() + LONG_STEP_MS
  while (performance.now() < until);
}

void test('each long step of any work has a turn of the event loop of its own', async (t) => {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const began: string[] = []
  const inTurn: number[] = []
  function* work(name: string): Steps<string> {
    for (let step = 1; step <= 3; step += 1) {
      began.push(`${name}${step}`)
      inTurn.push(turns)
      spin()
      yield
    }
    return name
  }
  t.same(await Promise.all(['a', 'b', 'c'].map((name) => inTurns(work(name)))), ['a', 'b', 'c'])
  isOver = true
  t.same(began, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'c2', 'b3', 'c3'], 'first who waited first')
  t.equal(new Set(inTurn).size, 9, 'no two steps in one turn')
})

void test('work that fails ends with its error, and others go on', async (t) => {
  function* failing(): Steps<void> {
    spin()
    yield
    throw new Error('a step failed')
  }
  function* other(): Steps<string> {
    spin()
    yield
    return 'done'
  }
  const [failed, done] = await Promise.allSettled([inTurns(failing()), inTurns(other())])
  t.match(failed, { status: 'rejected', reason: { message: 'a step failed' } })
  t.match(done, { status: 'fulfilled', value: 'done' })
})
