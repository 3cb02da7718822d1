/** The password of the server stands in nothing that the program writes, whatever becomes of it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { configFile, run, serving } from '../../testing/support/program.ts'
import { startPostgresServer } from '../../testing/support/postgres.ts'

const SECRET = 'correct-horse-battery'
const WRONG = 'staple-of-another'

const server = await startPostgresServer(t, { password: SECRET })

/** A configuration whose password is in a file. */
function configured(test: Test, password: string): string {
  const store = Object.assign(new URL(server.url), { password: '' }).href
  const { file, folder } = configFile(test, { 'ownership.store': store, 'ownership.postgres.password': '${file:password}' })
  writeFileSync(join(folder, 'password'), `${password}\n`)
  return file
}

for (const [name, password] of [
  ['the right one', SECRET],
  ['a wrong one', WRONG],
] as const) {
  for (const args of [['serve'], ['doctor', '--json'], ['revoke', '--list'], ['validate', '--json']]) {
    if (args[0] === 'serve' && password === SECRET) continue
    void t.test(`${args.join(' ')} with ${name} does not print it`, async (test) => {
      const { stdout, stderr, code } = await run(test, [...args, '--config', configured(test, password)])
      test.not(stdout + stderr, '')
      test.notMatch(stdout + stderr, new RegExp(`${SECRET}|${WRONG}`))
      if (args[0] === 'serve') test.equal(code, 1)
    })
  }
}

void t.test('a password in the URL of the store is not printed by a fault of that URL', async (test) => {
  const { file } = configFile(test, { 'ownership.store': `${server.url}?sslmode=off` })
  const { stdout, stderr, code } = await run(test, ['serve', '--config', file])
  test.equal(code, 78)
  test.match(stdout + stderr, /takes no parameters/)
  test.notMatch(stdout + stderr, SECRET)
})

void t.test('a gateway does not log it, nor when it loses its server', async (test) => {
  const { lines, line, end } = await serving(test, configured(test, SECRET))
  await server.stop()
  await line(({ level }) => level === 'error' || level === 'warn')
  await server.restart()
  await end('SIGTERM')
  test.notMatch(JSON.stringify(lines), SECRET)
})
