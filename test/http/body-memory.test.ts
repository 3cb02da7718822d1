/** What bodies may take of Node's memory, by how much there is. */
import { test } from 'tap'
import { oldSpace, oldSpaceOf } from '../../src/gateway/memory-budgets.ts'
import { bodyMemory, bodyMemoryWarning, largestReadable, readingCost } from '../../src/http/pipeline/request-body.ts'

const MIB = 2 ** 20

void test('a heap has room for what is new, and the rest', (t) => {
  for (const [limit, options, old] of [
    // As V8 says them, in MiB: of a large machine, one with a small heap, and containers with and without the option.
    [4288, [], 4096],
    [448, ['--max-old-space-size=256'], 256],
    [304, ['--max-semi-space-size=16'], 256],
    [304, ['', '--max-old-space-size=256 --max_semi_space_size 16'], 256],
    [259, ['--max-semi-space-size=1'], 256],
    // Where nobody says how much is for what is new, rather too little is the rest.
    [259, [], 103],
  ] as const) {
    t.equal(Math.floor(oldSpaceOf(limit * MIB, options) / MIB), old, `${limit} ${options.join()}`)
  }
  t.ok(oldSpace() > 0)
  t.end()
})

void test('all bodies and answers together leave a quarter of it to everything else', (t) => {
  const { held, reading, answers } = bodyMemory(256 * MIB)
  t.same([held, reading, answers], [32 * MIB, 96 * MIB, 64 * MIB])
  t.equal(largestReadable(reading), 16 * MIB)
  t.equal(readingCost(largestReadable(reading), 0), reading)
  t.ok(readingCost(0, 250_000) < reading, 'as many values as a body may have')
  t.end()
})

void test('where a body that is allowed has no room, the start says so', (t) => {
  const limits = { body: MIB, runBody: 64 * MIB }
  t.equal(
    bodyMemoryWarning(256 * MIB, limits),
    'bodies of more than 16 MiB are refused with 413: Node has 256 MiB here for all that lives. Give the container more memory, or lower limits.runBody',
  )
  t.equal(bodyMemoryWarning(256 * MIB, { ...limits, runBody: 16 * MIB }), null)
  t.match(bodyMemoryWarning(256 * MIB, { body: 17 * MIB, runBody: MIB }), '16 MiB')
  t.equal(bodyMemoryWarning(1024 * MIB, limits), null)
  t.end()
})
