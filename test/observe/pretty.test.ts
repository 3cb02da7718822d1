/** `serve --pretty`: lines for people. A terminal obeys nothing in them, whatever a caller has put there. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { prettyLine } from '../../src/observe/pretty.ts'
import { configFile } from '../../testing/support/program.ts'
import { until } from '../../testing/support/until.ts'

const PROGRAM = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

const line = (fields: object): string => JSON.stringify({ level: 'info', time: '2026-01-31T12:00:00.123Z', ...fields })

void test('a request is readable', (t) => {
  const fields = {
    requestId: 'r-1',
    method: 'POST',
    route: 'agent/run',
    thread: 'my thread',
    status: 403,
    reason: 'thread-foreign',
    ms: 2,
    msg: 'request',
  }
  t.equal(
    prettyLine(line(fields), 'plain'),
    '12:00:00.123 info  POST agent/run 403 thread-foreign requestId=r-1 thread="my thread" ms=2\n',
  )
  t.match(prettyLine(line(fields), 'colours'), '\u001b[32minfo \u001b[39m')
  t.end()
})

void test('other messages have their fields, and errors their stack', (t) => {
  t.equal(
    prettyLine(line({ level: 'warn', status: 3, detail: ['a', { b: 1 }], msg: 'something' }), 'plain'),
    '12:00:00.123 warn  something status=3 detail=["a",{"b":1}]\n',
  )
  t.equal(
    prettyLine(line({ level: 'error', err: { type: 'Error', stack: 'Error: no\n    at here' }, msg: 'failed' }), 'plain'),
    '12:00:00.123 error failed\n    Error: no\n    at here\n',
  )
  t.end()
})

void test('nothing in a line is obeyed, or looks like another line', (t) => {
  const evil = 'a\n12:00:00.123 error forged\u001b[2J\u009b31m\u202e\u2028'
  for (const colours of ['colours', 'plain'] as const) {
    const written = prettyLine(
      line({
        [evil]: evil,
        level: evil,
        time: evil,
        method: evil,
        route: evil,
        reason: evil,
        err: { stack: evil },
        msg: 'request',
      }),
      colours,
    )
    const bare = written.replaceAll(/\u001b\[\d+m/g, '')
    t.notMatch(bare.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    const [first, ...others] = bare.trimEnd().split('\n')
    t.ok(first)
    for (const other of others) t.ok(other.startsWith('    '), other)
  }
  t.end()
})

for (const workers of [1, 2]) {
  void test(`serve --pretty with ${workers} workers`, async (t) => {
    const { file, folder } = configFile(t, { workers })
    const child = spawn(process.execPath, [PROGRAM, 'serve', '--pretty', '--config', file], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const closed = once(child, 'close')
    t.teardown(async () => {
      child.kill('SIGKILL')
      await closed
    })
    let written = ''
    child.stdout.setEncoding('utf8').on('data', (piece: string) => void (written += piece))
    await until(() => / listening url=http:\/\/127\.0\.0\.1:\d+/.test(written))
    const [, port = ''] = /listening url=http:\/\/127\.0\.0\.1:(\d+)/.exec(written) ?? []
    const socket = connect(Number(port), '127.0.0.1')
    socket.end('GET /api/copilotkit/\u009b31m HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    socket.resume()
    await until(() => / info {2}none 40\d http-/.test(written))
    t.notMatch(written, '{"level"')
    t.notMatch(written, '\u001b', 'no colours where there is no terminal')
    child.kill('SIGTERM')
    t.same(await closed, [0, null])
    t.match(written, / stopped\n/)
  })
}
