/** What was logged is on stdout when the process has ended, in whatever way it ends by itself. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'tap'

const LOG = new URL('../../src/observe/log.ts', import.meta.url).href
const COUNT = 700

/** The lines of a process that logs so many, and ends by this. */
async function linesOf(destination: string, ending: string): Promise<readonly string[]> {
  const program = `
    import { makeLog, sharedStdout } from ${JSON.stringify(LOG)}
    const log = makeLog('info', ${destination})
    for (let at = 0; at < ${COUNT}; at += 1) log.info({ at, text: 'x'.repeat(100) }, 'line')
    ${ending}`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (some: string) => (text += some))
  await once(child, 'close')
  return text.split('\n').filter((line) => line !== '')
}

const ENDINGS = {
  'it has nothing more to do': '',
  'it exits': 'process.exit(0)',
  'it exits at a signal': `process.once('SIGTERM', () => process.exit(1)); process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)`,
  'nobody catches an error': `throw new Error('nobody catches this')`,
  'nobody handles a rejection': `Promise.reject(new Error('nobody handles this')); setInterval(() => {}, 1000)`,
  'an error comes later': `setImmediate(() => { log.info({ at: ${COUNT} }, 'line'); throw new Error('later') })`,
}

for (const [what, ending] of Object.entries(ENDINGS)) {
  void test(`no line is lost where ${what}`, async (t) => {
    for (const destination of ['undefined', 'sharedStdout()']) {
      const lines = await linesOf(destination, ending)
      const count = ending.includes(`at: ${COUNT}`) ? COUNT + 1 : COUNT
      t.strictSame(
        // What was under way to the system already may come behind what is written last.
        lines.map((line) => (JSON.parse(line) as { at: number }).at).sort((a, b) => a - b),
        Array.from({ length: count }, (_, at) => at),
        destination,
      )
    }
  })
}
