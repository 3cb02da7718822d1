/**
 * The npm package, packed from a clean copy of the sources and installed into an empty folder: the program, its policies and
 * schemas, and what applications import.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { clearThreads, startRuntime } from '../../examples/runtime.ts'
import { BUILTIN_POLICIES } from '../../src/config/policy-file.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'
import { page, ROOT } from '../docs/markdown.ts'

const MODULES = join(ROOT, 'node_modules')
const { folder, remove } = makeFolder()
const sources = join(folder, 'sources')
const home = join(folder, 'home')
const installed = join(home, 'node_modules/threadwarden')
const program = join(home, 'node_modules/.bin/threadwarden')

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string }
const tarball = join(folder, `threadwarden-${version}.tgz`)

interface Ended {
  readonly code: number
  readonly output: string
}

/** Runs a command. `only` names the programs that it finds; by default those of this machine. */
async function command(cwd: string, words: readonly string[], path = process.env['PATH'] ?? ''): Promise<Ended> {
  const [file = '', ...args] = words
  const env = { ...process.env, PATH: [dirname(process.execPath), path].join(delimiter) }
  const options = { cwd, env, maxBuffer: 64 * 1024 * 1024 }
  try {
    const { stdout, stderr } = await promisify(execFile)(file, args, options)
    return { code: 0, output: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { readonly code: number; readonly stdout: string; readonly stderr: string }
    return { code, output: `${stdout}${stderr}` }
  }
}

async function succeeds(t: Test, cwd: string, words: readonly string[], path?: string): Promise<string> {
  const { code, output } = await command(cwd, words, path)
  t.equal(code, 0, `${words.join(' ')}\n${code === 0 ? '' : output}`)
  return output
}

/** `${env:NAME}` of the process is not needed: every value is in the file. */
async function write(file: string, text: string): Promise<void> {
  const [listen, health] = [await freePort(), await freePort()]
  writeFileSync(file, text.replace('8080', String(listen)).replace('8081', String(health)).replaceAll('0.0.0.0', '127.0.0.1'))
}

const steps: (readonly [name: string, run: (t: Test) => Promise<void>])[] = []

/** The steps follow each other: each uses what the ones before it packed and installed. */
function step(name: string, run: (t: Test) => Promise<void>): void {
  steps.push([name, run])
}

step('prepack builds it anew, and its size is as documented', async (t) => {
  for (const name of readdirSync(ROOT)) {
    if (/^(?:src|policies|config|package\.json|tsconfig.*|README\.md|LICENSE|CHANGELOG\.md)$/.test(name)) {
      cpSync(join(ROOT, name), join(sources, name), { recursive: true })
    }
  }
  mkdirSync(join(sources, 'testing'))
  cpSync(join(ROOT, 'testing/package.json'), join(sources, 'testing/package.json'))
  symlinkSync(MODULES, join(sources, 'node_modules'))
  mkdirSync(join(sources, 'dist'))
  writeFileSync(join(sources, 'dist/stale.js'), 'throw new Error("of an earlier build")\n')
  await succeeds(t, sources, ['npm', 'pack', '--silent', '--pack-destination', folder])
  t.ok(existsSync(tarball))
  const [, kilobytes = ''] = /The package has about (\d+) kB/.exec(page('docs/how-to/deploy/npm.md').text) ?? []
  const actual = statSync(tarball).size / 1000
  t.ok(Math.abs(actual - Number(kilobytes)) < Number(kilobytes) / 4, `${actual} kB, documented as ${kilobytes} kB`)
})

step('it installs without a compiler, without Python and without scripts', async (t) => {
  mkdirSync(join(home, 'bin'), { recursive: true })
  writeFileSync(join(home, 'package.json'), '{ "type": "module" }\n')
  const { output } = await command(home, ['sh', '-c', 'command -v npm && command -v sh && command -v env'])
  for (const file of output.trim().split('\n')) symlinkSync(file, join(home, 'bin', file.split('/').at(-1) ?? ''))
  await succeeds(t, home, ['npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', tarball], join(home, 'bin'))
  t.notOk(existsSync(join(installed, 'dist/stale.js')))
  const tree = JSON.parse(readFileSync(join(home, 'node_modules/.package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean; readonly dev?: boolean }>>
  }
  const packages = Object.entries(tree.packages)
  // So --ignore-scripts installs the same.
  t.same(
    packages.filter(([, one]) => one.hasInstallScript === true).map(([name]) => name),
    [],
  )
  for (const name of ['node', 'typescript', 'tap', 'threadwarden-testing']) t.notOk(`node_modules/${name}` in tree.packages, name)
  t.match(await succeeds(t, home, [program, '--version']), new RegExp(`^${version.replaceAll('.', '\\.')}\n$`))
})

step('every policy that is part of the program is valid', async (t) => {
  const validate = async (policy: string): Promise<void> => {
    const file = join(home, `${policy}.yaml`)
    await write(file, `${readFileSync(join(installed, 'config/threadwarden.yaml'), 'utf8')}policy: builtin:${policy}\n`)
    await succeeds(t, home, [program, 'validate', '--strict', '--config', file])
  }
  await Promise.all(BUILTIN_POLICIES.map(validate))
})

step('init, validate, doctor, serve and health, with a real runtime and issuer', async (t) => {
  clearThreads()
  const [issuer, runtime] = [await startIssuer(), await startRuntime()]
  t.teardown(() => Promise.all([issuer.close(), runtime.close()]))
  const file = join(home, 'threadwarden.yaml')
  await succeeds(t, home, [program, 'init', '--upstream', runtime.url, '--issuer', issuer.issuer, '--issuer-id', 'demo'])
  await write(file, readFileSync(file, 'utf8'))
  await succeeds(t, home, [program, 'validate', '--strict'])
  const gateway = spawn(program, ['serve'], {
    cwd: home,
    env: { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}` },
  })
  const closed = once(gateway, 'close')
  t.teardown(async () => {
    gateway.kill('SIGKILL')
    await closed
  })
  gateway.stderr.resume()
  const url = await new Promise<string>((resolve) => {
    createInterface({ input: gateway.stdout }).on('line', (line) => {
      const { msg, url: address } = JSON.parse(line) as Readonly<Record<string, string>>
      if (msg === 'listening') resolve(address ?? '')
    })
  })
  await until(async () => (await command(home, [program, 'health'])).code === 0)
  const base = `${url}/api/copilotkit`
  const [alice, bob] = [await issuer.signIn('alice'), await issuer.signIn('bob')]
  t.equal((await call(`${base}/info`)).status, 401)
  t.equal((await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 200)
  t.equal((await call(`${base}/threads/t1/messages`, { token: alice })).status, 200)
  t.equal((await call(`${base}/threads/t1/messages`, { token: bob })).status, 403)
  writeFileSync(join(home, 'token'), alice, { mode: 0o600 })
  await succeeds(t, home, [program, 'doctor', '--token-file', 'token'])
  gateway.kill('SIGTERM')
  t.same(await closed, [0, null])
  t.match(await succeeds(t, home, [program, 'threads', 'owner', 't1']), 'demo:alice')
})

step('threadwarden/hooks and threadwarden/agent at run time, and the schemas by their names', async (t) => {
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  const example = (name: string): string => JSON.stringify(join(ROOT, 'examples', name))
  symlinkSync(join(ROOT, 'examples/node_modules/@copilotkit'), join(home, 'node_modules/@copilotkit'))
  const server = readFileSync(join(ROOT, 'examples/deployments/in-process/server.ts'), 'utf8')
    .replace("'../../../src/sdk/hooks/index.ts'", "'threadwarden/hooks'")
    .replaceAll(/'\.\.\/\.\.\/([\w-]+\.ts)'/g, (_whole, name: string) => example(name))
  writeFileSync(join(home, 'server.ts'), server)
  writeFileSync(
    join(home, 'main.ts'),
    `import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { makeVerifier, NotAuthenticated } from 'threadwarden/agent'
import { startServer } from './server.ts'
const [issuer, token] = process.argv.slice(2)
const verify = makeVerifier({ issuer, audience: 'agent-chat', algorithms: ['RS256'], issuerKey: 'corp', discovery: true })
const user = await verify({ authorization: 'Bearer ' + token })
const refused = await verify({}).catch((error) => error instanceof NotAuthenticated)
const server = await startServer(0)
const statuses = []
for (const headers of [{}, { authorization: 'Bearer ' + token }]) statuses.push((await fetch(server.base + '/info', { headers })).status)
await server.close()
const schemas = ['config/threadwarden.schema.json', 'policies/policy.schema.json', 'policies/test.schema.json', 'policies/default.yaml']
const missing = schemas.filter((name) => !existsSync(fileURLToPath(import.meta.resolve('threadwarden/' + name))))
process.stdout.write('RESULT ' + JSON.stringify({ user: user.user_id, refused, statuses, missing }) + '\\n')
`,
  )
  const inProcess = readFileSync(join(ROOT, 'examples/deployments/in-process/threadwarden.yaml'), 'utf8')
  await write(join(home, 'threadwarden.yaml'), inProcess.replace('${env:ISSUER_URL}', issuer.issuer))
  const output = await succeeds(t, home, ['node', 'main.ts', issuer.issuer, await issuer.signIn('alice')])
  const result = /^RESULT (.*)$/m.exec(output)?.[1] ?? '{}'
  t.match(JSON.parse(result), { user: 'corp:alice', refused: true, statuses: [401, 200], missing: [] }, output)
})

step('its types, as each kind of project resolves them', async (t) => {
  writeFileSync(
    join(home, 'types.ts'),
    `import { ConfigurationInvalid, makeHooks, type Hooks, type HooksOptions } from 'threadwarden/hooks'
import { expectThread, makeAssertionVerifier, makeVerifier, type AgentUser, type Verify } from 'threadwarden/agent'
export const options: HooksOptions<object> = { config: 'x', runtime: {}, createHandler: () => async () => new Response() }
export const hooks: Promise<Hooks> = makeHooks(options)
export const verify: Verify = makeVerifier({ issuer: 'i', audience: 'a', algorithms: ['RS256'], issuerKey: 'corp', discovery: true })
export const user: Promise<AgentUser> = verify({})
export const parts = [ConfigurationInvalid, expectThread, makeAssertionVerifier]
// @ts-expect-error the types are not any
export const wrong: number = makeVerifier
`,
  )
  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['node16', 'node16'],
    ['esnext', 'bundler'],
  ] as const) {
    // The declarations themselves are the same for all: one check of them is enough.
    const compilerOptions = {
      skipLibCheck: module !== 'nodenext',
      ...{ module, moduleResolution, target: 'es2022', lib: ['es2022'], strict: true, noEmit: true },
      ...{ types: ['node'], typeRoots: [join(MODULES, '@types')] },
    }
    writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.ts'] }))
    await succeeds(t, home, [join(MODULES, '.bin/tsc'), '-p', '.'])
  }
})

step('npm publish is refused outside of the pipeline that proves where the package comes from', async (t) => {
  const asked: string[] = []
  const registry = createServer((request, response) => {
    asked.push(request.method ?? '')
    response.writeHead(404, { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void registry.close())
  const address = `127.0.0.1:${(registry.address() as AddressInfo).port}/`
  writeFileSync(join(home, 'npmrc'), `//${address}:_authToken=none\n`)
  const { code, output } = await command(home, [
    ...['env', '-u', 'CI', '-u', 'GITHUB_ACTIONS', '-u', 'GITLAB_CI'],
    ...['npm', 'publish', tarball, '--userconfig', 'npmrc', '--registry', `http://${address}`],
  ])
  t.not(code, 0)
  t.match(output, /provenance generation not supported/i)
  t.notOk(asked.includes('PUT'))
})

void test('the package', async (t) => {
  t.teardown(remove)
  for (const [name, run] of steps) await t.test(name, run)
})
