/** Limits per time (issue: a thousand tiny runs evict everybody's history from the in-memory runner): whom they count, and when. */
import { readFileSync, writeFileSync } from 'node:fs'
import { test, type Test } from 'tap'
import { ruled } from '../../testing/support/policies.ts'
import { codeOf, runInput, type Reply } from '../../testing/support/client.ts'
import { gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { MULTI_ROUTE, type Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { head, openRaw } from '../../testing/support/raw.ts'
import { owners } from '../../testing/support/rows.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { events, INFO, json, type Answering } from '../../testing/support/upstream.ts'

/** So few that a test gets to the end of them: two in two hours. */
const TWO = '1/h'

const limited = (
  t: Test,
  pair: Pair,
  limits: object,
  more: GatedOptions = {},
  answering: Answering = events(),
): Promise<GatedUpstream> => gated(t, answering, { pair, ...more, config: { ...more.config, limits } })

const run = ({ base, call, alice }: GatedUpstream, threadId: string, token = alice): Promise<Reply> =>
  call(`${base}/agent/default/run`, { token, body: runInput(threadId) })

/** Statuses of one after the other. */
async function inTurn(asks: readonly (() => Promise<Reply>)[]): Promise<readonly number[]> {
  const statuses: number[] = []
  for (const one of asks) statuses.push((await one()).status)
  return statuses
}

void testEachPair('a user begins 120 threads within two minutes by default, and no more', async (t, pair) => {
  const gate = await limited(t, pair, { newThreads: undefined })
  const { gateway, call, base, alice, bob, signer, upstream } = gate
  const first = await inTurn(Array.from({ length: 120 }, (_, at) => () => run(gate, `t-${at}`)))
  t.equal(first.filter((status) => status === 200).length, 120)
  const before = upstream.beginnings()
  const late = await run(gate, 'one-more')
  t.match([late.status, codeOf(late)], [429, 'rate-limited'])
  const wait = Number(late.headers.get('retry-after'))
  t.ok(Number.isInteger(wait) && wait >= 1 && wait <= 120, `Retry-After: ${wait}`)
  t.equal(late.headers.get('ratelimit-policy'), '"newThreads";q=120;w=120')
  t.equal(late.headers.get('ratelimit'), `"newThreads";r=0;t=${wait}`)
  t.equal((await run(gate, 'another', signer.sign('alice', { jti: 'new' }))).status, 429, 'another token is no other user')
  t.equal((await call(`${base}/agent/other/run`, { token: alice, body: runInput('x') })).status, 429, 'nor is another agent')
  t.equal(upstream.beginnings(), before, 'nothing of them reached the upstream')
  t.notOk(
    owners(gateway.folder).some((row) => /^(?:one-more|another|x)=/.test(row)),
    'and none was claimed',
  )
  t.equal((await run(gate, 't-0')).status, 200, 'threads that there are go on')
  t.not((await call(`${base}/info`, { token: alice })).status, 429, 'and so does everything else')
  t.equal((await run(gate, 'of-bob', bob)).status, 200, 'and everybody else')
})

void test('many at once get no more than one after the other', async (t) => {
  const gate = await limited(t, MULTI_ROUTE, { newThreads: TWO })
  const replies = await Promise.all(Array.from({ length: 40 }, (_, at) => run(gate, `t-${at}`)))
  t.equal(replies.filter(({ status }) => status === 200).length, 2)
  t.equal(gate.upstream.beginnings(), 2)
})

void test('what begins a thread counts, whatever became of it, and nothing else does', async (t) => {
  const spends = async (name: string, counts: boolean, act: (gate: GatedUpstream) => Promise<unknown>): Promise<void> => {
    const gate = await limited(t, MULTI_ROUTE, { newThreads: TWO })
    await run(gate, 'mine')
    await act(gate)
    gate.upstream.answer(events())
    t.equal((await run(gate, 'last')).status, counts ? 429 : 200, name)
    await gate.gateway.stop(0)
  }
  const post = ({ base, call, alice }: GatedUpstream, path: string, threadId: string): Promise<Reply> =>
    call(`${base}/agent/default/${path}`, { token: alice, body: runInput(threadId) })
  await spends('a suggestion on an unknown thread', true, (gate) => post(gate, 'suggest', 'unknown'))
  await spends('a run that the upstream refuses', true, (gate) => {
    gate.upstream.answer(json({}, 400))
    return run(gate, 'refused')
  })
  await spends('a thread of old that was deleted', true, async (gate) => {
    gate.upstream.answer(json({}))
    await gate.call(`${gate.base}/threads/mine`, { method: 'DELETE', token: gate.alice })
    return run(gate, 'mine')
  })
  await spends('runs on a thread of their own', false, (gate) => inTurn([() => run(gate, 'mine'), () => run(gate, 'mine')]))
  await spends('a suggestion on a thread of their own', false, (gate) => post(gate, 'suggest', 'mine'))
  await spends('a connect with an unknown thread', false, (gate) => post(gate, 'connect', 'unknown'))
  await spends("a run on somebody else's", false, async (gate) => {
    await run(gate, 'of-bob', gate.bob)
    return run(gate, 'of-bob')
  })
})

void test('under verify a thread counts before the upstream is asked about it', async (t) => {
  const gate = await limited(
    t,
    MULTI_ROUTE,
    { newThreads: TWO },
    { config: { ownership: { unknownThread: 'verify' } } },
    (request, response) => (request.method === 'GET' ? json({ messages: [], events: [] }) : events())(request, response),
  )
  t.same(await inTurn([() => run(gate, 'a'), () => run(gate, 'b')]), [200, 200], 'each counts once')
  const before = gate.upstream.beginnings()
  t.equal((await run(gate, 'c')).status, 429)
  t.equal(gate.upstream.beginnings(), before)
})

void test('under observe it counts as well, and where no rule speaks of unknown threads', async (t) => {
  const policy = ruled([{ routes: ['agent/run'], allow: ['signed-in'], threads: ['own'] }])
  for (const more of [{}, { policy }]) {
    const gate = await limited(t, MULTI_ROUTE, { newThreads: TWO }, { ...more, config: { enforcement: 'observe' } })
    t.same(await inTurn(['a', 'b', 'c'].map((id) => () => run(gate, id))), [200, 200, 429])
  }
})

void test('runs count on threads of every kind', async (t) => {
  const gate = await limited(t, MULTI_ROUTE, { runs: TWO })
  t.same(await inTurn([() => run(gate, 'a'), () => run(gate, 'a'), () => run(gate, 'a')]), [200, 200, 429])
  t.equal((await gate.call(`${gate.base}/agent/default/connect`, { token: gate.alice, body: runInput('a') })).status, 200)
})

void test('requests count whatever becomes of them, once somebody has signed in, and before a body is asked for', async (t) => {
  const gate = await limited(t, MULTI_ROUTE, { requests: '2/h' })
  const { base, call, alice, bob, gateway } = gate
  t.same(
    await inTurn([
      () => call(`${base}/nowhere`, { token: alice }),
      () => call(`${base}/threads/clear`, { method: 'POST', token: alice }),
      () => call(`${base}/info`, { method: 'DELETE', token: alice }),
      () => call(`${base}/info`, { token: 'nonsense' }),
      () => call(`${base}/info`),
      () => call(`${base}/info`, { token: alice }),
    ]),
    [404, 403, 405, 401, 401, 200],
  )
  const connection = await openRaw(gateway.url)
  t.teardown(() => connection.destroy())
  const lines = ['Host: a', `Authorization: Bearer ${alice}`, 'Content-Type: application/json', 'Content-Length: 1000']
  connection.write(head('POST /api/copilotkit/agent/default/run HTTP/1.1', ...lines))
  t.match(await connection.until('rate-limited'), /^HTTP\/1\.1 429 /, 'nobody waits for the body')
  t.equal((await call(`${base}/nowhere`, { token: alice })).status, 429)
  t.equal((await call(`${base}/nowhere`, { token: bob })).status, 404)
})

const ANONYMOUS_CHAT = ruled([{ routes: ['agent/run'], allow: ['anonymous', 'signed-in'], threads: ['own', 'unknown'] }])

/** Where callers need no token, and may chat. */
function optional(t: Test): GatedOptions {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  return { signer, config: { authentication: { ...signer.authentication, mode: 'optional' } }, policy: ANONYMOUS_CHAT }
}

/** Statuses of runs by callers without a token, each with this X-Forwarded-For, on threads of their own. */
const from = ({ gateway }: GatedUpstream, ...addresses: readonly string[]): Promise<readonly number[]> =>
  Promise.all(
    addresses.map(async (address) => {
      const answer = await gateway.ask({
        target: '/api/copilotkit/agent/default/run',
        body: JSON.stringify(runInput(crypto.randomUUID())),
        lines: [`X-Forwarded-For: ${address}`],
      })
      return answer.status
    }),
  )

const passed = (statuses: readonly number[]): number => statuses.filter((status) => status === 200).length

void test('callers who are not signed in are counted by address, as trusted proxies tell it', async (t) => {
  for (const mode of ['optional', 'off']) {
    const signer = makeSigner()
    t.teardown(() => signer.remove())
    const gate = await limited(
      t,
      MULTI_ROUTE,
      { newThreads: TWO },
      {
        config: {
          listen: { host: '127.0.0.1', port: 0, trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] },
          authentication: { ...signer.authentication, mode },
        },
        policy: ANONYMOUS_CHAT,
        signer,
      },
    )
    t.equal(passed(await from(gate, '192.0.2.1', '192.0.2.1', '192.0.2.1')), 2, mode)
    t.equal(passed(await from(gate, '192.0.2.2')), 1, 'another address')
    t.equal(passed(await from(gate, '192.0.2.9, 192.0.2.1', '8.8.8.8, 192.0.2.1, 10.0.0.1')), 0, 'what a caller writes before it')
    t.equal(passed(await from(gate, '192.0.2.1:1000', '192.0.2.1:1001', '::ffff:192.0.2.1')), 0, 'a port, or another form')
    const forms = ['2001:db8::1', '2001:DB8:0:0::2', '2001:0db8:0000:0000:ffff::1', '[2001:db8::3]:99', '2001:db8:0:0:1:2:3:4']
    t.equal(passed(await from(gate, ...forms)), 2, 'one network of IPv6, in whatever form')
    t.equal(passed(await from(gate, '2001:db8:0:1::1')), 1, 'the next network')
    await gate.gateway.stop(0)
  }
})

void test('an address that nobody vouches for changes nothing', async (t) => {
  const gate = await limited(t, MULTI_ROUTE, { newThreads: TWO }, optional(t))
  t.equal(passed(await from(gate, '192.0.2.1', '192.0.2.2', '192.0.2.3', '2001:db8::1')), 2)
})

void test('nobody takes from a signed-in user by writing their id, nor they from an address', async (t) => {
  const gate = await limited(t, MULTI_ROUTE, { newThreads: TWO }, optional(t))
  t.equal(passed(await from(gate, 'corp:alice', 'corp:alice', 'corp:alice')), 2)
  t.equal((await run(gate, 'a')).status, 200)
})

void test("a rule's limits stand in place of the configuration's; its requests are counted beside them", async (t) => {
  const policy = ruled([
    { routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'], agents: ['free'], limits: { newThreads: 'off' } },
    { routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'], agents: ['dear'], limits: { runs: '2/h' } },
    { name: 'slow', routes: ['info'], allow: ['signed-in'], limits: { requests: TWO } },
    { routes: ['threads/messages'], allow: ['signed-in'], threads: ['own'] },
  ])
  const gate = await limited(t, MULTI_ROUTE, { newThreads: '3/h', runs: '100/h', requests: '100/h' }, { policy })
  const { base, call, alice, bob } = gate
  const on = (agent: string, id: string) => () => call(`${base}/agent/${agent}/run`, { token: alice, body: runInput(id) })
  t.same(await inTurn(Array.from({ length: 8 }, (_, at) => on('free', `f-${at}`))), Array(8).fill(200), 'off')
  t.same(await inTurn(Array.from({ length: 5 }, (_, at) => on('dear', `d-${at}`))), [200, 200, 200, 200, 429], 'fewer runs')
  gate.upstream.answer(json(INFO))
  const info = () => call(`${base}/info`, { token: alice })
  t.same(await inTurn([info, info, info]), [200, 200, 429])
  t.equal((await call(`${base}/info`, { token: bob })).status, 200)
  t.equal(
    (await call(`${base}/threads/f-0/messages`, { token: alice })).status,
    200,
    'of the other rules there is as much as before',
  )
})

void test('a change of the configuration that leaves a limit as it is gives nobody a new one', async (t) => {
  const gate = await limited(t, MULTI_ROUTE, { newThreads: TWO })
  const { gateway } = gate
  await run(gate, 'a')
  const change = async (limits: object): Promise<void> => {
    const config = JSON.parse(readFileSync(gateway.file, 'utf8')) as object
    writeFileSync(gateway.file, JSON.stringify({ ...config, limits: { newThreads: TWO, ...limits } }))
    t.equal((await gateway.reload('test')).outcome, 'reloaded')
  }
  await change({ runs: '100/h' })
  t.equal((await run(gate, 'b')).status, 200)
  await change({ runs: '200/h' })
  t.equal((await run(gate, 'c')).status, 429)
  await change({ newThreads: '5/h' })
  t.equal((await run(gate, 'c')).status, 200, 'another limit counts from nothing')
})

type Act = (gate: GatedUpstream, threadId: string, token: string) => Promise<Reply>

const COUNTED: Readonly<Record<string, Act>> = {
  requests: ({ call, base }, _threadId, token) => call(`${base}/info`, { token }),
  runs: run,
  newThreads: run,
}

for (const [limit, act] of Object.entries(COUNTED)) {
  void test(`limits.${limit} per claim counts the users of a tenant together, and of no other`, async (t) => {
    const answering: Answering = (request, response) => (request.method === 'GET' ? json(INFO) : events())(request, response)
    const gate = await limited(t, MULTI_ROUTE, { requests: 'off', [limit]: { rate: TWO, per: '/tenant' } }, {}, answering)
    const asks = (name: string, claims: Record<string, unknown> = {}): Promise<Reply> =>
      act(gate, `of-${name}`, gate.signer.sign(name, claims))
    const acme = { tenant: 'acme' }
    t.same(await inTurn(['alice', 'bob', 'carol'].map((name) => () => asks(name, acme))), [200, 200, 429])
    t.equal((await asks('dan', { tenant: 'other' })).status, 200, 'another tenant')
    t.equal((await asks('eve')).status, 200, 'nobody without a tenant')
  })
}
