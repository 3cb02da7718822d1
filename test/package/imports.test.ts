/** What applications import from the npm package, installed without install scripts. */
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { ROOT } from '../docs/markdown.ts'
import { command, makeInstallation, MODULES, succeeds, writeConfiguration } from './installation.ts'

void test('the package', async (t) => {
  const { tarball, home, pack, install } = makeInstallation(t)
  // prepack has a test of its own: this is what npm run build made.
  await pack(t, ROOT, '--ignore-scripts')
  await install(t, '--ignore-scripts')

  await t.test('threadwarden/hooks and threadwarden/agent at run time, and the schemas by their names', async (t) => {
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
    await writeConfiguration(join(home, 'threadwarden.yaml'), inProcess.replace('${env:ISSUER_URL}', issuer.issuer))
    const output = await succeeds(t, home, ['node', 'main.ts', issuer.issuer, await issuer.signIn('alice')])
    const result = /^RESULT (.*)$/m.exec(output)?.[1] ?? '{}'
    t.match(JSON.parse(result), { user: 'corp:alice', refused: true, statuses: [401, 200], missing: [] }, output)
  })

  await t.test('its types, as each kind of project resolves them', async (t) => {
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

  await t.test('npm publish is refused outside of the pipeline that proves where the package comes from', async (t) => {
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
      ...['npm', 'publish', tarball, '--userconfig', 'npmrc', '--registry', `http://${address}`, '--loglevel', 'error'],
    ])
    t.not(code, 0)
    t.match(output, /provenance generation not supported/i)
    t.notOk(asked.includes('PUT'))
  })
})
