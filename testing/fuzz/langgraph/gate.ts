/**
 * The gateway as it is put together for the deployment in `examples/deployments/langgraph`, before a server that a function answers
 * for. The caller is Alice, who is signed in. Whose a thread is, `world.ts` says.
 */
import { prepare } from '../../../src/snapshot/load.ts'
import { mountsOf, type Mount } from '../../../src/config/mounts.ts'
import type { OwnerRecord } from '../../../src/core/decide/decide.ts'
import { isRefusal, type Reason } from '../../../src/core/reasons.ts'
import { COMMANDS } from '../../../src/core/route/langgraph-bodies.ts'
import { RUN_OPTIONS } from '../../../src/core/route/langgraph-routes.ts'
import { ROUTE_IDS } from '../../../src/core/route/all-routes.ts'
import type { RouteDescriptor } from '../../../src/core/route/classify.ts'
import { makeCursorSeal } from '../../../src/http/lists/cursor.ts'
import { makeRunsUnderWay } from '../../../src/http/pipeline/claim.ts'
import type { OwnerRecords } from '../../../src/http/pipeline/authorization.ts'
import type { Pipeline } from '../../../src/http/pipeline/stages.ts'
import { beginExchange } from '../../../src/http/pipeline/exchange.ts'
import { makeIdentity } from '../../../src/http/pipeline/identity.ts'
import { makeBudget } from '../../../src/http/pipeline/request-body.ts'
import { collect } from '../../../src/http/upstream/answer-body.ts'
import type { OpenAnswers } from '../../../src/http/upstream/open-answers.ts'
import type { UpstreamAnswer, UpstreamRequest } from '../../../src/http/upstream/upstream.ts'
import type { Limiter } from '../../../src/limits/port.ts'
import { makeLog } from '../../../src/observe/log.ts'
import { makeMetrics } from '../../../src/observe/metrics.ts'
import { assemblePipeline } from '../../../src/snapshot/assemble-pipeline.ts'
import type { UpstreamHandle } from '../../../src/snapshot/upstream-handle.ts'
import { permissiveStore, recordingHandle } from '../../../src/tools/simulate/recording-upstream.ts'
import { user } from '../../support/callers.ts'
import { deploymentFile } from '../../support/deployment.ts'
import { OPEN_BODIES } from '../../support/open-bodies.ts'
import { upstreamOf } from '../../support/port.ts'
import { steadySnapshot } from '../../support/requests.ts'
import { rule, rulesOf } from '../../support/rules-of.ts'
import { incoming, outgoing, type Written } from '../message.ts'
import type { PolicyName } from './case.ts'
import { FOREIGN, OWN, SHARED } from './world.ts'

/** A request that the gateway sent. */
export interface Sent extends Written {
  /** The gateway's own question before it decides: its answer goes to no caller. */
  readonly isQuestion: boolean
}

export interface Outcome {
  readonly reason: Reason | 'permitted'
  readonly descriptor: RouteDescriptor | null
  /** What the caller got: head and body as text. */
  readonly told: string
}

const ALICE = user('alice')

/** Names that a policy may name, and names that none may: those must be refused whatever it says. */
// oxfmt-ignore
const CONFIGURABLE = [
  'model', 'tenant', 'thread_id', 'thread_ts', 'run_id', 'user_id', 'checkpoint_id', 'checkpoint_ns', 'checkpoint_map', 'graph_id',
  'langgraph_auth_user', 'x-user', '__pregel_store',
]

/** Everything that a rule can open. Traces go to a service of LangChain, which the fuzz must not call. */
const OPEN = rule({
  threads: ['own', 'shared', 'unknown'],
  passes: {
    ...OPEN_BODIES,
    langgraph: {
      options: new Set(RUN_OPTIONS.filter((option) => option !== 'langsmith_tracer')),
      command: new Set(COMMANDS),
      configurable: new Set(CONFIGURABLE),
      input: 'all',
    },
    headers: null,
    interrupts: 'pass',
  },
})

const OWNERS = new Map<string, NonNullable<OwnerRecord>>([
  ...OWN.map((id) => [id, { owner: ALICE.id, deleted: false }] as const),
  ...FOREIGN.map((id) => [id, { owner: 'corp:bob', deleted: false }] as const),
  [SHARED, { owner: 'corp:carol', deleted: false, granted: 'read' }],
])

const ownerOf = (threadId: string): OwnerRecord => OWNERS.get(threadId) ?? null

const RECORDS: OwnerRecords = {
  record: ({ threadId }) => ownerOf(threadId),
  records: async (_scope, ids) => ({ get: (id) => (ids.includes(id) ? ownerOf(id) : null) }),
  // A table may name more threads than the caller may read.
  recordsOf: async () => ({ get: ownerOf, ids: () => [...OWNERS.keys()] }),
}

const UNLIMITED: Limiter = {
  take: async () => null,
  open: async () => () => {},
  reserve: async () => ({ id: '', left: [] }),
  settle: async () => {},
  spending: async () => [],
}

const METRICS = makeMetrics()
const ROOM = makeBudget(Number.MAX_SAFE_INTEGER)

/** Takes one request after the other. */
export type Gate = (written: Written) => Promise<Outcome>

/** @param answer answers for the server */
export function makeGate(answer: (sent: Sent) => Promise<UpstreamAnswer>): (policy: PolicyName) => Gate {
  const environment = {
    LANGGRAPH_URL: 'http://langgraph.internal',
    ISSUER_URL: 'https://issuer.example',
    PAGE_ORIGIN: 'https://app.example',
    ADMIN_CREDENTIAL: 'a'.repeat(40),
  }
  const prepared = prepare(deploymentFile('langgraph'), environment)
  if (!prepared.ok) throw new Error('the deployment of the example has errors')
  const { config, policy } = prepared.value
  const rulesFor = { default: policy.rules, open: rulesOf(Object.fromEntries(ROUTE_IDS.map((id) => [id, [OPEN]]))) }
  const bodies: Promise<string>[] = []
  const answers: OpenAnswers = {
    pass(answerBody, { head }) {
      head(answerBody.whole)
      bodies.push(collect(answerBody, Number.MAX_SAFE_INTEGER).then(String))
      return 'over'
    },
    refusal: () => null,
    count: () => 0,
    endAll: () => {},
    endRevoked: () => {},
    owners: () => [],
    streams: () => [],
    endStream: () => false,
    endOf: () => {},
  }
  const handle = (mount: Mount): UpstreamHandle => ({
    ...recordingHandle(mount, { request: null, dropped: [] }, 'none'),
    upstream: upstreamOf(async (request) => {
      request.mayBegin?.()
      return answer(sentOf(request))
    }),
  })
  const clock = (): number => 0
  const pipelineFor = (name: PolicyName): Pipeline =>
    assemblePipeline(
      {
        config,
        policy: { ...policy, rules: rulesFor[name] },
        authenticate: async () => ({ outcome: 'authenticated', principal: ALICE, credential: null, sentIn: null }),
        authenticateWithCookies: null,
        identity: makeIdentity({}, null, clock),
        records: RECORDS,
        handles: new Map(mountsOf(config).map((mount) => [mount.key, handle(mount)])),
        onDropped: () => {},
      },
      {
        store: {
          ...permissiveStore(null),
          claim: async ({ threadId }) =>
            OWNERS.has(threadId) ? { outcome: 'own', registration: null } : { outcome: 'new', registration: 1 },
        },
        sealOf: (key) => makeCursorSeal(new Uint8Array(32), key),
        limiter: UNLIMITED,
        answers,
        runs: makeRunsUnderWay(clock),
        memory: { bodies: ROOM, reading: ROOM, answers: ROOM },
        metrics: METRICS,
        log: makeLog('silent'),
        clock,
        state: { isRevoked: () => false, isShuttingDown: false },
      },
    )
  return (name) => {
    const pipeline = pipelineFor(name)
    return async (written) => {
      bodies.length = 0
      let head = ''
      const message = incoming(written)
      const response = outgoing(message, () => {})
      Object.assign(response, {
        writeHead(status: number, headers: object) {
          head = `${status} ${JSON.stringify(headers)}\n`
          return response
        },
      })
      const known = { id: 'fuzz', startedAt: 0, address: '192.0.2.1', target: written.target }
      const exchange = beginExchange(message, response, known, steadySnapshot(pipeline))
      const admitted = await pipeline.admit(message, exchange)
      const done = 'outcome' in admitted ? await pipeline.complete(admitted, message) : admitted
      if (done !== 'passed' && !isRefusal(done)) head = `${done.status} ${JSON.stringify(done.headers)}\n${done.body}`
      const told = head + (await Promise.all(bodies)).join('')
      const { reason, descriptor } = exchange.record
      if (reason === undefined) throw new Error('the gateway answered without saying why')
      return { reason, descriptor, told }
    }
  }
}

function sentOf({ method, target, headers, body, mayBegin }: UpstreamRequest): Sent {
  if (body !== undefined && !Array.isArray(body)) throw new Error('no route of the server takes a stream')
  return {
    method,
    target,
    headers: Object.entries(headers),
    body: body === undefined ? null : Buffer.concat(body as readonly Uint8Array[]),
    isQuestion: mayBegin === undefined,
  }
}
