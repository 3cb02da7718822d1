/** `threadwarden validate`: every fault on stderr with its place, or all of it as JSON on stdout; 0 valid, 1 invalid. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { run } from './in-process.ts'
import { configFile, run as runProcess } from '../../testing/support/program.ts'

const INVALID = { 'listen.prot': 1, 'log.level': 'loud', 'ownership.unknownThread': undefined }
const WARNED = { 'upstream.headers': { 'x-api-key': 'hunter2' } }

void test('a valid configuration is said to be', async (t) => {
  const { file } = configFile(t)
  t.same(await run(t, ['validate', '--config', file]), { code: 0, stdout: `${file} is valid\n`, stderr: '' })
  t.same(await run(t, ['validate', `--config=${file}`, '--strict']), { code: 0, stdout: `${file} is valid\n`, stderr: '' })
})

void test('every fault of an invalid one is on stderr, a line each', async (t) => {
  const { file } = configFile(t, INVALID)
  const { code, stdout, stderr } = await run(t, ['validate', '--config', file])
  t.same({ code, stdout }, { code: 1, stdout: '' })
  const lines = stderr.trimEnd().split('\n')
  t.equal(lines.length, 3)
  t.ok(lines.every((line) => line.startsWith(`error: ${file}:`)))
  t.match(stderr, /:\d+: listen\.prot: is not a known key \(did you mean "port"\?\)\n/)
  t.match(stderr, /:\d+: ownership\.unknownThread: /)
  t.match(stderr, /:\d+: log\.level: /)
})

void test('--json prints them as data on stdout, and nothing else', async (t) => {
  const { file } = configFile(t, INVALID)
  const { code, stdout, stderr } = await run(t, ['validate', '--config', file, '--json'])
  t.same({ code, stderr }, { code: 1, stderr: '' })
  const read = JSON.parse(stdout) as { faults: object[] }
  t.match(read, {
    valid: false,
    warnings: [],
    faults: Array(3).fill({ file, line: Number, path: String, message: String }) as object[],
  })
  t.same(Object.keys(read), ['valid', 'faults', 'warnings'])
  t.equal(read.faults.length, 3)
})

void test('--json of a valid one has nothing in its lists', async (t) => {
  const { file } = configFile(t)
  const { code, stdout } = await run(t, ['validate', '--config', file, '--json'])
  t.equal(code, 0)
  t.same(JSON.parse(stdout), { valid: true, faults: [], warnings: [] })
})

void test('warnings alone are valid; with --strict they are not', async (t) => {
  const { file } = configFile(t, WARNED)
  const warning = /^warning: .*:\d+: upstream\.headers\.x-api-key: looks like a secret in plain \(.*\)\n$/
  const lenient = await run(t, ['validate', '--config', file])
  t.match(lenient, { code: 0, stdout: `${file} is valid\n`, stderr: warning })
  t.match(await run(t, ['validate', '--config', file, '--strict']), { code: 1, stdout: '', stderr: warning })
  const data = await run(t, ['validate', '--config', file, '--strict', '--json'])
  t.match(JSON.parse(data.stdout), { valid: false, faults: [], warnings: [{ path: 'upstream.headers.x-api-key' }] })
  t.notMatch(lenient.stderr + data.stdout, /hunter2/, 'and the secret is not repeated')
})

void test('a file that is not there is a failure, not wrong usage', async (t) => {
  const { folder } = configFile(t)
  const file = join(folder, 'nope.yaml')
  const stderr = `error: ${file}: cannot be read (ENOENT) (check the path and its permissions)\n`
  t.same(await run(t, ['validate', '--config', file]), { code: 1, stdout: '', stderr })
})

void test('references are filled in from the environment', async (t) => {
  const { file } = configFile(t, { 'listen.port': '${env:PORT}' })
  t.match(await run(t, ['validate', '--config', file]), { code: 1, stderr: /the environment has no PORT/ })
  t.match(await run(t, ['validate', '--config', file], { environment: { PORT: '8080' } }), { code: 0 })
})

void test('a store that serve could not open is a fault, and nothing is made of one', async (t) => {
  const { file, folder } = configFile(t, { 'ownership.store': 'sqlite:./data/ownership.db' })
  const data = join(folder, 'data')
  const before = readdirSync(folder)
  t.match(await run(t, ['validate', '--config', file]), { code: 0 }, 'one that is not there yet can be made')
  t.same(readdirSync(folder), before, 'and is not')
  writeFileSync(data, '')
  t.match(await run(t, ['validate', '--config', file]), {
    code: 1,
    stderr: /ownership\.store: .*data is no folder that can be written to/,
  })
})

void test('a store of a newer program, or one that is none, is a fault for validate as for serve', async (t) => {
  for (const [name, make, message] of [
    ['newer.db', newer, /ownership\.store: .*its schema is 99/],
    ['text.db', (path: string) => writeFileSync(path, 'x'.repeat(4096)), /ownership\.store: .*not a database/],
    ['folder.db', (path: string) => mkdirSync(path), /ownership\.store: .*cannot be opened for writing/],
  ] as const) {
    const { file, folder } = configFile(t, { 'ownership.store': `sqlite:./${name}` })
    await make(join(folder, name))
    t.match(await run(t, ['validate', '--config', file]), { code: 1, stdout: '', stderr: message }, name)
    t.match(await runProcess(t, ['serve', '--config', file]), { code: 1 }, `${name} is not served`)
  }
})

async function newer(path: string): Promise<void> {
  await (await openSqliteStore(path)).close()
  const database = new Database(path)
  database.pragma('user_version = 99')
  database.close()
}

void test('two listeners on one port are a fault for validate as for serve', async (t) => {
  const { file } = configFile(t, { 'listen.port': 18_080, 'health.port': 18_080 })
  const message = /health\.port: is that of listen, too/
  t.match(await run(t, ['validate', '--config', file]), { code: 1, stderr: message })
  t.match(await runProcess(t, ['serve', '--config', file]), { code: 1, stderr: message })
})
