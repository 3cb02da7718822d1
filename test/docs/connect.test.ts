/** docs/how-to/connect: the commands of the pages, run with a real runtime, agent and OpenID provider, and their configurations. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import tap, { test, type Test } from 'tap'
import { parse } from 'yaml'
import { startAgent } from '../../examples/agent.ts'
import { startIssuer } from '../../examples/issuer.ts'
import { startLangGraph } from '../../examples/langgraph.ts'
import { startRuntime, type RuntimeOptions } from '../../examples/runtime.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { deploymentFile, startDeployment } from '../../testing/support/deployment.ts'
import { OPERATOR } from '../../testing/support/sharing.ts'
import { runBlocks } from './commands.ts'
import { blocks, page } from './markdown.ts'

// The runtime tells of every run that fails.
tap.capture(console, 'error')

const readyConfig = (name: string): string => readFileSync(deploymentFile(name), 'utf8')

for (const [name, configurations] of [
  ['copilotkit-runtime', ['in-memory', 'runner-without-read-routes']],
  ['self-hosted-agent', ['self-hosted-agent']],
] as const) {
  void test(`${name}.md shows the ready configurations`, (t) => {
    const shown = blocks(page(`docs/how-to/connect/${name}.md`), 'yaml').map((text) => parse(text) as unknown)
    t.same(
      shown,
      configurations.map((one) => parse(readyConfig(one)) as unknown),
    )
    t.end()
  })
}

void test('langgraph.md shows what is needed of the ready configuration', (t) => {
  const [shown = ''] = blocks(page('docs/how-to/connect/langgraph.md'), 'yaml')
  t.match(parse(readyConfig('langgraph')), parse(shown) as object)
  t.end()
})

/** People, and whatever a page has behind the gateway. */
async function startParts(t: Test, options: RuntimeOptions = {}) {
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  const runtime = await startRuntime(options)
  t.teardown(() => runtime.close())
  const [alice, bob] = await Promise.all([issuer.signIn('alice'), issuer.signIn('bob')])
  return { issuer, runtime, env: { ALICE: alice, BOB: bob, TOKEN: alice } }
}

void test('the commands of upstreams.md', async (t) => {
  const { issuer, runtime, env } = await startParts(t)
  let isWritten = false
  await runBlocks(t, 'docs/how-to/connect/upstreams.md', {
    env,
    replace: { 'http://127.0.0.1:4000': runtime.url, 'https://login.example.com/': issuer.issuer, '0.0.0.0': '127.0.0.1' },
    before: (_block, { folder, replaced }) => {
      if (!isWritten) writeFileSync(join(folder, 'threadwarden.yaml'), replaced(readyConfig('in-memory')))
      isWritten = true
    },
  })
})

void test('the commands of self-hosted-agent.md', async (t) => {
  const { issuer, env } = await startParts(t)
  const agent = await startAgent({ issuer: issuer.issuer, audience: issuer.audience })
  t.teardown(() => agent.close())
  await runBlocks(t, 'docs/how-to/connect/self-hosted-agent.md', {
    env,
    replace: {
      'http://127.0.0.1:5000': new URL(agent.url).origin,
      'https://login.example.com/': issuer.issuer,
      '0.0.0.0': '127.0.0.1',
    },
  })
})

void test('the commands of langgraph.md', async (t) => {
  const { issuer, env } = await startParts(t)
  const server = await startLangGraph()
  t.teardown(() => server.close())
  await runBlocks(t, 'docs/how-to/connect/langgraph.md', {
    env,
    replace: { 'http://127.0.0.1:2024': server.url, 'https://login.example.com/': issuer.issuer, '0.0.0.0': '127.0.0.1' },
  })
})

void test('the commands of several-upstreams.md', async (t) => {
  const { issuer, runtime, env } = await startParts(t)
  const legal = await startRuntime()
  t.teardown(() => legal.close())
  const agent = await startAgent({ issuer: issuer.issuer, audience: issuer.audience })
  t.teardown(() => agent.close())
  await runBlocks(t, 'docs/how-to/connect/several-upstreams.md', {
    env,
    replace: {
      'http://127.0.0.1:4000': runtime.url,
      'http://127.0.0.1:4100': legal.url,
      'http://127.0.0.1:5000': new URL(agent.url).origin,
      'https://login.example.com/': issuer.issuer,
    },
  })
})

void test('the commands of thread-lists.md', async (t) => {
  const { issuer, runtime, env } = await startParts(t, { runner: 'without-lists' })
  const environment = { RUNTIME_URL: runtime.url, ISSUER_URL: issuer.issuer }
  const gateway = await startDeployment('runner-without-read-routes', environment)
  t.teardown(() => gateway.close())
  await gateway.ready()
  await call(`${gateway.url}/api/copilotkit/agent/default/run`, { token: env.ALICE, body: runInput('check-1') })
  await runBlocks(t, 'docs/how-to/connect/thread-lists.md', { env, ports: { 8080: Number(new URL(gateway.url).port) } })
})

void test('the commands of frontend.md', async (t) => {
  const { issuer, runtime, env } = await startParts(t)
  const environment = {
    RUNTIME_URL: runtime.url,
    ISSUER_URL: issuer.issuer,
    ADMIN_CREDENTIAL: OPERATOR,
  }
  const gateway = await startDeployment('frontend', { ...environment, PAGE_ORIGIN: 'https://app.example.com' })
  t.teardown(() => gateway.close())
  await gateway.ready()
  await runBlocks(t, 'docs/how-to/connect/frontend.md', { env, ports: { 8080: Number(new URL(gateway.url).port) } })
})

void test('the commands of managed-platform.md', async (t) => {
  const { folder } = await runBlocks(t, 'docs/how-to/connect/managed-platform.md')
  t.match(readFileSync(join(folder, 'assertion.pem'), 'utf8'), /BEGIN PRIVATE KEY/)
})
