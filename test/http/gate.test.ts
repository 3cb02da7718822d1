/** The gate by itself, where its parts fail or a thread changes hands under it: no answer of theirs may open it. */
import { test } from 'tap'
import { refuse } from '../../src/core/reasons.ts'
import { makeGate, type UpstreamBinding, type GateParts } from '../../src/http/pipeline/gate.ts'
import type { Answer } from '../../src/http/pipeline/answer.ts'
import type { Exchange } from '../../src/http/pipeline/exchange.ts'
import { assumedFacts } from '../../src/core/route/transport.ts'
import { makeOwnerRecords } from '../../src/http/pipeline/owner-records.ts'
import { makeBudget } from '../../src/http/pipeline/request-body.ts'
import { makeMemoryLimiter } from '../../src/limits/memory.ts'
import { StoreUnavailable, UNHEARD_OF, type OwnershipStore, type ThreadAccess } from '../../src/store/port.ts'
import { incoming, outgoing } from '../fuzz/message.ts'
import { user } from '../policy/callers.ts'
import { compiled, SHIPPED } from '../policy/policies.ts'
import { runInput } from '../support/client.ts'
import { STEADY_ACCESS } from '../support/steady-access.ts'

const ALICE = user('alice')

/** What the gate told its parts, in order. */
type Told = (readonly [string, ...unknown[]])[]

/** Parts of a gate that lets everything through that the shipped policy allows; the store knows no thread. */
/** What differs, of the gate or of its one upstream. */
type Changes = Partial<GateParts> & Partial<UpstreamBinding> & { readonly storing?: Partial<OwnershipStore> }

function parts(told: Told, more: Changes = {}): GateParts {
  const { storing, ...rest } = more
  const { rules } = compiled(SHIPPED)
  const metrics = {
    claimed: (...what: unknown[]) => told.push(['claimed', ...what]),
    upstreamFailed: (...what: unknown[]) => told.push(['upstreamFailed', ...what]),
    dropped: () => {},
  } as unknown as GateParts['metrics']
  const store = {
    standing: async () => UNHEARD_OF,
    claim: async () => ({ outcome: 'new', registration: 1 }),
    settle: async () => false,
    ...storing,
  } as unknown as OwnershipStore
  const forwarder = {
    pass: async (_permit: unknown, exchange: Exchange) => {
      exchange.onSent()
      told.push(['passed'])
      return 'passed'
    },
  } as unknown as UpstreamBinding['forwarder']
  const mount: UpstreamBinding = {
    scope: '',
    sharesScope: false,
    publicPath: '/api',
    agentId: null,
    facts: { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' },
    transport: { current: () => assumedFacts('multi-route'), suspect: () => {} },
    identity: { headers: () => ({}) },
    headerRules: { server: {}, forward: [], forwardAuthorization: true },
    forwarder,
    rewriter: { hasOperation: () => false, rewrite: async () => null },
    grants: async () => ({ status: 200, headers: {}, body: '' }),
    askHistory: async () => 'none',
    onHistoryUntold: () => told.push(['historyUntold']),
    key: '',
    access: STEADY_ACCESS,
    successor: () => refuse('rules-changed'),
    ...rest,
  }
  return {
    mounts: [mount],
    cors: { origins: [], credentials: false },
    authenticate: async () => ({ outcome: 'authenticated', principal: ALICE, credential: null }),
    isRevoked: () => false,
    rules,
    enforcement: 'enforce',
    limits: {
      body: 10_000,
      runBody: 10_000,
      bodyMembers: 10_000,
      requests: 'off',
      runs: 'off',
      newThreads: 'off',
      streams: 'off',
    },
    limiter: makeMemoryLimiter(),
    budget: makeBudget(10_000),
    reading: makeBudget(100_000),
    answerMemory: makeBudget(100_000),
    records: makeOwnerRecords(store, false),
    store,
    keySet: null,
    onDecision: ({ route }, outcome) => told.push(['decided', route, outcome === 'permitted' ? outcome : outcome.reason]),
    onBridged: () => told.push(['bridged']),
    onFault: (...what) => told.push(['fault', ...what]),
    onDropped: () => {},
    metrics,
    runs: { begin: () => () => {}, mayBeExecuting: () => false },
    clock: () => 0,
    isShuttingDown: () => false,
    ...rest,
  }
}

/** Sends a run on the thread t1 through a gate. */
async function run(given: GateParts): Promise<Answer | 'passed'> {
  const gate = makeGate(given)
  const body = Buffer.from(JSON.stringify(runInput('t1')))
  const headers = [
    ['Host', 'a'],
    ['Content-Type', 'application/json'],
    ['Content-Length', String(body.length)],
  ] as const
  const message = incoming({ method: 'POST', target: '/api/agent/default/run', headers, body })
  const exchange = gate.open(message, 'id-1', 0, '192.0.2.1')
  const arrived = await gate.arrive(message, '/api/agent/default/run', exchange)
  if (!('outcome' in arrived)) return arrived
  const response = outgoing(message, () => {})
  return gate.proceed(arrived, message, response, exchange)
}

void test('an identity source that throws lets nobody in: 500, and the fault is told with its request', async (t) => {
  const told: Told = []
  const fault = new Error('nonsense')
  const answer = await run(parts(told, { authenticate: () => Promise.reject(fault) }))
  t.match(answer, { status: 500, body: '"code":"identity-failed"' })
  t.same(told, [
    ['fault', fault, 'id-1'],
    ['decided', 'none', 'identity-failed'],
  ])
})

void test('a store that does not answer is 503; a fault that is no such failure is not taken for one', async (t) => {
  for (const method of ['standing', 'claim'] as const) {
    const told: Told = []
    const away = parts(told, { storing: { [method]: () => Promise.reject(new StoreUnavailable('away')) } })
    t.match(await run(away), { status: 503, body: '"code":"store-unavailable"' })
    t.same(told, [['decided', 'agent/run', 'store-unavailable']])
    t.ok(away.budget.take(10_000), 'nothing of the body is held any more')

    const fault = new TypeError('a mistake')
    const broken = parts([], { storing: { [method]: () => Promise.reject(fault) } })
    await t.rejects(run(broken), fault)
    t.ok(broken.budget.take(10_000))
  }
})

void test('a thread that somebody else claims first is theirs, and the lost race is counted', async (t) => {
  const told: Told = []
  let threadAccess: ThreadAccess = UNHEARD_OF
  const claim = async () => {
    threadAccess = { row: { owner: 'corp:bob', deleted: false, provisional: false, granted: null }, runners: [] }
    return { outcome: 'foreign' } as const
  }
  const answer = await run(parts(told, { storing: { claim, standing: async () => threadAccess } }))
  t.match(answer, { status: 403, body: '"code":"not-owner"' })
  t.same(told, [
    ['claimed', 'lost-race'],
    ['decided', 'agent/run', 'thread-foreign'],
  ])
})

void test('a claim of a new thread is counted, another run on it is not', async (t) => {
  for (const [outcome, counted] of [
    ['new', [['claimed', 'new']]],
    ['own', []],
  ] as const) {
    const told: Told = []
    t.equal(await run(parts(told, { storing: { claim: async () => ({ outcome, registration: 1 }) } })), 'passed')
    t.same(told, [...counted, ['decided', 'agent/run', 'permitted'], ['passed']])
  }
})

void test('a thread that is lost and free in turn is given up after a few turns, and nothing passes', async (t) => {
  const told: Told = []
  const claim = async () => ({ outcome: 'foreign' }) as const
  t.match(await run(parts(told, { storing: { claim } })), { status: 503, body: '"code":"store-unavailable"' })
  t.same(told, [...Array<unknown>(8).fill(['claimed', 'lost-race']), ['decided', 'agent/run', 'store-unavailable']])
})

void test('what newer rules no longer allow is refused before anything is claimed, written or sent', async (t) => {
  const told: Told = []
  const access = { ...STEADY_ACCESS, isReplaced: () => true }
  const given = parts(told, { access, successor: () => refuse('rules-changed') })
  t.match(await run(given), { status: 403, body: '"code":"not-allowed"' })
  t.same(told, [['decided', 'agent/run', 'rules-changed']])
  t.ok(given.budget.take(10_000))
})

void test('a claim is made for the caller, with the agent and the time of the run', async (t) => {
  const claims: unknown[] = []
  const claim = async (...what: unknown[]) => {
    claims.push(what)
    return { outcome: 'new', registration: 1 } as const
  }
  await run(parts([], { scope: 'one', clock: () => 1234, storing: { claim } }))
  const claimed = { userId: 'corp:alice', agentId: 'default', guest: false, now: 1234 }
  t.same(claims, [[{ scope: 'one', threadId: 't1' }, claimed]])
})

void test('a run by somebody to whom the thread was granted registers for its owner, and begins nothing', async (t) => {
  const claims: unknown[] = []
  const claim = async (...what: unknown[]) => {
    claims.push(what)
    return { outcome: 'own', registration: null } as const
  }
  const threadAccess = async () =>
    ({ row: { owner: 'corp:bob', deleted: false, provisional: false, granted: 'write' }, runners: [] }) as const
  t.equal(await run(parts([], { clock: () => 1234, storing: { claim, standing: threadAccess } })), 'passed')
  const claimed = { userId: 'corp:bob', agentId: 'default', guest: true, now: 1234 }
  t.same(claims, [[{ scope: '', threadId: 't1' }, claimed]])
})

void test('a grant that ends while the run registers is a lost race, and nothing passes', async (t) => {
  const told: Told = []
  let granted: 'write' | null = 'write'
  const claim = async () => {
    granted = null
    return { outcome: 'foreign' } as const
  }
  const threadAccess = async () => ({ row: { owner: 'corp:bob', deleted: false, provisional: false, granted }, runners: [] })
  t.match(await run(parts(told, { storing: { claim, standing: threadAccess } })), { status: 403, body: '"code":"not-owner"' })
  t.same(told, [
    ['claimed', 'lost-race'],
    ['decided', 'agent/run', 'thread-foreign'],
  ])
})

void test('verify: an upstream that gives no answer is a refusal, and counted as its failure', async (t) => {
  const told: Told = []
  const facts = { userScoped: false, unknownThread: 'verify', enforcement: 'enforce' } as const
  const answer = await run(parts(told, { facts, askHistory: async () => refuse('upstream-timeout') }))
  t.match(answer, { status: 504, body: '"code":"upstream-timeout"' })
  t.same(told, [
    ['upstreamFailed', 'upstream-timeout'],
    ['decided', 'agent/run', 'upstream-timeout'],
  ])
})

void test('verify: what the upstream says of a thread is asked once, and a history that it does not tell is noted', async (t) => {
  const facts = { userScoped: false, unknownThread: 'verify', enforcement: 'enforce' } as const
  for (const [history, status, expected] of [
    ['none', 'passed', [['claimed', 'new'], ['decided', 'agent/run', 'permitted'], ['passed']]],
    ['some', 403, [['decided', 'agent/run', 'thread-has-history']]],
    ['cannot-tell', 403, [['historyUntold'], ['decided', 'agent/run', 'thread-has-history']]],
  ] as const) {
    const told: Told = []
    let asked = 0
    const askHistory = async () => {
      asked += 1
      return history
    }
    const answer = await run(parts(told, { facts, askHistory }))
    t.equal(answer === 'passed' ? answer : answer.status, status, history)
    t.same(told, expected, history)
    t.equal(asked, 1)
  }
})
