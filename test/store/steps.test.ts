/** Steps that hold the process: one after the other, whoever's they are, with a turn of the event loop in between. */
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { makePlaces, makeSteps } from '../../src/store/steps.ts'

/** Holds the process for longer than a spell of steps. */
function hold(): void {
  const until = performance.now() + 10
  while (performance.now() < until);
}

void test('works that are under way at once share the process by steps: others have a turn between any two long ones', async (t) => {
  const steps = makeSteps()
  const order: string[] = []
  const meanwhile = { turns: 0, goesOn: true }
  const others = (async () => {
    for (; meanwhile.goesOn; meanwhile.turns += 1) await setImmediate()
  })()
  const work = async (name: string): Promise<void> => {
    for (let at = 0; at < 3; at += 1) {
      await steps.take(async () => {
        hold()
        order.push(name)
      })
    }
  }
  await Promise.all(['a', 'b', 'c', 'd'].map(work))
  meanwhile.goesOn = false
  await others
  t.same(order.join(''), 'abcdabcdabcd')
  t.ok(meanwhile.turns >= 12, 'a turn for each step', meanwhile)
})

void test('short steps of many go on together', async (t) => {
  const steps = makeSteps()
  let last = 0
  await Promise.all(Array.from({ length: 50 }, (_, at) => steps.take(async () => void (last = at))))
  t.equal(last, 49)
})

void test('a step that fails fails for whoever took it, and the others go on', async (t) => {
  const steps = makeSteps()
  const failing = steps.take(() => Promise.reject(new Error('this one')))
  const other = steps.take(async () => 'that one')
  await t.rejects(failing, { message: 'this one' })
  t.equal(await other, 'that one')
})

void test('so many works are under way at once; the next begins when one is over, also one that failed', async (t) => {
  const places = makePlaces(2)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const work = (name: string): Promise<void> =>
    places(() => {
      begun.push(name)
      return new Promise((resolve, reject) => ends.set(name, name === 'b' ? () => reject(new Error('b')) : resolve))
    })
  const works = ['a', 'b', 'c', 'd'].map(work)
  await setImmediate()
  t.same(begun, ['a', 'b'])
  ends.get('b')?.()
  await t.rejects(works[1]!)
  await setImmediate()
  t.same(begun, ['a', 'b', 'c'])
  ends.get('a')?.()
  await setImmediate()
  t.same(begun, ['a', 'b', 'c', 'd'])
  ends.get('c')?.()
  ends.get('d')?.()
  await Promise.all([works[0], works[2], works[3]])
  await Promise.all([places(async () => {}), places(async () => {}), places(async () => {})])
})
