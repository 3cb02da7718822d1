/** The npm package, packed from a clean copy of the sources and installed into an empty folder: its program and its policies. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { clearThreads, startRuntime } from '../../examples/runtime.ts'
import { BUILTIN_POLICIES } from '../../src/config/policy-file.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { until } from '../../testing/support/until.ts'
import { page } from '../docs/markdown.ts'
import { command, copySources, makeInstallation, writeConfiguration } from './installation.ts'

void test('the program', async (t) => {
  const { folder, tarball, home, installed, program, version, pack, install, threadwarden } = makeInstallation(t)

  await t.test('prepack builds it again, and its size is as documented', async (t) => {
    const sources = copySources(join(folder, 'sources'))
    mkdirSync(join(sources, 'dist'))
    writeFileSync(join(sources, 'dist/stale.js'), 'throw new Error("of an earlier build")\n')
    await pack(t, sources)
    const [, kilobytes = ''] = /The package has about (\d+) kB/.exec(page('docs/how-to/deploy/npm.md').text) ?? []
    const actual = statSync(tarball).size / 1000
    t.ok(Math.abs(actual - Number(kilobytes)) < Number(kilobytes) / 4, `${actual} kB, documented as ${kilobytes} kB`)
  })

  await t.test('it installs without a compiler, without Python and without scripts', async (t) => {
    await install(t)
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
    for (const name of ['node', 'typescript', 'tap', 'threadwarden-testing'])
      t.notOk(`node_modules/${name}` in tree.packages, name)
    t.match(await threadwarden(t, '--version'), new RegExp(`^${version.replaceAll('.', '\\.')}\n$`))
  })

  await t.test('every policy that is part of the program is valid', async (t) => {
    const validate = async (policy: string): Promise<void> => {
      const file = join(home, `${policy}.yaml`)
      await writeConfiguration(
        file,
        `${readFileSync(join(installed, 'config/threadwarden.yaml'), 'utf8')}policy: builtin:${policy}\n`,
      )
      await threadwarden(t, 'validate', '--strict', '--config', file)
    }
    await Promise.all(BUILTIN_POLICIES.map(validate))
  })

  await t.test('init, validate, doctor, serve and health, with a real runtime and issuer', async (t) => {
    clearThreads()
    const [issuer, runtime] = [await startIssuer(), await startRuntime()]
    t.teardown(() => Promise.all([issuer.close(), runtime.close()]))
    const file = join(home, 'threadwarden.yaml')
    await threadwarden(t, 'init', '--upstream', runtime.url, '--issuer', issuer.issuer, '--issuer-id', 'demo')
    await writeConfiguration(file, readFileSync(file, 'utf8'))
    await threadwarden(t, 'validate', '--strict')
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
    await threadwarden(t, 'doctor', '--token-file', 'token')
    gateway.kill('SIGTERM')
    t.same(await closed, [0, null])
    t.match(await threadwarden(t, 'threads', 'owner', 't1'), 'demo:alice')
  })
})
