/** Whoever does not do what all workers do is ended, because it would go by something else than the others. */
import { test, type Test } from 'tap'
import type { Line } from '../../testing/support/program.ts'
import { configFile } from '../../testing/support/program.ts'
import { makeMemoryLimiter } from '../../src/limits/memory.ts'
import { makeLog } from '../../src/observe/log.ts'
import { prepare } from '../../src/snapshot/load.ts'
import { makeWorkerPool, type WorkerPool, type WorkerPoolParts } from '../../src/gateway/workers/pool.ts'
import { lend } from '../../src/gateway/workers/limiter.ts'
import { until } from '../../testing/support/until.ts'
import { childrenOf, workerOf } from './scene.ts'

/** Two workers of this process. */
async function startPool(t: Test, patience: Pick<WorkerPoolParts, 'longestAnswer' | 'lookEvery'> = {}) {
  const outcome = prepare(configFile(t, { workers: 2 }).file, {})
  if (!outcome.ok) throw new Error('no configuration')
  const { value: prepared } = outcome
  const lines: Line[] = []
  const begun: number[] = []
  let number = 1
  const workerPool: WorkerPool = makeWorkerPool({
    size: 2,
    port: 0,
    beginning: () => {
      begun.push(number)
      return { prepared, files: prepared.sources.held, number, logForm: 'json' }
    },
    lend: () => lend(makeMemoryLimiter()),
    onAudit: () => {},
    onGone: () => {},
    onChange: () => {},
    log: makeLog('info', { write: (line) => void lines.push(JSON.parse(line) as Line) }),
    ...patience,
  })
  t.teardown(() => workerPool.end())
  await workerPool.start()
  const said = (text: string): readonly Line[] => lines.filter(({ msg }) => String(msg).startsWith(text))
  return { workerPool, prepared, said, begun, setActive: (next: number) => (number = next) }
}

const isThere = (id: number): boolean => childrenOf(process.pid).includes(id)

void test('one that cannot put a change in force begins anew, by what is in force', async (t) => {
  const { workerPool, prepared, said, begun, setActive } = await startPool(t)
  await workerPool.ask('prepare', prepared)
  // It dies between the two steps, and the next one has no prepared configuration.
  process.kill(workerOf(process.pid, 1), 'SIGKILL')
  await until(() => said('the worker is serving again').length === 1)
  const [other, able] = [workerOf(process.pid, 1), workerOf(process.pid, 2)]
  setActive(2)
  await workerPool.order('activate', null)
  t.notOk(isThere(other), 'it serves nobody by the old one when the order is done')
  t.ok(isThere(able))
  t.match(said('a worker failed to apply'), [{ worker: 1, err: { message: /no prepared configuration/ } }])
  await until(() => said('the worker is serving again').length === 2)
  t.same(begun, [1, 1, 1, 2])
})

for (const [what, asked] of [
  ['an order', (workerPool: WorkerPool) => workerPool.order('discard', null)],
  ['a revocation', (workerPool: WorkerPool) => workerPool.ask('revocations', null)],
] as const) {
  void test(`${what} is done when one that does not answer is no more`, async (t) => {
    const { workerPool } = await startPool(t, { longestAnswer: 1000 })
    const hanging = workerOf(process.pid, 1)
    process.kill(hanging, 'SIGSTOP')
    await asked(workerPool)
    t.notOk(isThere(hanging))
  })
}

void test('one that hangs is ended and begins anew, also where nobody asks anything', async (t) => {
  const { said } = await startPool(t, { longestAnswer: 1000, lookEvery: 20 })
  const hanging = workerOf(process.pid, 1)
  process.kill(hanging, 'SIGSTOP')
  await until(() => said('the worker is serving again').length === 1)
  t.notOk(isThere(hanging))
  t.match(said('a worker exited'), [{ worker: 1, signal: 'SIGKILL' }])
})
