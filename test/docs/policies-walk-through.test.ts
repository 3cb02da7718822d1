/** docs/how-to/authorize/write-a-policy.md, followed step by step in a folder of its own while a gateway runs there. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { stringify } from 'yaml'
import { serving, type Serving } from '../../testing/support/program.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { until } from '../../testing/support/until.ts'
import { events, INFO, json, startUpstream, type Upstream } from '../../testing/support/upstream.ts'
import { runBlocks } from './commands.ts'
import { ROOT } from './markdown.ts'

/** The folder as a reader has it: a configuration without a policy. */
function readersFolder(t: Test, upstream: Upstream, authentication: ReturnType<typeof makeSigner>['authentication']): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const configuration = {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    upstream: { url: upstream.url, basePath: '/api/copilotkit' },
    // The issuer id of the tutorial, which the page uses.
    authentication: { ...authentication, issuers: { demo: authentication.issuers['corp'] } },
    ownership: { unknownThread: 'claim' },
  }
  writeFileSync(join(folder, 'threadwarden.yaml'), stringify(configuration))
  return folder
}

/** How often the gateway has applied a configuration since it started. */
function changes({ lines }: Serving): number {
  return lines.filter(({ generation, policy }) => generation !== undefined && policy !== undefined).length
}

void test('a reader who follows the page opens one agent to one role', async (t) => {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const agents = { default: { name: 'default' }, finance: { name: 'finance' } }
  upstream.answer((request, response) =>
    (request.target.endsWith('/info') ? json({ ...INFO, agents }) : events({ type: 'RUN_FINISHED' }))(request, response),
  )
  const folder = readersFolder(t, upstream, signer.authentication)
  const gateway = await serving(t, join(folder, 'threadwarden.yaml'))
  const base = `${String(gateway.listening['url'])}/api/copilotkit`
  await until(async () => (await fetch(`${String(gateway.listening['health'])}/readyz`)).ok)
  const clerk = signer.sign('carla', { role: 'clerk' })
  const accountant = signer.sign('anna', { role: 'accounting' })
  const runs = (token: string, agent: string) =>
    call(`${base}/agent/${agent}/run`, { token, body: runInput(crypto.randomUUID()) })
  const listed = async (token: string) => {
    const info = (await call(`${base}/info`, { token })).json as { readonly agents: object }
    return Object.keys(info.agents)
  }
  const before = changes(gateway)
  let isApplied = false

  t.equal((await runs(clerk, 'finance')).status, 200, 'before, every user can run the agent')
  const { ran } = await runBlocks(t, 'docs/how-to/authorize/write-a-policy.md', {
    folder,
    env: { CLONE: ROOT },
    exits: { ' diff --config': 1, '--claims clerk.json': 3 },
    after: async ({ code }) => {
      if (code.startsWith('policy:')) await until(() => changes(gateway) === before + 1)
      if (code.includes('mv draft.yaml')) {
        await until(() => changes(gateway) === before + 2)
        isApplied = true
      }
      if (!isApplied) t.equal((await runs(clerk, 'finance')).status, 200, 'a draft is not active')
    },
  })
  for (const word of ['validate', 'diff', 'explain', 'mv draft.yaml', 'test']) {
    t.ok(
      ran.some(({ command }) => command.includes(word)),
      `the page has a command with ${word}`,
    )
  }

  const refused = await runs(clerk, 'finance')
  t.same([refused.status, codeOf(refused)], [403, 'not-allowed'])
  t.equal((await runs(accountant, 'finance')).status, 200)
  t.equal((await runs(clerk, 'default')).status, 200, 'other agents are as they were')
  t.same(await listed(clerk), ['default'])
  t.same(await listed(accountant), ['default', 'finance'])
  t.equal((await gateway.end('SIGTERM')).code, 0)
})
