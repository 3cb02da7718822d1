/** A shadow policy is evaluated beside the enforced one: what it would decide otherwise is said, and nothing of it is enforced. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { startGateway, type Gateway } from '../../src/gateway/start.ts'
import { makeLog } from '../../src/observe/log.ts'
import { prepare, type Prepared } from '../../src/snapshot/load.ts'
import { configuration } from '../../testing/support/configuration.ts'
import { ruled } from '../../testing/support/policies.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { events, json, startUpstream, type Upstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

const CHAT = { routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'] }
const READ = { routes: ['threads/messages'], allow: ['signed-in'], threads: ['own'] }
const LIST = { routes: ['threads/list'], allow: ['signed-in'] }
const INFO = { routes: ['info'], allow: ['signed-in'] }

interface Scene {
  readonly gateway: Gateway
  readonly upstream: Upstream
  readonly base: string
  readonly alice: string
  readonly bob: string
  /** What was said of the shadow, once there are so many. */
  said(count: number): Promise<readonly Record<string, unknown>[]>
  readonly log: readonly Record<string, unknown>[]
  figures(): Promise<readonly string[]>
  /** Takes the shadow out of the configuration. */
  withoutShadow(): Promise<void>
}

interface Options {
  readonly enforced: readonly object[]
  readonly shadow?: readonly object[]
  readonly changes?: Record<string, unknown>
  /** Changes what was loaded. */
  readonly alter?: (prepared: Prepared) => Prepared
}

async function scene(t: Test, { enforced, shadow, changes = {}, alter = (prepared) => prepared }: Options): Promise<Scene> {
  const { folder, remove } = makeFolder()
  const signer = makeSigner()
  const upstream = await startUpstream(events())
  const file = join(folder, 'threadwarden.yaml')
  const tree = configuration({
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    authentication: signer.authentication,
    'upstream.url': upstream.url,
    'upstream.transport': upstream.transport,
    policy: './policy.yaml',
    ...(shadow === undefined ? {} : { shadowPolicy: './shadow.yaml' }),
    ...changes,
  })
  writeFileSync(join(folder, 'policy.yaml'), ruled(enforced))
  if (shadow !== undefined) writeFileSync(join(folder, 'shadow.yaml'), ruled(shadow))
  writeFileSync(file, JSON.stringify(tree))
  const prepared = prepare(file, {})
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults))
  const log: Record<string, unknown>[] = []
  const gateway = await startGateway(
    alter(prepared.value),
    makeLog('debug', { write: (line) => void log.push(JSON.parse(line) as Record<string, unknown>) }),
    { prepare: () => prepare(file, {}) },
  )
  t.teardown(async () => {
    await gateway.stop(0)
    await upstream.close()
    signer.remove()
    remove()
  })
  const spoken = () => log.filter(({ msg }) => /the shadow policy (?:would|could)/.test(String(msg)))
  return {
    gateway,
    upstream,
    base: `${gateway.url}/api/copilotkit`,
    alice: signer.sign('alice'),
    bob: signer.sign('bob'),
    log,
    async withoutShadow() {
      writeFileSync(file, JSON.stringify({ ...tree, shadowPolicy: undefined }))
      t.equal((await gateway.reload('test')).outcome, 'reloaded')
    },
    async said(count) {
      await until(() => spoken().length >= count)
      return spoken()
    },
    async figures() {
      const { text } = await call(`${gateway.healthUrl}/metrics`)
      return text.split('\n').filter((line) => /^threadwarden_shadow/.test(line))
    },
  }
}

const run = ({ base }: Scene, token: string, threadId: string) =>
  call(`${base}/agent/default/run`, { token, body: runInput(threadId) })

void test('what it would refuse passes, and is said with both rules', async (t) => {
  const one = await scene(t, {
    enforced: [{ name: 'chat', ...CHAT }, READ],
    shadow: [
      INFO,
      { name: 'writers', ...CHAT, roles: ['writer'] },
      { name: 'no-more', routes: ['threads/messages'], deny: ['signed-in'] },
    ],
  })
  t.equal((await run(one, one.alice, 't1')).status, 200)
  one.upstream.answer(json({ messages: [] }))
  t.equal((await call(`${one.base}/threads/t1/messages`, { token: one.alice })).status, 200)
  t.match(await one.said(2), [
    {
      level: 'info',
      route: 'agent/run',
      requestId: /./,
      enforced: { ruling: 'permitted', rule: 'chat', line: 4 },
      shadow: { ruling: 'no-rule-allows', code: 'not-allowed' },
    },
    { route: 'threads/messages', shadow: { ruling: 'denied-by-rule', rule: 'no-more' } },
  ])
  const figures = await one.figures()
  t.ok(figures.includes('threadwarden_shadow_policy 1'))
  t.ok(
    figures.includes('threadwarden_shadow_differences_total{route="agent/run",enforced="permitted",shadow="no-rule-allows"} 1'),
  )
})

void test('what it would allow is refused, with a fact that only it asks for', async (t) => {
  const one = await scene(t, { enforced: [CHAT, INFO], shadow: [CHAT, INFO, READ] })
  await run(one, one.alice, 't1')
  t.equal((await call(`${one.base}/threads/t1/messages`, { token: one.alice })).status, 403)
  t.match(await one.said(1), [{ enforced: { ruling: 'no-rule-allows' }, shadow: { ruling: 'permitted' } }])
  t.equal((await call(`${one.base}/threads/t1/messages`, { token: one.bob })).status, 403)
  t.match((await one.said(2))[1], { enforced: { code: 'not-allowed' }, shadow: { ruling: 'thread-foreign', code: 'not-owner' } })
})

void test('a thread that stands in a body that nobody read leaves it undecided', async (t) => {
  const one = await scene(t, { enforced: [INFO], shadow: [CHAT, INFO] })
  t.equal((await run(one, one.alice, 't1')).status, 403)
  t.match(await one.said(1), [{ enforced: { ruling: 'no-rule-allows' }, shadow: { ruling: 'undecided' } }])
  t.ok((await one.figures()).some((line) => line.includes('shadow="undecided"} 1')))
  t.equal(one.upstream.beginnings(), 0)
})

void test('a permit differs by what passes and by its limits', async (t) => {
  const one = await scene(t, {
    enforced: [CHAT],
    shadow: [{ ...CHAT, tools: ['search'], state: 'drop', interrupts: 'refuse', limits: { runs: '5/m' } }],
  })
  await run(one, one.alice, 't1')
  const [line] = await one.said(1)
  t.same(line?.['terms'], ['state', 'tools', 'interrupts', 'limits.runs'])
  t.match(line, { enforced: { ruling: 'permitted' }, shadow: { ruling: 'permitted' } })
})

void test('what is decided alike, or refused before or beside the policy, is no difference', async (t) => {
  const one = await scene(t, {
    enforced: [{ name: 'one', ...CHAT }, LIST, READ, { routes: ['transcribe'], allow: ['signed-in'] }],
    shadow: [{ ...CHAT, name: 'another' }, LIST, READ, INFO],
    changes: { 'limits.runBody': '2KiB' },
  })
  const { base, alice, bob } = one
  await run(one, alice, 't1')
  await run(one, bob, 't1')
  await run(one, alice, '')
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1', 'x'.repeat(3000)) })
  await call(`${base}/transcribe`, { method: 'POST', token: alice })
  await call(`${base}/info`)
  await call(`${base}/nowhere`, { token: alice })
  one.upstream.answer(json({ threads: [] }))
  await call(`${base}/threads`, { token: alice })
  t.equal((await call(`${base}/info`, { token: alice })).status, 403)
  // This one differs: all before it have had their turn.
  t.match(await one.said(1), [{ route: 'info' }])
  t.equal((await one.said(1)).length, 1)
})

void test('under observe, what enforcing would refuse counts as refused', async (t) => {
  const one = await scene(t, {
    enforced: [CHAT, { ...READ, allow: ['signed-in'] }],
    shadow: [CHAT],
    changes: { enforcement: 'observe' },
  })
  await run(one, one.alice, 't1')
  one.upstream.answer(json({ messages: [] }))
  t.equal((await call(`${one.base}/threads/t1/messages`, { token: one.bob })).status, 200)
  t.match(await one.said(1), [{ enforced: { ruling: 'thread-foreign' }, shadow: { ruling: 'no-rule-allows' } }])
})

/** A policy that fails at whatever it is asked. */
const broken = (prepared: Prepared): Prepared => ({
  ...prepared,
  shadow: {
    ...prepared.policy,
    get rules(): never {
      throw new Error('broken')
    },
  },
})

const failing = (prepared: Prepared): Prepared => ({
  ...prepared,
  shadow: {
    ...prepared.policy,
    rules: new Proxy(prepared.policy.rules, {
      get: () => {
        throw new Error('broken')
      },
    }),
  },
})

void test('a shadow that fails touches no answer, nor what goes upstream', async (t) => {
  const seen: unknown[] = []
  for (const alter of [undefined, failing, broken]) {
    const one = await scene(t, { enforced: [CHAT, READ], ...(alter === undefined ? {} : { alter }) })
    const answers = []
    for (const token of [one.alice, one.bob]) {
      const body = { ...runInput('t1'), runId: 'r1', messages: [] }
      const { status, text } = await call(`${one.base}/agent/default/run`, { token, body })
      answers.push([status, text])
    }
    const sent = one.upstream.requests.map(({ method, target, body, headers }) => [
      method,
      target,
      body.toString(),
      [...headers.keys()],
    ])
    seen.push({ answers, sent })
    if (alter === undefined) continue
    const said = await one.said(2)
    t.match(said[0], { level: 'error', msg: 'the shadow policy could not be evaluated' })
    t.ok((await one.figures()).some((line) => line.includes('shadow="failed"} 1')))
  }
  t.strictSame(seen[1], seen[0])
  t.strictSame(seen[2], seen[0])
})

void test('it says that it is on: in the log, in /readyz and in a metric; and when it is off again', async (t) => {
  const one = await scene(t, { enforced: [CHAT], shadow: [CHAT] })
  t.ok(one.log.some(({ level, msg }) => level === 'warn' && /a shadow policy is evaluated/.test(String(msg))))
  t.match((await call(`${one.gateway.healthUrl}/readyz`)).json, {
    notes: { shadowPolicy: /shadow\.yaml.*not enforced/ },
  })
  await one.withoutShadow()
  t.notMatch((await call(`${one.gateway.healthUrl}/readyz`)).text, /shadow/)
  t.ok((await one.figures()).includes('threadwarden_shadow_policy 0'))
})
