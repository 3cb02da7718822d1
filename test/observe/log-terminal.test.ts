/** Log lines hold names of users, and bidi overrides may be in those: at a terminal they are escaped, elsewhere they are as they are. */
import { execFileSync } from 'node:child_process'
import { test } from 'tap'

const LOG = new URL('../../src/observe/log.ts', import.meta.url).href
const WHO = 'corp:a\u007f\u009b31m\u202e\u2028é'

/** What a process writes that logs one line. */
function logged(isTerminal: boolean): string {
  const terminal = `import tty from 'node:tty'
    import { syncBuiltinESMExports } from 'node:module'
    tty.isatty = () => ${isTerminal}
    syncBuiltinESMExports()
    const { makeLog } = await import(${JSON.stringify(LOG)})
    makeLog('info').info({ who: ${JSON.stringify(WHO)} }, 'hello')`
  return execFileSync(process.execPath, ['--input-type=module', '-e', terminal], { encoding: 'utf8' })
}

void test('a terminal obeys nothing in a log line', (t) => {
  const line = logged(true)
  t.notMatch(line.slice(0, -1), /[\p{Cc}\p{Cf}\p{Zl}]/u)
  t.ok(line.endsWith('"hello"}\n'))
  t.match(JSON.parse(line), { who: WHO })
  t.end()
})

void test('a file or a pipe gets it as it is', (t) => {
  t.ok(logged(false).includes(WHO))
  t.end()
})
