import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { test } from 'tap'

const OPTIONS = new URL('../../src/gateway/v8-options.ts', import.meta.url).href
/** Makes full collections while its heap grows, and then one in each of its turns, in which it has nothing to do. */
const PROGRAM = `
  import { setV8Options } from '${OPTIONS}'
  setV8Options()
  const kept = []
  for (let round = 0; round < 3; round += 1) {
    for (let at = 0; at < 300_000; at += 1) kept.push({ at })
    globalThis.gc()
  }
  setInterval(() => {
    console.log('turn', kept.length)
    globalThis.gc()
  }, 50)
`
const TRACED = ['--trace-gc', '--trace-gc-verbose', '--trace-memory-reducer', '--gc-memory-reducer-start-delay-ms=1']

void test('V8 lets the heap grow twofold between full collections, and makes none because a process is idle', async (t) => {
  // V8 buffers its output if stdout is a pipe, and a signal that kills loses it.
  const lineByLine = ['-oL', process.execPath, '--expose-gc', ...TRACED, '--input-type=module', '--eval', PROGRAM]
  // A V8 that says nothing of its memory reducer ends in a failed assertion.
  const child = spawn('stdbuf', lineByLine, { stdio: ['ignore', 'pipe', 'inherit'], timeout: 60_000, killSignal: 'SIGKILL' })
  t.teardown(() => child.kill('SIGKILL'))
  const reducing: string[] = []
  const factors = new Set<string | undefined>()
  let turns = 0
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('Memory reducer:')) reducing.push(line.replace(/.*Memory reducer: /, ''))
    if (line.includes('[HeapController] factor')) factors.add(/factor (\S+)/.exec(line)?.[1])
    if (line.startsWith('turn') && reducing.length > 0) turns += 1
    // In the first of them, the memory reducer has been at work. The factor of the collection after it is in the output of the second.
    if (turns === 2) break
  }
  t.not(reducing.length, 0, 'the memory reducer has been at work')
  t.notMatch(reducing.join('\n'), /waiting|started/, 'it neither makes a collection nor waits for the time to do so')
  t.strictSame([...factors], ['2.0'])
})
