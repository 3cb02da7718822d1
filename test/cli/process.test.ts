/** The program as a process: each exit code, each stream and the environment, once. serve.test.ts has the signals. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { auditLine } from '../../src/audit/line.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { audited, READING } from '../../testing/support/audited.ts'
import { own } from './deployment.ts'
import { configFile, run } from '../../testing/support/program.ts'

const PROGRAM = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

void test('exit code 0: the result is on stdout', async (t) => {
  const { file } = configFile(t)
  t.same(await run(t, ['validate', '--config', file]), { code: 0, stdout: `${file} is valid\n`, stderr: '' })
})

void test('exit code 1: the faults are on stderr', async (t) => {
  const { file } = configFile(t, { 'listen.port': '${env:PORT}' })
  t.match(await run(t, ['validate', '--config', file]), { code: 1, stdout: '', stderr: /the environment has no PORT/ })
  t.match(await run(t, ['validate', '--config', file], { environment: { PORT: '8080' } }), { code: 0 })
})

void test('V8 puts no new object where only old ones belong, whatever its first collections find in use', async (t) => {
  const { file } = configFile(t)
  const traced = { node: ['--trace-gc', '--trace-pretenuring-statistics', '--max-semi-space-size=1'] }
  const { stdout } = await run(t, ['validate', '--config', file], traced)
  t.match(stdout, /Scavenge/)
  t.notMatch(stdout, /pretenuring/)
})

void test('exit code 2: wrong usage is on stderr', async (t) => {
  t.match(await run(t, ['validate']), {
    code: 2,
    stdout: '',
    stderr: /^threadwarden validate: --config FILE is missing: THREADWARDEN_CONFIG is not set/,
  })
})

void test('a reader that has had enough ends a command, without a stack trace', async (t) => {
  const { file, folder } = configFile(t)
  const offline = ['--offline', '--upstream', 'http://127.0.0.1:1', '--issuer', 'https://login.example.com/']
  const commands = [
    ['--help'],
    ['validate', '--config', file],
    ['validate', '--json', '--config', file],
    ['init', ...offline, '--out', join(folder, 'new.yaml')],
    ['init', ...offline, '--out', '-'],
  ]
  const ended = await Promise.all(commands.map(intoClosedPipe))
  t.same(
    ended.map(({ code }) => code),
    commands.map(() => 1),
  )
  for (const { stderr } of ended) t.notMatch(stderr, 'EPIPE')
})

async function intoClosedPipe(args: readonly string[]): Promise<{ readonly code: number | null; readonly stderr: string }> {
  const line = ['-c', '"$@" | true; exit "${PIPESTATUS[0]}"', 'bash', process.execPath, PROGRAM, ...args]
  const child = spawn('bash', line, { env: { PATH: process.env['PATH'] }, stdio: ['ignore', 'ignore', 'pipe'] })
  const closed = once(child, 'close') as Promise<[number | null]>
  const stderr = await text(child.stderr)
  return { code: (await closed)[0], stderr }
}

void test('a line of the audit log is read from stdin', async (t) => {
  const { file } = configFile(t)
  const stdin = JSON.stringify(auditLine(audited(READING)))
  t.match(await run(t, ['explain', '--audit', '-', '--config', file], { stdin }), { code: 0, stdout: /^same +yes$/m, stderr: '' })
})

void test('stdout has colours at a terminal, unless the environment has NO_COLOR', async (t) => {
  const { file, folder } = configFile(t)
  const store = await openSqliteStore(join(folder, 'ownership.db'))
  t.teardown(() => store.close())
  await own(store, 'corp:alice', 't-1')
  const node = ['--import', 'data:text/javascript,process.stdout.isTTY=process.stderr.isTTY=true']
  const asked = ['threads', 'owner', 't-1', '--config', file]
  const environment = { TERM: 'xterm' }
  t.match((await run(t, asked, { node, environment })).stdout, '\u001b[1m')
  t.notMatch((await run(t, asked, { node, environment: { ...environment, NO_COLOR: '1' } })).stdout, '\u001b')
  t.notMatch((await run(t, asked, { environment })).stdout, '\u001b', 'nor in a pipe')
  t.match((await run(t, asked, { environment: { FORCE_COLOR: '1' } })).stdout, '\u001b[1m', 'unless that is wanted')
})
