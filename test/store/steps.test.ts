/** Steps that hold the process: one after the other, whoever's they are, with a turn of the event loop in between. */
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { makeSlots, makeSteps } from '../../src/store/steps.ts'

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
  const slots = makeSlots(2, 2)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const work = (name: string): Promise<void> =>
    slots('alice', () => {
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
  await Promise.all(['a', 'b', 'c'].map((caller) => slots(caller, async () => {})))
})

void test('one caller has only so many of them: others find one at once', async (t) => {
  const slots = makeSlots(4, 2)
  const begun: string[] = []
  const ends: (() => void)[] = []
  const work = (caller: string): Promise<void> =>
    slots(caller, () => {
      begun.push(caller)
      return new Promise<void>((resolve) => ends.push(resolve))
    })
  const works = ['alice', 'alice', 'alice', 'alice', 'bob', 'carol', 'bob'].map(work)
  await setImmediate()
  t.same(begun, ['alice', 'alice', 'bob', 'carol'])
  ends[3]!()
  await setImmediate()
  t.same(begun.slice(4), ['bob'], 'alice has her share')
  ends[0]!()
  await setImmediate()
  t.same(begun.slice(5), ['alice'])
  while (begun.length < 7 || ends.length > 0) {
    ends.splice(0).forEach((end) => end())
    await setImmediate()
  }
  await Promise.all(works)
})
