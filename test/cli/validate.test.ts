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
  const warning = /^warning: .*:\d+: upstream\.headers\.x-api-key: looks like a secret in plain text \(.*\)\n$/
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
  const stderr = `error: ${file}: does not exist (check the path)\n`
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
    stderr: /ownership\.store: .*data is not a writable folder/,
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
  t.match(await runProcess(t, ['serve', '--config', file]), { code: 78, stderr: message })
})

void test('the configuration is that of -c, of the environment, or threadwarden.yaml in the working directory', async (t) => {
  const { file, folder } = configFile(t)
  t.match(await run(t, ['validate', '-c', file]), { code: 0 })
  t.match(await run(t, ['validate'], { environment: { THREADWARDEN_CONFIG: file } }), { code: 0, stdout: `${file} is valid\n` })
  const named = await run(t, ['validate', '--config', '/nowhere.yaml'], { environment: { THREADWARDEN_CONFIG: file } })
  t.match(named, { code: 1, stderr: /nowhere\.yaml: does not exist/ }, 'the option wins')
  t.match(await runProcess(t, ['validate'], { folder }), { code: 0, stdout: 'threadwarden.yaml is valid\n' })
  const none = await run(t, ['validate'], { environment: { THREADWARDEN_CONFIG: '' } })
  t.match(none, {
    code: 2,
    stderr: /--config FILE is missing: THREADWARDEN_CONFIG is not set, and there is no threadwarden\.yaml/,
  })
})

void test('errors come in the order of their lines, with the line of a key whose value is a mapping', async (t) => {
  const { folder } = configFile(t)
  const file = join(folder, 'broken.yaml')
  writeFileSync(
    file,
    `upstream: { url: "not a url", basePath: /chat }
corss:
  origins: [a]
authentication:
  issuers:
    corp:
      issuer: \${env:NOWHERE}
      audiences: [chat]
      algorithms: [RS255]
ownership: { unknownThread: claim }
`,
  )
  const { code, stderr } = await run(t, ['validate', '--config', file])
  t.equal(code, 1)
  t.same(
    stderr
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(`error: ${file}:`, '')),
    [
      '1: version: is required (write version: 1)',
      '1: upstream.url: is not a URL (write http://127.0.0.1:4000)',
      '2: corss: is not a known key (did you mean "cors"?)',
      '7: authentication.issuers.corp.issuer: the environment has no NOWHERE (set it, or remove the reference)',
      '9: authentication.issuers.corp.algorithms.0: is not one of the values (did you mean "RS256"?)',
    ],
  )
})
