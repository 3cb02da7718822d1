/** The soak as a command, for some seconds: that it does what it says, and finds what is wrong. */
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { demandsOf } from '../../testing/soak/demands.ts'
import { readOptions } from '../../testing/soak/options.ts'
import { readResult } from '../../testing/soak/page.ts'
import { memoryPlot } from '../../testing/soak/plot.ts'
import type { SoakResult } from '../../testing/soak/result.ts'
import { ROOT } from '../docs/markdown.ts'
import { makeFolder } from '../../testing/support/gateway.ts'

function soak(folder: string, ...args: readonly string[]) {
  const options = { encoding: 'utf8', env: { ...process.env, TMPDIR: folder } } as const
  return spawnSync(process.execPath, [join(ROOT, 'scripts/soak.ts'), ...args], options)
}

for (const workers of [1, 2]) {
  void test(`a soak of some seconds, workers: ${workers}`, (t) => {
    const { folder, remove } = makeFolder()
    t.teardown(remove)
    const out = join(folder, 'soak.json')
    const briefly = ['--minutes=0.3', '--rate=40', '--streams=10', `--workers=${workers}`, `--out=${out}`]
    const { status, stdout, stderr } = soak(folder, ...briefly)
    t.equal(status, 0, `${stdout}${stderr}`)
    const result = readResult(out)
    for (const [kind, counts] of Object.entries(result.kinds)) {
      if (kind !== 'slow') t.ok(counts.asked > 0, `${kind} was asked`)
      t.match(counts, { unexplained: 0, wrongOwner: 0 }, kind)
    }
    t.ok(result.kinds.stream.explained.token > 0, 'tokens ended within streams')
    t.ok(result.kinds.messages.explained.upstream > 0, 'the upstream was away')
    t.ok(result.kinds.stop.expected > 0)
    t.same(new Set(result.faults.map(({ fault }) => fault)), new Set(['upstream', 'reload', 'keys']))
    t.ok(result.samples.length > 2)
    for (const { what, isMet } of demandsOf(result)) t.equal(isMet, what === 'Resident memory is flat' ? null : true, what)
    t.same(readdirSync(folder), ['soak.json'], 'what was made is gone')
    t.equal(soak(folder, '--read', `--out=${out}`).stdout, stdout, 'and what was kept can be shown again')
    t.end()
  })
}

const KEPT = join(ROOT, 'testing/bench/results/soak.json')

void test('a demand that is not met ends it with 1, and says what was found', (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const result = readResult(KEPT)
  const counts = { ...result.kinds.run, unexplained: 0, wrongOwner: 0 }
  const kinds = Object.fromEntries(Object.keys(result.kinds).map((kind) => [kind, counts])) as SoakResult['kinds']
  const samples = [0, 600, 3600].map((at) => ({ at, rss: 1000, heap: 500 }))
  const kept = { ...result, kinds, examples: [], samples }
  const spoilt = (name: string, changes: Partial<SoakResult>): string => {
    const out = join(folder, name)
    writeFileSync(out, JSON.stringify({ ...kept, ...changes }))
    return out
  }
  t.equal(soak(folder, '--read', `--out=${spoilt('fine', {})}`).status, 0)
  for (const [name, changes, found] of [
    ['unexplained', { kinds: { ...kinds, run: { ...counts, unexplained: 3 } } }, /unexpected answer \| \*\*no\*\* \| 3 of/],
    ['owner', { kinds: { ...kinds, run: { ...counts, wrongOwner: 1 } } }, /\*\*no\*\* \| wrong owner: 1 \|/],
    ['fault', { failedFaults: ['not within 30 s: another policy'] }, /\*\*no\*\* \| not within 30 s: another policy/],
    ['log', { log: { 'error: the gateway failed': 2 } }, /\*\*no\*\* \| error: the gateway failed \(2\)/],
    ['streams', { after: { ...kept.after, openStreams: 1 } }, /client disconnected \| \*\*no\*\* \| 1 \|/],
    [
      'files',
      { before: { ...kept.before, files: 30 }, after: { ...kept.after, files: 90 } },
      /\*\*no\*\* \| 30 before, 90 after/,
    ],
    ['rows', { claimed: kept.firstRuns + 1 }, /for each claimed thread \| \*\*no\*\*/],
    [
      'memory',
      {
        options: { ...kept.options, minutes: 60, warmUp: 10 },
        samples: Array.from({ length: 120 }, (_, at) => ({ at: 30 * at, rss: 1000 + at, heap: 500 })),
      },
      /memory is flat \| \*\*no\*\* \| \+8\.\d %/,
    ],
  ] as const) {
    const { status, stdout } = soak(folder, '--read', `--out=${spoilt(name, changes)}`)
    t.equal(status, 1, name)
    t.match(stdout, found)
  }
  t.end()
})

void test('the picture has a line for either memory, and a mark for each fault', (t) => {
  const svg = memoryPlot(readResult(KEPT))
  t.equal(svg.match(/<polyline/g)?.length, 2)
  t.equal(svg.match(/<line class="(?:upstream|reload|keys)"/g)?.length, 3 + readResult(KEPT).faults.length, 'and the legend')
  t.equal(svg, memoryPlot(JSON.parse(readFileSync(KEPT, 'utf8')) as SoakResult), 'the same for the same result')
  t.end()
})

void test('the command line', (t) => {
  t.match(readOptions([]), { minutes: 60, warmUp: 10, workers: 1, rate: 200, streams: 200, page: false })
  t.match(readOptions(['--minutes', '30', '--warm-up=0.5', '--workers=2']), { minutes: 30, warmUp: 0.5, workers: 2 })
  t.equal(readOptions(['--help']), null)
  for (const wrong of ['--minutes=0', '--minutes=x', '--warm-up=60', '--workers=0', '--rate=1.5', '--streams=-1']) {
    t.throws(() => readOptions([wrong]), new RegExp(`^${wrong.split('=', 1).join()}`), wrong)
  }
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  t.equal(soak(folder, '--minutes=no').status, 2)
  t.match(soak(folder, '--help'), { status: 0, stdout: /npm run soak/ })
  t.end()
})
