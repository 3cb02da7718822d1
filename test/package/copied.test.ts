/** Every ready configuration starts when it is copied to another folder, alone: with the paths of a checkout, and with those of the image. */
import { copyFileSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test, type Test } from 'tap'
import { parse } from 'yaml'
import { makeFolder, startPrepared } from '../../testing/support/gateway.ts'
import { PAIRS } from '../../testing/support/signing.ts'
import { startUpstream } from '../../testing/support/upstream.ts'
import type { Outcome } from '../../src/document/document.ts'
import { prepare, type Prepared } from '../../src/snapshot/load.ts'
import { ROOT } from '../docs/markdown.ts'
import { plainIssuer } from '../cli/init-scene.ts'
import { run } from '../cli/in-process.ts'

const FILES = ['config/threadwarden.yaml', ...globSync('examples/deployments/*/threadwarden.yaml', { cwd: ROOT })].toSorted()

/** The environment that the image sets. */
const IMAGE = new Map(
  Array.from(
    readFileSync(join(ROOT, 'Dockerfile'), 'utf8').matchAll(/\b(THREADWARDEN_\w+)=(\S+)/g),
    ([, name = '', value = '']) => [name, value],
  ),
)

void test('the image places the data on its volume', (t) => {
  t.equal(IMAGE.get('THREADWARDEN_DATA'), '/data')
  t.equal(IMAGE.get('THREADWARDEN_CONFIG'), '/etc/threadwarden/threadwarden.yaml')
  t.ok(FILES.length > 8)
  t.end()
})

/** What the references of the configurations name. The key is beside the configuration, as a mounted secret is. */
async function surroundings(t: Test, folder: string): Promise<Readonly<Record<string, string>>> {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  const key = join(folder, 'assertion.pem')
  writeFileSync(key, PAIRS.p256.privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return {
    ...{ RUNTIME_URL: upstream.url, AGENT_URL: upstream.url, LANGGRAPH_URL: upstream.url, ISSUER_URL: issuer.url },
    ...{ PAGE_ORIGIN: 'https://app.example.com', PUBLIC_URL: 'https://chat.example.com', ASSERTION_KEY_FILE: key },
    ...{ ADMIN_CREDENTIAL: 'x'.repeat(40), GRAPH_SERVICE_TOKEN: 'y'.repeat(40) },
  }
}

for (const file of FILES) {
  for (const layout of ['checkout', 'image'] as const) {
    void test(`${file}, copied alone, with the paths of the ${layout}`, async (t) => {
      const { folder, remove } = makeFolder()
      t.teardown(remove)
      const [config, data] = [join(folder, 'etc/threadwarden'), join(folder, 'data')]
      mkdirSync(config, { recursive: true })
      if (layout === 'image') mkdirSync(data)
      const copy = join(config, 'threadwarden.yaml')
      copyFileSync(join(ROOT, file), copy)
      const place = layout === 'image' ? { THREADWARDEN_DATA: join(folder, IMAGE.get('THREADWARDEN_DATA') ?? '') } : {}
      const environment = { ...(await surroundings(t, folder)), ...place }
      t.match(await run(t, ['validate', '--config', copy], { environment }), { code: 0, stdout: `${copy} is valid\n` })
      const gateway = await startPrepared(() => onFreePorts(prepare(copy, environment)), { folder, file: copy, remove: () => {} })
      t.teardown(() => gateway.close())
      t.equal((await fetch(`${gateway.healthUrl}/livez`)).status, 200)
      const written = layout === 'image' ? data : join(config, 'data')
      t.ok(existsSync(join(written, 'ownership.db')))
      const isAudited = (parse(readFileSync(copy, 'utf8')) as { readonly audit?: unknown }).audit !== undefined
      t.equal(existsSync(join(written, 'audit.jsonl')), isAudited)
      await gateway.close()
      if (layout === 'checkout') rmSync(written, { recursive: true })
      t.same(readdirSync(config), ['threadwarden.yaml'], 'and nothing is written beside it')
    })
  }
}

function onFreePorts(prepared: Outcome<Prepared>): Outcome<Prepared> {
  if (!prepared.ok) return prepared
  const { config } = prepared.value
  const free = { host: '127.0.0.1', port: 0 }
  const admin = config.admin === undefined ? {} : { admin: { ...config.admin, ...free } }
  return {
    ok: true,
    value: { ...prepared.value, config: { ...config, listen: { ...config.listen, ...free }, health: free, ...admin } },
  }
}

void test('no ready configuration names a file that is not beside it', (t) => {
  for (const file of FILES) {
    const text = readFileSync(join(ROOT, file), 'utf8').replaceAll(/^\s*#.*$/gm, '')
    t.notMatch(text, /(?:^|[\s'"[:])\.{1,2}\/|sqlite:/m, relative(ROOT, file))
  }
  t.end()
})
