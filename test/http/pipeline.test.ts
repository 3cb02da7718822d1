/** The gate by itself, where its parts fail or a thread changes hands under it: no answer of theirs may open it. */
import { test } from 'tap'
import { refuse } from '../../src/core/reasons.ts'
import type { Authenticate } from '../../src/auth/authenticate.ts'
import type { StandingFacts } from '../../src/core/decide/decide.ts'
import { assumedFacts } from '../../src/core/route/transport.ts'
import type { Answer } from '../../src/http/pipeline/answer.ts'
import { makeAuthentication } from '../../src/http/pipeline/authentication.ts'
import { makeAuthorization, makeOwnerRecords } from '../../src/http/pipeline/authorization.ts'
import { makeClaiming, type ClaimParts } from '../../src/http/pipeline/claim.ts'
import { beginExchange } from '../../src/http/pipeline/exchange.ts'
import { makePipeline } from '../../src/http/pipeline/pipeline.ts'
import { makeReadBody } from '../../src/http/pipeline/payload.ts'
import { makeBudget, type SharedBudget } from '../../src/http/pipeline/request-body.ts'
import { makeMemoryLimiter } from '../../src/limits/memory.ts'
import { makeMetrics, type RequestMetrics } from '../../src/observe/metrics.ts'
import type { AccessStore, ThreadAccess } from '../../src/store/port/access.ts'
import { StoreUnavailable } from '../../src/store/port/state.ts'
import { incoming, outgoing } from '../../testing/fuzz/message.ts'
import { user } from '../../testing/support/callers.ts'
import { compiled, SHIPPED } from '../../testing/support/policies.ts'
import { runInput } from '../../testing/support/client.ts'
import { portOf } from '../../testing/support/port.ts'
import { steadySnapshot } from '../../testing/support/requests.ts'
import type { Pipeline, RequestSnapshot, UpstreamBinding } from '../../src/http/pipeline/stages.ts'

const UNHEARD_OF: ThreadAccess = { row: null, runners: [] }

const ALICE = user('alice')

/** What the gate told its parts, in order. */
type Told = (readonly [string, ...unknown[]])[]

/** What differs from a pipeline that lets everything through that the shipped policy allows; the store knows no thread. */
interface Changes {
  readonly authenticate?: Authenticate
  readonly facts?: StandingFacts
  readonly askHistory?: UpstreamBinding['history']['ask']
  readonly snapshot?: Partial<RequestSnapshot>
  readonly clock?: () => number
  readonly scope?: string
  readonly storing?: Partial<AccessStore & ClaimParts['store']>
}

interface Given {
  readonly pipeline: Pipeline
  readonly snapshot: RequestSnapshot
  /** For the bytes of bodies. */
  readonly budget: SharedBudget
}

function given(told: Told, more: Changes = {}): Given {
  const { rules } = compiled(SHIPPED)
  const { clock = () => 0, storing } = more
  const metrics: RequestMetrics = {
    ...makeMetrics().requests,
    claimed: (...what) => void told.push(['claimed', ...what]),
    upstreamFailed: (...what) => void told.push(['upstreamFailed', ...what]),
  }
  const store = portOf<AccessStore & ClaimParts['store']>({
    accessTo: async () => UNHEARD_OF,
    claim: async () => ({ outcome: 'new', registration: 1 }),
    settle: async () => false,
    ...storing,
  })
  const binding: UpstreamBinding = {
    key: '',
    scope: more.scope ?? '',
    sharesScope: false,
    publicPath: '/api',
    api: 'runtime',
    agentId: null,
    facts: more.facts ?? { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' },
    transport: { facts: assumedFacts('multi-route'), suspect: () => {} },
    hasOperation: () => false,
    history: {
      ask: more.askHistory ?? (async () => 'none'),
      verify: async () => null,
      onUntold: () => told.push(['historyUntold']),
    },
    forward: async (_request, onSent) => {
      onSent()
      told.push(['passed'])
      return 'passed'
    },
  }
  const sizes = { body: 10_000, runBody: 10_000 }
  const limits = {
    ...sizes,
    bodyMembers: 10_000,
    requests: 'off',
    runs: 'off',
    newThreads: 'off',
    streams: 'off',
    tokens: [],
  } as const
  const limiter = makeMemoryLimiter()
  const budget = makeBudget(10_000)
  const authentication = makeAuthentication({
    authenticate:
      more.authenticate ?? (async () => ({ outcome: 'authenticated', principal: ALICE, credential: null, sentIn: null })),
    authenticateWithCookies: null,
    isRevoked: () => false,
    requests: 'off',
    limiter,
    onFault: (...what) => told.push(['fault', ...what]),
    clock,
  })
  const runs = { begin: () => () => {}, mayBeExecuting: () => false }
  const pipeline = makePipeline({
    bindings: [binding],
    cors: { origins: [], credentials: false },
    keySet: null,
    rules,
    enforcement: 'enforce',
    authentication,
    readBody: makeReadBody(
      { limits, budget, reading: makeBudget(100_000), onDropped: () => {}, metrics, audit: { interruptContent: false } },
      rules,
    ),
    authorize: makeAuthorization({
      records: makeOwnerRecords(store, 'enforce'),
      claiming: makeClaiming({ store, runs, metrics, clock }),
      invalidity: authentication.invalidity,
      limits,
      limiter,
      metrics,
    }),
    metrics,
    state: { isShuttingDown: false },
  })
  const decided: RequestSnapshot['decided'] = ({ record }, outcome) =>
    told.push(['decided', record.descriptor?.route.id ?? 'none', outcome === 'permitted' ? outcome : outcome.reason])
  return { pipeline, snapshot: steadySnapshot(pipeline, { decided, ...more.snapshot }), budget }
}

/** Sends a run on the thread t1 through a pipeline. */
async function run({ pipeline, snapshot }: Given): Promise<Answer | 'passed'> {
  const body = Buffer.from(JSON.stringify(runInput('t1')))
  const headers = [
    ['Host', 'a'],
    ['Content-Type', 'application/json'],
    ['Content-Length', String(body.length)],
  ] as const
  const target = '/api/agent/default/run'
  const message = incoming({ method: 'POST', target, headers, body })
  const known = { id: 'id-1', startedAt: 0, address: '192.0.2.1', target }
  const exchange = beginExchange(
    message,
    outgoing(message, () => {}),
    known,
    snapshot,
  )
  const classified = await pipeline.admit(message, exchange)
  return 'outcome' in classified ? pipeline.complete(classified, message) : classified
}

void test('an identity source that throws lets nobody in: 500, and the fault is told with its request', async (t) => {
  const told: Told = []
  const fault = new Error('nonsense')
  const answer = await run(given(told, { authenticate: () => Promise.reject(fault) }))
  t.match(answer, { status: 500, body: '"code":"identity-failed"' })
  t.same(told, [
    ['fault', fault, 'id-1'],
    ['decided', 'none', 'identity-failed'],
  ])
})

void test('a store that does not answer is 503; a fault that is no such failure is not taken for one', async (t) => {
  for (const method of ['accessTo', 'claim'] as const) {
    const told: Told = []
    const away = given(told, { storing: { [method]: () => Promise.reject(new StoreUnavailable('away')) } })
    t.match(await run(away), { status: 503, body: '"code":"store-unavailable"' })
    t.same(told, [['decided', 'agent/run', 'store-unavailable']])
    t.ok(away.budget.take(10_000), 'nothing of the body is held any more')

    const fault = new TypeError('a mistake')
    const broken = given([], { storing: { [method]: () => Promise.reject(fault) } })
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
  const answer = await run(given(told, { storing: { claim, accessTo: async () => threadAccess } }))
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
    t.equal(await run(given(told, { storing: { claim: async () => ({ outcome, registration: 1 }) } })), 'passed')
    t.same(told, [...counted, ['decided', 'agent/run', 'permitted'], ['passed']])
  }
})

void test('a thread that is lost and free in turn is given up after a few turns, and nothing passes', async (t) => {
  const told: Told = []
  const claim = async () => ({ outcome: 'foreign' }) as const
  t.match(await run(given(told, { storing: { claim } })), { status: 503, body: '"code":"store-unavailable"' })
  t.same(told, [...Array<unknown>(8).fill(['claimed', 'lost-race']), ['decided', 'agent/run', 'store-unavailable']])
})

void test('what newer rules no longer allow is refused before anything is claimed, written or sent', async (t) => {
  const told: Told = []
  const replaced = given(told, { snapshot: { isReplaced: () => true, successor: () => refuse('rules-changed') } })
  t.match(await run(replaced), { status: 403, body: '"code":"not-allowed"' })
  t.same(told, [['decided', 'agent/run', 'rules-changed']])
  t.ok(replaced.budget.take(10_000))
})

void test('a claim is made for the caller, with the agent and the time of the run', async (t) => {
  const claims: unknown[] = []
  const claim = async (...what: unknown[]) => {
    claims.push(what)
    return { outcome: 'new', registration: 1 } as const
  }
  await run(given([], { scope: 'one', clock: () => 1234, storing: { claim } }))
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
  t.equal(await run(given([], { clock: () => 1234, storing: { claim, accessTo: threadAccess } })), 'passed')
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
  t.match(await run(given(told, { storing: { claim, accessTo: threadAccess } })), { status: 403, body: '"code":"not-owner"' })
  t.same(told, [
    ['claimed', 'lost-race'],
    ['decided', 'agent/run', 'thread-foreign'],
  ])
})

void test('verify: an upstream that gives no answer is a refusal, and counted as its failure', async (t) => {
  const told: Told = []
  const facts = { userScoped: false, unknownThread: 'verify', enforcement: 'enforce' } as const
  const answer = await run(given(told, { facts, askHistory: async () => refuse('upstream-timeout') }))
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
    const answer = await run(given(told, { facts, askHistory }))
    t.equal(answer === 'passed' ? answer : answer.status, status, history)
    t.same(told, expected, history)
    t.equal(asked, 1)
  }
})
