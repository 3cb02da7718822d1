/** Token budgets: what a run is charged, when the next one is refused, and what nobody can do to be charged less. */
import { test, type Test } from 'tap'
import { eventBytes, eventsIn } from '../../examples/agent-client.ts'
import { codeOf, runInput, type Reply } from '../../testing/support/client.ts'
import { gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { MULTI_ROUTE, type Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { ruled } from '../../testing/support/policies.ts'
import { head, openRaw } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'

const OPERATOR = 'operator-credential-of-the-test-0123456789'

interface Budgeted extends GatedUpstream {
  readonly run: (token: string, threadId?: string, more?: object) => Promise<Reply>
  /** Of the budgets that a question names. */
  readonly used: (question: string) => Promise<readonly Used[]>
}

interface Used {
  readonly per: string
  readonly rule: string | null
  readonly limit: number
  readonly spent: number
  readonly reserved: number
  readonly openRuns: number
  readonly resetsAt: string | null
}

async function budgeted(
  t: Test,
  tokens: readonly object[],
  answering: Answering,
  { pair = MULTI_ROUTE, config, ...more }: GatedOptions = {},
): Promise<Budgeted> {
  const { limits, ...rest } = (config ?? {}) as { limits?: object }
  // Only a proxy has the admin API.
  const admin = pair.place === 'proxy' ? { admin: { port: 0, credential: OPERATOR } } : {}
  const gate = await gated(t, answering, { pair, ...more, config: { ...admin, ...rest, limits: { tokens, ...limits } } })
  return {
    ...gate,
    run: (token, threadId = 't1', extra = {}) =>
      gate.call(`${gate.base}/agent/default/run`, { token, body: { ...runInput(threadId), ...extra } }),
    async used(question) {
      const reply = await gate.call(`${gate.gateway.adminUrl}/budgets?${question}`, { token: OPERATOR, transport: 'multi-route' })
      return (reply.json as { readonly budgets: readonly Used[] }).budgets
    },
  }
}

const STARTED = { type: 'RUN_STARTED', threadId: 't1', runId: 'r1' }
const FINISHED = { type: 'RUN_FINISHED', threadId: 't1', runId: 'r1' }

/** A run that reports what it used. */
const using = (totalTokens: number): Answering => events(STARTED, { ...FINISHED, usage: [{ totalTokens }] })

const DAILY = { limit: 1000, window: '1d', reserve: 100 }

void testEachPair('a run that would start over budget is refused, and no other request', async (t, pair: Pair) => {
  const { run, alice, bob, upstream, call, base } = await budgeted(t, [DAILY], using(600), { pair })
  t.equal((await run(alice)).status, 200)
  t.equal((await run(alice)).status, 200, 'what is left is enough to start')
  const before = upstream.beginnings()
  const late = await run(alice)
  t.match([late.status, codeOf(late)], [429, 'budget-exceeded'])
  const wait = Number(late.headers.get('retry-after'))
  t.ok(wait > 86_000 && wait <= 86_400, `Retry-After: ${wait}`)
  t.equal(late.headers.get('ratelimit-policy'), '"tokens";q=1000;w=86400')
  t.match((await call(`${base}/agent/default/suggest`, { token: alice, body: runInput('t1') })).status, 429, 'nor a suggestion')
  t.equal(upstream.beginnings(), before, 'nothing reached the upstream')
  t.not((await call(`${base}/agent/default/connect`, { token: alice, body: runInput('t1') })).status, 429)
  t.equal((await run(bob, 't2')).status, 200, 'others go on')
})

void test('a run is charged what it reports, and a connect to it is not', async (t) => {
  const { run, used, alice, call, base, upstream } = await budgeted(t, [DAILY], using(120))
  await run(alice, 't1', { usage: [{ totalTokens: 1 }], forwardedProps: { usage: [] } })
  t.match(await used('user=corp:alice'), [{ per: 'user', rule: null, limit: 1000, spent: 120, reserved: 0, openRuns: 0 }])
  t.notMatch(upstream.requests[0]?.json, { usage: [] }, 'a usage of the caller goes nowhere')
  for (const path of ['connect', 'connect']) await call(`${base}/agent/default/${path}`, { token: alice, body: runInput('t1') })
  t.match(await used('user=corp:alice'), [{ spent: 120 }])
  await call(`${base}/agent/default/suggest`, { token: alice, body: runInput('t1') })
  t.match(await used('user=corp:alice'), [{ spent: 240 }], 'a suggestion is charged as a run is')
  t.match(await used('user=corp:bob'), [{ spent: 0, resetsAt: null }])
})

void test('a run without usage is charged by its text and its request', async (t) => {
  const text = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'x'.repeat(400) }
  const { run, used, alice, upstream } = await budgeted(t, [DAILY], events(STARTED, text, FINISHED))
  await run(alice)
  const sent = upstream.requests[0]?.body.length ?? 0
  t.match(await used('user=corp:alice'), [{ spent: Math.ceil((sent + 400) / 4) }])
})

void test('binary events count as text events do', async (t) => {
  const answering: Answering = (_request, response) => {
    const text = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'x'.repeat(400) }
    response.writeHead(200, { 'content-type': 'application/vnd.ag-ui.event+proto' })
    for (const event of [STARTED, text, FINISHED]) response.write(eventBytes(event as never, 'binary'))
    response.end()
  }
  const { run, used, alice, upstream } = await budgeted(t, [DAILY], answering)
  await run(alice)
  t.match(await used('user=corp:alice'), [{ spent: Math.ceil(((upstream.requests[0]?.body.length ?? 0) + 400) / 4) }])
})

/** Runs of which the gateway sees no end: the upstream goes on, whatever the caller does. */
const endless: Answering = (request, response) => {
  if (!request.target.endsWith('/run')) return json({})(request, response)
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${JSON.stringify(STARTED)}\n\n`)
}

/** Asks for a run on a connection of its own. */
async function rawRun({ gateway }: Pick<GatedUpstream, 'gateway'>, token: string, threadId = 't1') {
  const body = JSON.stringify(runInput(threadId))
  const stream = await openRaw(gateway.url)
  const lines = [`Authorization: Bearer ${token}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
  stream.write(head('POST /api/copilotkit/agent/default/run HTTP/1.1', 'Host: a', ...lines) + body)
  return stream
}

void test('a caller who leaves pays what was set aside, whenever they leave', async (t) => {
  const silent: Answering = () => {}
  for (const [name, answering, begun] of [
    ['after the first event', endless, /RUN_STARTED/],
    ['before the answer', silent, null],
  ] as const) {
    const gate = await budgeted(t, [DAILY], answering)
    const stream = await rawRun(gate, gate.alice)
    if (begun === null) await gate.upstream.arrived(1)
    else await stream.until(begun)
    t.match(await gate.used('user=corp:alice'), [{ spent: 0, reserved: 100, openRuns: 1 }], name)
    stream.destroy()
    await until(async () => (await gate.used('user=corp:alice'))[0]?.openRuns === 0)
    t.match(await gate.used('user=corp:alice'), [{ spent: 100, reserved: 0 }], name)
  }
})

void test('a stream that an operator ends, or an answer that is no stream, costs what was set aside', async (t) => {
  const gate = await budgeted(t, [DAILY], endless)
  const { call, gateway, alice, used } = gate
  const stream = await rawRun(gate, alice)
  await stream.until(/RUN_STARTED/)
  const operate = { token: OPERATOR, transport: 'multi-route' } as const
  const { streams } = (await call(`${gateway.adminUrl}/streams`, operate)).json as { streams: readonly { requestId: string }[] }
  await call(`${gateway.adminUrl}/streams/${streams[0]?.requestId}`, { ...operate, method: 'DELETE' })
  await until(async () => (await used('user=corp:alice'))[0]?.spent === 100)
  gate.upstream.answer(json({ joinToken: 'x' }))
  await gate.run(alice)
  await until(async () => (await used('user=corp:alice'))[0]?.spent === 200)
  stream.destroy()
  t.pass()
})

void test('a run for which the gateway waits no longer costs what was set aside: it may go on', async (t) => {
  const silent: Answering = () => {}
  for (const [setting, answering] of [
    ['headers', silent],
    ['body', endless],
  ] as const) {
    const gate = await budgeted(t, [DAILY], answering, { config: { upstream: { timeouts: { [setting]: '1s' } } } })
    const stream = await rawRun(gate, gate.alice)
    await until(async () => (await gate.used('user=corp:alice'))[0]?.spent !== 0)
    t.match(await gate.used('user=corp:alice'), [{ spent: 100, openRuns: 0 }], setting)
    stream.destroy()
  }
})

void test('a caller who only ends their half of the connection pays as one who leaves', async (t) => {
  const gate = await budgeted(t, [DAILY], endless)
  const stream = await rawRun(gate, gate.alice)
  await stream.until(/RUN_STARTED/)
  stream.socket.end()
  await until(async () => (await gate.used('user=corp:alice'))[0]?.openRuns === 0)
  t.match(await gate.used('user=corp:alice'), [{ spent: 100, reserved: 0 }])
})

void test('a run that certainly did not start costs nothing, and one that failed a little', async (t) => {
  const { run, used, alice, upstream } = await budgeted(t, [DAILY], json({ error: 'no' }, 400))
  await run(alice)
  t.match(await used('user=corp:alice'), [{ spent: 0, openRuns: 0 }])
  upstream.answer(json({ error: 'no' }, 500))
  await run(alice)
  t.match(await used('user=corp:alice'), [{ spent: Math.ceil((upstream.requests.at(-1)?.body.length ?? 0) / 4), openRuns: 0 }])
})

void test('a refused run gives back what was set aside', async (t) => {
  const { run, used, alice, bob } = await budgeted(t, [DAILY], using(10))
  await run(bob)
  t.equal((await run(alice)).status, 403)
  t.match(await used('user=corp:alice'), [{ spent: 0, reserved: 0, openRuns: 0 }])
})

void test('runs at once: beside others, a run starts only if its reserve fits', async (t) => {
  const gate = await budgeted(t, [{ ...DAILY, limit: 250 }], endless)
  const open = [await rawRun(gate, gate.alice, 'a'), await rawRun(gate, gate.alice, 'b')]
  for (const stream of open) await stream.until(/RUN_STARTED/)
  const third = await gate.run(gate.alice, 'c')
  t.match([third.status, third.headers.get('retry-after')], [429, '1'])
  for (const stream of open) stream.destroy()
  await until(async () => (await gate.used('user=corp:alice'))[0]?.openRuns === 0)
})

for (const form of ['events', 'binary'] as const) {
  void test(`onExceeded: end ends a run over budget (${form})`, async (t) => {
    const text = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'x'.repeat(6000) }
    const answering: Answering = (_request, response) => {
      const type = form === 'events' ? 'text/event-stream' : 'application/vnd.ag-ui.event+proto'
      response.writeHead(200, { 'content-type': type })
      for (const event of [STARTED, text]) response.write(eventBytes(event as never, form))
    }
    const { call, base, used, alice, upstream, gateway } = await budgeted(t, [{ ...DAILY, onExceeded: 'end' }], answering)
    const answer = await fetch(`${base}/agent/default/run`, {
      method: 'POST',
      headers: { authorization: `Bearer ${alice}`, 'content-type': 'application/json' },
      body: JSON.stringify(runInput('t1')),
    })
    const seen = await eventsIn(new Uint8Array(await answer.arrayBuffer()), form)
    t.match(seen, [{ type: 'RUN_STARTED' }, { type: 'TEXT_MESSAGE_CONTENT' }, { type: 'RUN_ERROR', code: 'budget-exceeded' }])
    await until(() => upstream.requests[0]?.left() === true)
    await until(async () => ((await used('user=corp:alice'))[0]?.spent ?? 0) >= 1500)
    const { text: metrics } = await call(`${gateway.healthUrl}/metrics`)
    t.match(metrics, /threadwarden_stream_duration_seconds_count\{reason="budget-exceeded"\} 1/)
    t.match(metrics, /threadwarden_tokens_total\{kind="estimated"\} 1[5-9]\d\d/)
  })
}

void test('with onExceeded: finish a run goes on, and the last event of a run is never followed by an error', async (t) => {
  const text = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'x'.repeat(6000) }
  for (const onExceeded of ['finish', 'end']) {
    const body = onExceeded === 'finish' ? [STARTED, text, FINISHED] : [STARTED, { ...FINISHED, usage: [{ totalTokens: 5000 }] }]
    const { run, alice, used } = await budgeted(t, [{ ...DAILY, onExceeded }], events(...body))
    t.notMatch((await run(alice)).text, 'RUN_ERROR')
    t.ok(((await used('user=corp:alice'))[0]?.spent ?? 0) >= 1500)
  }
})

void test('a run that reports more than is left at its end is over, and no error follows', async (t) => {
  const finish = Promise.withResolvers<() => void>()
  const answering: Answering = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${JSON.stringify(STARTED)}\n\n`)
    const last = `data: ${JSON.stringify({ ...FINISHED, usage: [{ totalTokens: 5000 }] })}\n\n`
    finish.resolve(() => void response.end(last))
  }
  const gate = await budgeted(t, [{ ...DAILY, onExceeded: 'end' }], answering)
  const stream = await rawRun(gate, gate.alice)
  await stream.until(/RUN_STARTED/)
  ;(await finish.promise)()
  await stream.until(/\r\n0\r\n\r\n/)
  t.match(stream.text(), /RUN_FINISHED/)
  t.notMatch(stream.text(), /RUN_ERROR/)
  t.match(await gate.used('user=corp:alice'), [{ spent: 5000 }])
  stream.destroy()
})

void test('per: /tenant counts the users of a tenant together, and of no other', async (t) => {
  const { run, used, signer } = await budgeted(t, [{ ...DAILY, per: '/org/tenant' }], using(600))
  const acme = { org: { tenant: 'acme' } }
  const [alice, bob, carol] = [signer.sign('alice', acme), signer.sign('bob', acme), signer.sign('carol', acme)]
  await run(alice, 'a')
  await run(bob, 'b')
  t.equal((await run(carol, 'c')).status, 429)
  t.equal((await run(signer.sign('dan', { org: { tenant: 'other' } }), 'd')).status, 200)
  t.match(await used('claim=/org/tenant&issuer=corp&value=acme'), [{ per: '/org/tenant', spent: 1200 }])
  t.match(await used('claim=/org/tenant&issuer=other&value=acme'), [{ spent: 0 }])
})

void test('a caller without a usable claim counts alone: neither without limit nor in another tenant', async (t) => {
  const tenants: readonly unknown[] = [
    undefined,
    null,
    '',
    [],
    ['acme'],
    {},
    { toString: 'acme' },
    true,
    1.5,
    'x'.repeat(256),
    'a\u0000b',
    '\ud800',
  ]
  const { run, used, signer } = await budgeted(t, [{ ...DAILY, per: '/tenant' }], using(1000))
  await run(signer.sign('acme-user', { tenant: 'acme' }), 'acme')
  for (const [at, tenant] of tenants.entries()) {
    const token = signer.sign(`u${at}`, { tenant })
    t.equal((await run(token, `t${at}`)).status, 200, `${JSON.stringify(tenant)}: of their own`)
    t.equal((await run(token, `t${at}`)).status, 429, `${JSON.stringify(tenant)}: but bounded`)
    t.match(await used(`user=corp:u${at}`), [{ per: '/tenant', spent: 1000 }])
  }
  t.match(await used('claim=/tenant&issuer=corp&value=acme'), [{ spent: 1000 }])
})

void test('a number is another tenant than its digits, and a pointer finds nothing of a prototype', async (t) => {
  const { run, signer } = await budgeted(t, [{ ...DAILY, per: '/tenant' }], using(1000))
  t.equal((await run(signer.sign('a', { tenant: 42 }), 'a')).status, 200)
  t.equal((await run(signer.sign('b', { tenant: '42' }), 'b')).status, 200)
  t.equal((await run(signer.sign('c', { tenant: 42 }), 'c')).status, 429)
  for (const per of ['/constructor/name', '/__proto__/x', '/toString']) {
    const other = await budgeted(t, [{ ...DAILY, per }], using(1000))
    t.equal((await other.run(other.alice, 'a')).status, 200)
    t.equal((await other.run(other.bob, 'b')).status, 200, `${per}: each user alone`)
    t.equal((await other.run(other.alice, 'a')).status, 429)
  }
})

void test('per: group charges each group of the caller', async (t) => {
  const authentication = (signer: GatedUpstream['signer']) => {
    const { corp } = signer.authentication.issuers as { corp: object }
    return { issuers: { corp: { ...corp, claims: { groups: '/groups' } } } }
  }
  const first = await gated(t)
  const budgets = [{ ...DAILY, per: 'group', groups: ['corp:staff', 'corp:sales'] }]
  const { run, used, signer } = await budgeted(t, budgets, using(600), {
    signer: first.signer,
    config: { authentication: authentication(first.signer) },
  })
  const sign = (user: string, ...groups: string[]): string => signer.sign(user, { groups })
  await run(sign('alice', 'staff', 'sales', 'all'), 'a')
  for (const group of ['staff', 'sales']) t.match(await used(`group=corp:${group}`), [{ per: 'group', spent: 600 }])
  t.same(await used('group=corp:all'), [], 'a group that is not named')
  await run(sign('bob', 'staff'), 'b')
  t.equal((await run(sign('carol', 'staff', 'sales'), 'c')).status, 429, 'one exhausted group is enough')
  t.equal((await run(sign('dan', 'sales'), 'd')).status, 200)
  t.equal((await run(sign('eve', 'all'), 'e')).status, 200, 'without a named group, alone')
  t.match(await used('user=corp:eve'), [{ spent: 600 }])
})

void test('a rule of the policy has its own budgets', async (t) => {
  const own = { allow: ['signed-in'], threads: ['own', 'unknown'] }
  const policy = ruled([
    { name: 'free', routes: ['agent/run'], ...own, agents: ['default'], limits: { tokens: [{ limit: 50, window: '1d' }] } },
    { name: 'paid', routes: ['agent/run'], ...own, agents: ['other'], limits: { tokens: [] } },
  ])
  const { run, used, alice, call, base } = await budgeted(t, [DAILY], using(60), { policy })
  t.equal((await run(alice)).status, 200)
  t.equal((await run(alice)).status, 429)
  t.equal((await call(`${base}/agent/other/run`, { token: alice, body: runInput('t1') })).status, 200)
  t.match(await used('user=corp:alice'), [
    { rule: null, limit: 1000, spent: 60 },
    { rule: 'free', limit: 50, spent: 60 },
  ])
})

void test('several budgets apply together', async (t) => {
  const { run, alice, signer, used } = await budgeted(
    t,
    [
      { ...DAILY, limit: 100 },
      { ...DAILY, per: '/tenant' },
      { limit: 5000, window: '30d' },
    ],
    using(600),
  )
  await run(signer.sign('alice', { tenant: 'acme' }))
  t.equal((await run(alice)).status, 429, 'the budget of the user')
  t.equal((await run(signer.sign('bob', { tenant: 'acme' }), 'b')).status, 200)
  t.equal((await run(signer.sign('carol', { tenant: 'acme' }), 'c')).status, 429, 'the budget of the tenant')
  t.match(await used('user=corp:alice'), [{ spent: 600 }, { per: '/tenant', spent: 0 }, { spent: 600 }])
})

void test('any limit may be counted per claim', async (t) => {
  const limits = { runs: ['10/h', { rate: '1/h', per: '/tenant' }], streams: [2, { most: 1, per: '/tenant' }] }
  const { run, signer, ...gate } = await budgeted(t, [], events(), { config: { limits } })
  const [alice, bob, eve] = ['acme', 'acme', 'other'].map((tenant, at) => signer.sign(`u${at}`, { tenant })) as [
    string,
    string,
    string,
  ]
  t.equal((await run(alice, 'a')).status, 200)
  t.equal((await run(bob, 'b')).status, 200)
  t.match(codeOf(await run(alice, 'a')), 'rate-limited')
  t.equal((await run(eve, 'e')).status, 200)
  gate.upstream.answer(endless)
  const open = await rawRun(gate, eve, 'e')
  await open.until(/RUN_STARTED/)
  t.equal((await run(signer.sign('u9', { tenant: 'other' }), 'f')).status, 429, 'one stream of the tenant')
  open.destroy()
})

void test('requests may be counted per claim, before a route is known', async (t) => {
  const { call, base, signer } = await budgeted(t, [], events(), {
    config: { limits: { requests: { rate: '1/h', per: '/tenant' } } },
  })
  const statuses = []
  for (const user of ['a', 'b', 'c']) {
    statuses.push((await call(`${base}/info`, { token: signer.sign(user, { tenant: 'acme' }) })).status)
  }
  t.equal(statuses.at(-1), 429)
  t.not((await call(`${base}/info`, { token: signer.sign('d', { tenant: 'other' }) })).status, 429)
})

void test('a stream takes one place of a group, though two limits name it, and the lower limit applies', async (t) => {
  const first = await gated(t)
  const { corp } = first.signer.authentication.issuers as { corp: object }
  const streams = [
    { most: 2, per: 'group', groups: ['corp:staff', 'corp:sales'] },
    { most: 5, per: 'group', groups: ['corp:staff'] },
  ]
  const gate = await budgeted(t, [], endless, {
    signer: first.signer,
    config: { limits: { streams }, authentication: { issuers: { corp: { ...corp, claims: { groups: '/groups' } } } } },
  })
  const token = gate.signer.sign('alice', { groups: ['staff'] })
  const open = [await rawRun(gate, token, 'a'), await rawRun(gate, token, 'b')]
  for (const stream of open) await stream.until(/RUN_STARTED/)
  t.equal((await gate.run(token, 'c')).status, 429)
  for (const stream of open) stream.destroy()
})

void test('no name of a rule makes its counters those of a group', async (t) => {
  const first = await gated(t)
  const { corp } = first.signer.authentication.issuers as { corp: object }
  const policy = ruled([
    {
      name: 'group',
      routes: ['agent/run'],
      allow: ['signed-in'],
      threads: ['own', 'unknown'],
      limits: { requests: '1/h' },
    },
  ])
  const gate = await budgeted(t, [], events(), {
    policy,
    signer: first.signer,
    config: {
      limits: { requests: { rate: '1/h', per: 'group' } },
      authentication: { issuers: { corp: { ...corp, claims: { groups: '/groups' } } } },
    },
  })
  const { run, signer } = gate
  // Uses up the counter of the group. Then a user with the name of the group, who is in no group, has a counter of their own.
  const member = signer.sign('alice', { groups: ['staff'] })
  for (const at of [1, 2]) t.equal((await run(member, `a${at}`)).status, 200)
  t.equal((await run(signer.sign('staff'), 'b')).status, 200)
})
