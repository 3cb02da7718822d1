/** Token budgets by what a real agent of AG-UI 1.0 reports: behind the real runtime in both transports, and by itself in both encodings. */
import { test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { AG_UI, VERSIONS, type AnyClient } from '../../testing/support/agui-versions.ts'
import { call } from '../../testing/support/client.ts'
import { sayOnFailure } from '../../testing/support/decided.ts'
import { NOWHERE } from '../../testing/support/gated.ts'
import { startTestGateway } from '../../testing/support/gateway.ts'
import { startScene, type Row } from './scene.ts'

/** What the agent reports of each run. */
const USED = 8

// Two runs fit.
const LIMITS = { tokens: [{ limit: 2 * USED, window: '1d', reserve: 1 }] }

const ROWS: readonly Row[] = [
  { client: 'rest', upstream: 'multi-route' },
  { client: 'single', upstream: 'multi-route' },
  { client: 'rest', upstream: 'single-route' },
  { client: 'single', upstream: 'single-route' },
]

async function reported(healthUrl: string): Promise<number> {
  const { text } = await call(`${healthUrl}/metrics`)
  return Number(/^threadwarden_tokens_total\{kind="reported"\} (\d+)$/m.exec(text)?.[1])
}

for (const row of ROWS) {
  void test(`client with transport ${row.client}, ${row.upstream} runtime`, async (t) => {
    const scene = await startScene(t, row, { agent: '1.0', config: { limits: LIMITS } })
    const [alice, bob] = await Promise.all([scene.open('alice', 'remote'), scene.open('bob', 'remote')])
    for (const thread of ['one', 'two', 'three']) await alice.say(thread, 'hello')
    t.match(alice.errors, [{ status: 429, refusal: 'budget-exceeded' }], 'the third run is refused')
    t.equal((await bob.say('of-bob', 'hello')).length, 2, 'another user has a budget of their own')
    t.equal(await reported(scene.stack.gateway.healthUrl), 3 * USED)
  })
}

async function say(client: AnyClient, content: string): Promise<void> {
  client.messages = [{ id: crypto.randomUUID(), role: 'user', content }]
  await client.runAgent().catch((error: unknown) => {
    if (!String(error).includes('It failed')) throw error
  })
}

for (const version of VERSIONS) {
  for (const asked of ['events', 'binary'] as const) {
    // A client of 0.0.59 cannot read a run that was cancelled.
    for (const ending of version === '1.0' ? ['hello', 'cancel', 'fail'] : ['hello', 'fail']) {
      void test(`client of ${version}, by ${asked}: a run that ends with ${ending} is charged what it reports`, async (t) => {
        const issuer = await startIssuer()
        const agent = await AG_UI['1.0'].startAgent({ issuer: issuer.issuer, audience: issuer.audience })
        const gateway = await startTestGateway({
          upstream: { url: NOWHERE },
          agents: { research: { url: agent.url } },
          authentication: { issuers: { corp: { issuer: issuer.issuer, audiences: [issuer.audience], algorithms: ['RS256'] } } },
          limits: LIMITS,
        })
        sayOnFailure(t, gateway)
        t.teardown(async () => {
          await gateway.close()
          await agent.close()
          await issuer.close()
        })
        const token = await issuer.signIn('alice')
        const client = (thread: string) => AG_UI[version].client(`${gateway.url}/agents/research`, thread, token, asked)
        await say(client('one'), ending)
        await say(client('two'), ending)
        await t.rejects(say(client('three'), ending), /429/)
        t.equal(await reported(gateway.healthUrl), 2 * USED)
      })
    }
  }
}
