/**
 * The real gate and the real forwarder between two ends that are played: a caller who is signed in already, and an
 * upstream connection that keeps what it is told to send. Whose a thread is stands in its id.
 */
import { Readable } from 'node:stream'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import type { OwnerRecord } from '../../src/core/decide/decide.ts'
import { refuse, type Reason } from '../../src/core/reasons.ts'
import { ROUTE_IDS } from '../../src/core/route/all-routes.ts'
import { assumedFacts, type Transport } from '../../src/core/route/transport.ts'
import { makeCursorSeal } from '../../src/http/lists/cursor.ts'
import { makeForwarder, type Forwarder } from '../../src/http/upstream/forward.ts'
import { makeAuthentication } from '../../src/http/pipeline/authentication.ts'
import { makeAuthorization, type OwnerRecords } from '../../src/http/pipeline/authorization.ts'
import { makeClaiming } from '../../src/http/pipeline/claim.ts'
import { beginExchange } from '../../src/http/pipeline/exchange.ts'
import { makeForward } from '../../src/http/pipeline/forwarding.ts'
import { makePipeline } from '../../src/http/pipeline/pipeline.ts'
import { makeReadBody } from '../../src/http/pipeline/payload.ts'
import type { OpenAnswers } from '../../src/http/upstream/open-answers.ts'
import { makeBudget } from '../../src/http/pipeline/request-body.ts'
import { makeRewriter, type RewriterParts } from '../../src/http/lists/rewriter.ts'
import { makeThreadList } from '../../src/http/lists/thread-list.ts'
import type { UpstreamRequest } from '../../src/http/upstream/upstream.ts'
import { makeMemoryLimiter } from '../../src/limits/memory.ts'
import { makeLog } from '../../src/observe/log.ts'
import type { RequestMetrics } from '../../src/observe/metrics.ts'
import type { ClaimStore, OwnerChanges } from '../../src/store/port/claims.ts'
import { upstreamOf } from '../support/port.ts'
import { rule, rulesOf } from '../support/rules-of.ts'
import { bodyBytes, headerPairs, PLACES, type Case, type Place } from './case.ts'
import type { Verdict } from './judge.ts'
import { incoming, outgoing, type Written } from './message.ts'
import { user } from '../support/callers.ts'
import { steadySnapshot } from '../support/requests.ts'
import type { UpstreamBinding } from '../../src/http/pipeline/stages.ts'
import { OPEN_BODIES } from '../support/open-bodies.ts'

/** What the gateway made of a request. */
export interface Outcome {
  /** Why it refused; `permitted` where it did not. */
  readonly reason: Reason | 'permitted'
  /** What it decided on, where it sent something or answered itself; with the thread that the body names. */
  readonly descriptor: RouteDescriptor | undefined
  /** What it sent, as it would stand on the wire. */
  readonly sent: readonly Written[]
}

/** Threads of these are somebody else's, and nobody's; any other thread is the caller's. */
export const FOREIGN = 'victim'
export const UNKNOWN = 'new'

/** What is wrong with a thread that was reached. */
export function reachFaults(verdict: Verdict, what: string): readonly string[] {
  const thread = typeof verdict === 'number' ? undefined : verdict.thread
  return typeof thread === 'string' && thread.startsWith(FOREIGN) ? [`${what}: "${thread}" is somebody else's`] : []
}

/** Small, so that the fuzz can afford to exceed them. */
export const LIMITS = {
  body: 262_144,
  runBody: 1_048_576,
  bodyMembers: 10_000,
  requests: 'off',
  runs: 'off',
  newThreads: 'off',
  streams: 'off',
  tokens: [],
} as const

export const LISTED_ORIGIN = 'https://app.example'

const ALICE = user('alice')

/** Everything is open to whoever is signed in: what is refused is refused for what it says. */
const OPEN = rule({
  threads: ['own', 'unknown'],
  passes: { ...OPEN_BODIES, forwardedProps: new Set(['tenant']), headers: null, interrupts: 'pass' },
})
const RULES = rulesOf(Object.fromEntries(ROUTE_IDS.map((id) => [id, [OPEN]])))

const NO_TABLE: RewriterParts['tableList'] = {
  page: () => Promise.reject(new Error('nothing comes from the table')),
  goesOn: () => false,
}

/** A list is made of single decisions, and none is fuzzed here. */
const recordsOf = (unknown: string | null): OwnerRecords => {
  const owner = (id: string): OwnerRecord => {
    if (unknown !== null && id.startsWith(unknown)) return null
    return { owner: id.startsWith(FOREIGN) ? 'corp:bob' : ALICE.id, deleted: false }
  }
  return {
    record: async ({ threadId }) => owner(threadId),
    records: async () => ({ get: () => null }),
    recordsOf: async () => null,
  }
}

/** Every claim is good. */
const STORE: ClaimStore & Pick<OwnerChanges, 'beginDeletion'> = {
  claim: async () => ({ outcome: 'own', registration: null }),
  settle: async () => false,
  beginDeletion: async () => null,
  noteWrite: async () => {},
}

/** Nobody looks at what is counted. */
const METRICS = new Proxy({}, { get: () => () => {} }) as RequestMetrics

/**
 * Makes a gateway at a place. It takes one request after the other.
 * @param runtime what the upstream is known to be
 * @param unknown how the ids begin of threads that nobody owns; null for none
 */
export function makeGateUnderTest(
  place: Place,
  runtime: Transport,
  unknown: string | null = UNKNOWN,
): (one: Case) => Promise<Outcome> {
  const records = recordsOf(unknown)
  const { publicPath, basePath } = PLACES[place]
  let sent: Written[] = []
  let descriptor: RouteDescriptor | undefined
  const upstream = upstreamOf(async (request) => {
    sent.push(await onTheWire(request))
    // Whatever the upstream answers is not the question here.
    return { outcome: 'failed', refusal: refuse('upstream-unreachable'), maybeSent: true, detail: 'played' }
  })
  const headerRules = { server: { 'x-server': 'yes' }, forward: ['x-tenant'], forwardAuthorization: true, forwardCookies: [] }
  const log = makeLog('silent')
  const transport = { facts: assumedFacts(runtime), suspect: () => {} }
  const real = makeForwarder({
    upstream,
    basePath,
    headerRules,
    identity: () => ({}),
    transport,
    settlement: { settle: async () => {} },
    answers: {} as OpenAnswers,
    answerRules: { keepAlive: 0, tokenExpiry: 'ignore', grace: 0, sendTimeout: 0 },
    metrics: METRICS,
    log,
  })
  const forwarder: Forwarder = {
    ...real,
    ask: (request, ...rest) => {
      descriptor = request.permit.descriptor
      return real.ask(request, ...rest)
    },
    pass: (request, ...rest) => {
      descriptor = request.permit.descriptor
      return real.pass(request, ...rest)
    },
  }
  const facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' } as const
  const rewriter = makeRewriter({
    rules: RULES,
    facts,
    forwarder,
    list: makeThreadList({
      records,
      scope: '',
      rules: RULES,
      facts,
      forwarder,
      seal: makeCursorSeal(new Uint8Array(32), ''),
    }),
    tableUse: () => 'never',
    tableList: NO_TABLE,
    tableChange: () => Promise.reject(new Error('nothing comes from the table')),
  })
  const binding: UpstreamBinding = {
    key: '',
    scope: '',
    sharesScope: false,
    publicPath,
    api: 'runtime',
    agentId: null,
    facts,
    transport,
    hasOperation: rewriter.hasOperation,
    history: { ask: async () => 'none', verify: async () => null, onUntold: () => {} },
    forward: makeForward({
      forwarder,
      rewriter,
      // What the gateway answers itself goes nowhere.
      grants: async ({ permit }) => {
        descriptor = permit.descriptor
        return { status: 200, headers: {}, body: '' }
      },
      answerMemory: makeBudget(2 ** 30),
      onBridged: () => {},
      checkRun: async () => null,
    }),
  }
  const clock = (): number => 0
  const limiter = makeMemoryLimiter()
  const authentication = makeAuthentication({
    authenticate: async () => ({ outcome: 'authenticated', principal: ALICE, credential: null, sentIn: null }),
    authenticateWithCookies: null,
    isRevoked: () => false,
    requests: LIMITS.requests,
    limiter,
    onFault: (error) => {
      throw error
    },
    clock,
  })
  const budgets = { budget: makeBudget(16 * LIMITS.runBody), reading: makeBudget(2 ** 30) }
  const runs = { begin: () => () => {}, mayBeExecuting: () => false }
  const pipeline = makePipeline({
    bindings: [binding],
    cors: { origins: [LISTED_ORIGIN], credentials: false },
    keySet: null,
    rules: RULES,
    enforcement: facts.enforcement,
    authentication,
    readBody: makeReadBody(
      { limits: LIMITS, ...budgets, onDropped: () => {}, metrics: METRICS, audit: { interruptContent: false } },
      RULES,
    ),
    authorize: makeAuthorization({
      records,
      claiming: makeClaiming({ store: STORE, runs, metrics: METRICS, clock }),
      invalidity: authentication.invalidity,
      limits: LIMITS,
      limiter,
      metrics: METRICS,
    }),
    metrics: METRICS,
    state: { isShuttingDown: false },
  })
  return async (one) => {
    sent = []
    descriptor = undefined
    const { method, target, httpVersion } = one
    const message = incoming({ method, target, httpVersion, headers: headerPairs(one), body: bodyBytes(one) })
    const response = outgoing(message, () => {})
    const known = { id: 'fuzz', startedAt: 0, address: '192.0.2.1', target }
    const exchange = beginExchange(message, response, known, steadySnapshot(pipeline))
    const classified = await pipeline.admit(message, exchange)
    if ('outcome' in classified) await pipeline.complete(classified, message)
    if (sent.length > 0) return { reason: 'permitted', descriptor, sent }
    const { reason } = exchange.record
    if (reason === undefined) throw new Error('the gateway answered without saying why')
    return { reason, descriptor, sent }
  }
}

/** A request to the upstream with what the HTTP client adds to it. */
async function onTheWire({ method, target, headers, body }: UpstreamRequest): Promise<Written> {
  // The client writes a host of its own only where it is given none.
  const lines = Object.entries({ host: 'runtime.internal:4000', ...headers })
  if (body === undefined) return { method, target, headers: lines, body: null }
  if (body instanceof Readable) return { method, target, headers: lines, body: Buffer.concat((await body.toArray()) as Buffer[]) }
  const bytes = Buffer.concat(body)
  return { method, target, headers: [...lines, ['content-length', String(bytes.length)]], body: bytes }
}
