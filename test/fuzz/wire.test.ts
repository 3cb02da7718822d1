/** Generated requests over real sockets, through a gateway as an operator starts it, to the real runtime. */
import { test } from 'tap'
import { RUNTIME } from '../../testing/fuzz/case.ts'
import { run, seedOfEnvironment } from '../../testing/fuzz/run.ts'
import { MOUNTS, startWire, wireCases } from '../../testing/fuzz/wire.ts'

const CASES = 300

const seed = seedOfEnvironment()

for (const [at, mount] of MOUNTS.entries()) {
  void test(`refused, and nothing was sent; or sent as decided: ${mount.join(', ')}`, async (t) => {
    const wire = await startWire(mount)
    t.teardown(() => wire.close())
    t.comment(`THREADWARDEN_FUZZ_SEED=${seed} makes the same cases again`)
    const arbitrary = wireCases(mount)
    const { tally, counterExample } = await run({
      subject: RUNTIME,
      arbitrary,
      examine: wire.examine,
      cases: CASES,
      seed: seed + at,
    })
    for (const line of tally.lines()) t.comment(line)
    for (const line of counterExample?.split('\n') ?? []) t.comment(line)
    t.equal(counterExample, null, `seed ${seed}`)
    if (counterExample === null) t.ok(tally.served > CASES / 12, `${tally.served} of ${CASES} cases reached the runtime`)
  })
}
