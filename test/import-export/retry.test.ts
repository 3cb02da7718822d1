/** A store that fails for a moment is asked again; one that goes on failing, and everything else that fails, is not. */
import { test } from 'tap'
import { inSteps, makeRetry } from '../../src/tools/import-export/retry.ts'
import { StoreUnavailable } from '../../src/store/port/state.ts'

/** A step that fails so many times, and a count of how often it was tried. */
function failing(times: number, error: () => Error = () => new StoreUnavailable('away')) {
  const tried = { times: 0 }
  const step = (): Promise<string> => {
    tried.times += 1
    return tried.times <= times ? Promise.reject(error()) : Promise.resolve('done')
  }
  return { tried, step }
}

const retry = (limit: number, signal = new AbortController().signal, onTrouble: () => void = () => {}) =>
  makeRetry({ limit, first: 1, signal, onTrouble })

void test('a step is tried again until it succeeds, and the trouble told once', async (t) => {
  let told = 0
  const { tried, step } = failing(4)
  t.equal(await retry(10_000, undefined, () => void (told += 1))(step), 'done')
  t.same({ tried: tried.times, told }, { tried: 5, told: 1 })
})

void test('when the limit is over it fails', async (t) => {
  const { tried, step } = failing(Infinity)
  await t.rejects(retry(30)(step), { name: 'StoreUnavailable', message: 'away' })
  t.ok(tried.times > 1, 'after some attempts')
})

void test('what is no failure of the store is not tried again', async (t) => {
  const { tried, step } = failing(1, () => new Error('a fault of the program'))
  await t.rejects(retry(10_000)(step), { message: 'a fault of the program' })
  t.equal(tried.times, 1)
})

void test('the signal ends the retry', async (t) => {
  const told = new AbortController()
  const { step } = failing(Infinity)
  const waiting = makeRetry({ limit: 60_000, first: 60_000, signal: told.signal, onTrouble: () => told.abort() })(step)
  await t.rejects(waiting, { name: 'StoreUnavailable' })
})

void test('steps go on until nothing is left, and tell how far they came', async (t) => {
  const left = [3, 2, 0]
  const told: number[] = []
  const { signal } = new AbortController()
  const steps = await inSteps(
    () => Promise.resolve(left.shift() ?? 0),
    retry(1),
    signal,
    (done) => told.push(done),
  )
  t.same(steps, { done: 5, interrupted: false })
  t.same(told, [3, 5])
})

void test('the signal ends them after the step that is under way', async (t) => {
  const told = new AbortController()
  const steps = await inSteps(
    () => {
      told.abort()
      return Promise.resolve(7)
    },
    retry(1),
    told.signal,
    () => {},
  )
  t.same(steps, { done: 7, interrupted: true })
})
