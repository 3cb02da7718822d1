/** Generated requests through a listener with TLS: what is true without TLS is true with it. */
import { test } from 'tap'
import { RUNTIME } from '../../testing/fuzz/case.ts'
import { run, seedOfEnvironment } from '../../testing/fuzz/run.ts'
import { MOUNTS, startWire, wireCases, type WireMount } from '../../testing/fuzz/wire.ts'
import { secureFiles } from '../../testing/support/secure.ts'

const CASES = 150

const seed = seedOfEnvironment()
const [multi, single] = ['multi-route', 'single-route'].map((transport) => MOUNTS.find((mount) => mount[2] === transport))

for (const mount of [multi, single] as readonly WireMount[]) {
  void test(`refused, and nothing was sent; or sent as decided: ${mount.join(', ')}`, async (t) => {
    const wire = await startWire(mount, secureFiles(t).listen())
    t.teardown(() => wire.close())
    t.comment(`THREADWARDEN_FUZZ_SEED=${seed} makes the same cases again`)
    const { tally, counterExample } = await run({
      subject: RUNTIME,
      arbitrary: wireCases(mount),
      examine: wire.examine,
      cases: CASES,
      seed,
    })
    for (const line of counterExample?.split('\n') ?? []) t.comment(line)
    t.equal(counterExample, null, `seed ${seed}`)
    if (counterExample === null) t.ok(tally.served > CASES / 12, `${tally.served} of ${CASES} cases reached the runtime`)
  })
}
