/** Every input that the coverage-guided fuzz has kept, put through the oracle of its target; the fuzzer itself is not needed. */
import { test } from 'tap'
import { inputLine, readCorpus } from '../../testing/fuzz/corpora.ts'
import { loadTarget, TARGET_NAMES } from '../../testing/fuzz/targets.ts'

for (const name of TARGET_NAMES) {
  void test(`what is kept for ${name}`, async (t) => {
    const { examine, seeds } = await loadTarget(name)
    const kept = readCorpus(name)
    t.ok(kept.length > 0, 'there is something')
    for (const input of [...seeds.map((seed) => Buffer.from(seed, 'latin1')), ...kept]) {
      try {
        await examine(Buffer.from(input))
      } catch (error) {
        t.error(error, inputLine(input))
      }
    }
    t.end()
  })
}
