/** The subpath as others install it: built, and used from plain JavaScript and from TypeScript with nothing of the gateway. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { blocks, page, ROOT } from '../docs/markdown.ts'

const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')

/** Runs a program of Node's; gives its status and what it said. */
function run(folder: string, ...words: readonly string[]): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: folder, encoding: 'utf8' })
  return { status, said: `${stdout}${stderr}` }
}

/** A project with Threadwarden among its packages, of which only this part is there. */
function makeProject(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'threadwarden-agent-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const installed = join(folder, 'node_modules/threadwarden')
  mkdirSync(installed, { recursive: true })
  for (const name of ['fast-jwt', '@types']) symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  symlinkSync(join(ROOT, 'examples/langgraph/node_modules/@langchain'), join(folder, 'node_modules/@langchain'))
  writeFileSync(join(installed, 'package.json'), readFileSync(join(ROOT, 'package.json')))
  const settings = {
    extends: join(ROOT, 'tsconfig.build.json'),
    compilerOptions: {
      rootDir: join(ROOT, 'src'),
      outDir: join(installed, 'dist'),
      typeRoots: [join(ROOT, 'node_modules/@types')],
    },
    include: [join(ROOT, 'src/sdk/agent')],
  }
  writeFileSync(join(folder, 'build.json'), JSON.stringify(settings))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const built = run(folder, TSC, '-p', 'build.json')
  t.equal(built.status, 0, built.said)
  return folder
}

const PLAIN = `
import { makeVerifier, requirePermission } from 'threadwarden/agent'
const verify = makeVerifier({ issuer: 'https://login.example.com/', audience: 'chat', algorithms: ['RS256'], discovery: true })
const error = await verify({}).catch((caught) => caught)
console.log(error.name, error.code)
try {
  requirePermission({ user_id: 'bob', permissions: [] }, 'admin')
} catch (denied) {
  console.log(denied.message)
}
await import('threadwarden/dist/sdk/agent/token.js').catch(({ code }) => console.log(code))
`

const TYPED = `
import type { IncomingMessage } from 'node:http'
import { expectThread, makeAssertionVerifier, makeVerifier, type AgentUser } from 'threadwarden/agent'
const common = { issuer: 'https://login.example.com/', audience: ['chat'], jwksUri: 'https://login.example.com/jwks' }
const verify = makeVerifier({ ...common, algorithms: ['RS256'], claims: { role: '/roles' }, fetch })
const verifyAssertion = makeAssertionVerifier(common)
export async function userOf(message: IncomingMessage, request: Request): Promise<AgentUser> {
  await verify(message.headers)
  await verify(request.headers)
  const user = await verifyAssertion(message.headersDistinct)
  expectThread(user, 't1')
  const role: string | undefined = user.role
  return { ...user, name: role ?? 'nobody' }
}
// @ts-expect-error a shared secret is no public key
makeVerifier({ ...common, algorithms: ['HS256'] })
// @ts-expect-error algorithms are never guessed
makeVerifier(common)
`

/** Starts the server of the first example and asks it without a credential. */
const ASKING = `
import { server } from './example-1.ts'
server.listen(0, '127.0.0.1', async () => {
  const answer = await fetch('http://127.0.0.1:' + server.address().port)
  console.log(answer.status)
  server.close()
})
`

/** Gates the tool of the example for somebody who may, and for somebody who may not. */
const GATING = `
import { deleteReports } from './example-3.ts'
const done = []
const confirm = async () => done.push('confirmed') > 0
const execute = async () => done.push('executed') + ' steps'
await deleteReports({ user_id: 'bob', roles: [], permissions: [] }, confirm, execute).catch(({ message }) => done.push(message))
done.push(await deleteReports({ user_id: 'olga', roles: [], permissions: ['reports:delete'] }, confirm, execute))
console.log(done.join(', '))
`

void test('it can be used from plain JavaScript and from TypeScript, and as docs/how-to/connect/agents.md says', (t) => {
  const folder = makeProject(t)
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)
  write('plain.js', PLAIN)
  t.same(run(folder, 'plain.js').said.trim().split('\n'), [
    'NotAuthenticated credential-missing',
    'bob lacks admin',
    'ERR_PACKAGE_PATH_NOT_EXPORTED',
  ])
  write('typed.ts', TYPED)
  const examples = blocks(page('docs/how-to/connect/agents.md'), 'ts').map((text, at) => ({ name: `example-${at + 1}.ts`, text }))
  t.equal(examples.length, 3)
  for (const { name, text } of examples) write(name, text)
  // As its reader would copy it.
  write('handler.ts', page('examples/langgraph/auth.ts').text.replace('../../src/sdk/agent/index.ts', 'threadwarden/agent'))
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--types', 'node', '--noEmit', '--target', 'es2022']
  for (const words of [
    ['--module', 'nodenext', 'typed.ts', ...examples.map(({ name }) => name)],
    // The types of LangGraph have mistakes of their own.
    ['--module', 'esnext', '--moduleResolution', 'bundler', '--skipLibCheck', 'typed.ts', 'handler.ts'],
  ]) {
    const { status, said } = run(folder, TSC, ...strict, ...words)
    t.equal(status, 0, said)
  }
  write('asking.ts', ASKING)
  t.equal(run(folder, 'asking.ts').said.trim(), '401')
  write('gating.ts', GATING)
  t.equal(run(folder, 'gating.ts').said.trim(), 'bob lacks reports:delete, confirmed, executed, 3 steps')
  t.end()
})
