/** `workers: N`: one port, one start line, one process that keeps the others; and what keeps it from starting. */
import { createServer } from 'node:net'
import { test } from 'tap'
import { configFile, run, serving } from '../../testing/support/program.ts'
import { listening } from './listening.ts'
import { childrenOf, startScene } from './scene.ts'

for (const workers of [2, 4]) {
  void test(`${workers} workers serve one port, and one line says which`, async (t) => {
    const scene = await startScene(t, { workers })
    t.match(scene.listening, { url: /^http:\/\/127\.0\.0\.1:\d+$/, workers })
    t.notMatch(scene.url, /:0$/)
    t.equal(scene.lines.filter(({ msg }) => msg === 'listening').length, 1)
    const found = await scene.workers()
    t.same(
      [...found.keys()],
      Array.from({ length: workers }, (_, at) => at + 1),
    )
    for (const worker of found.values()) t.equal((await worker.run(scene.sign('alice'), 't1')).status, 200)
    t.equal((await fetch(`${scene.health}/startupz`)).status, 200)
    t.equal((await fetch(`${scene.health}/livez`)).status, 200)
    t.same(await scene.end('SIGTERM'), { code: 0, signal: null })
  })
}

void test('without workers there is one process', async (t) => {
  const { pid, lines, listening: line, end } = await serving(t, configFile(t).file)
  t.notOk('workers' in line)
  t.same(childrenOf(pid), [])
  await end('SIGTERM')
  t.notOk(lines.some((one) => 'worker' in one))
})

void test('a worker that cannot start fails the start with its reason', async (t) => {
  const taken = createServer()
  const port = await listening(t, taken)
  const { code, stderr } = await run(t, ['serve', '--config', configFile(t, { workers: 2, 'listen.port': port }).file])
  t.equal(code, 1)
  t.match(stderr, /error: listen.port: another process listens on 127.0.0.1:\d+/)
  t.equal(stderr.match(/error:/g)?.length, 1)
})

void test('so does a listener of the first process that cannot start', async (t) => {
  const port = await listening(t, createServer())
  const { code, stderr } = await run(t, ['serve', '--config', configFile(t, { workers: 2, 'health.port': port }).file])
  t.equal(code, 1)
  t.match(stderr, /error: health.port: another process listens on 127.0.0.1:\d+/)
})

for (const [workers, fits] of [
  ['auto', true],
  [1, true],
  [0, false],
  ['many', false],
  [1.5, false],
] as const) {
  void test(`validate ${fits ? 'takes' : 'refuses'} workers: ${workers}`, async (t) => {
    const { code, stderr, stdout } = await run(t, ['validate', '--config', configFile(t, { workers }).file])
    t.equal(code, fits ? 0 : 1)
    if (!fits) t.match(stderr + stdout, /workers.*is not a number of processes/)
  })
}

void test('no worker puts a new object where only old ones belong, as the program itself does not', async (t) => {
  const taken = createServer()
  const port = await listening(t, taken)
  const traced = { node: ['--trace-gc', '--trace-pretenuring-statistics', '--max-semi-space-size=1'] }
  const { stdout } = await run(t, ['serve', '--config', configFile(t, { workers: 2, 'listen.port': port }).file], traced)
  const collecting = new Set([...stdout.matchAll(/^\[(\d+):.*Scavenge/gm)].map(([, pid]) => pid))
  t.ok(collecting.size >= 2, 'the process that manages, and a worker')
  t.notMatch(stdout, /pretenuring/)
})
