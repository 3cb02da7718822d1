/** Puts the phases of a pipeline together, for one configuration and policy. */
import type { Authenticate } from '../auth/authenticate.ts'
import type { AuthenticateRequest } from '../auth/request-credentials.ts'
import { mountsOf, standingFacts, type Mount } from '../config/mounts.ts'
import type { Config } from '../config/schema.ts'
import type { Credential } from '../core/decide/credential.ts'
import type { RouteDescriptor } from '../core/route/classify.ts'
import type { Transport } from '../core/route/transport.ts'
import { upstreamHeaders } from '../core/wire/headers.ts'
import { tableUse } from '../core/wire/table-lists.ts'
import { sayBridged } from '../gateway/operator-notices.ts'
import { makeGrants, type GrantsParts } from '../http/admin/grants.ts'
import { makeLangGraphRewriter } from '../http/langgraph/rewriter.ts'
import { makeCheckRun } from '../http/langgraph/run-of-thread.ts'
import type { CursorSeal } from '../http/lists/cursor.ts'
import { makeRewriter } from '../http/lists/rewriter.ts'
import { makeTableChange, type TableChangeParts } from '../http/lists/table-changes.ts'
import { makeTableList, type TableListParts } from '../http/lists/table-list.ts'
import { makeThreadList } from '../http/lists/thread-list.ts'
import { makeAuthentication } from '../http/pipeline/authentication.ts'
import type { Rule } from '../core/decide/rules.ts'
import { makeAuthorization, type OwnerRecords } from '../http/pipeline/authorization.ts'
import { makeClaiming, type ClaimParts, type RunsUnderWay } from '../http/pipeline/claim.ts'
import { makeForward } from '../http/pipeline/forwarding.ts'
import { makeVerifyMessages } from '../http/pipeline/claimed-messages.ts'
import { makeAskHistory } from '../http/pipeline/history.ts'
import type { Identity } from '../http/pipeline/identity.ts'
import { makePipeline } from '../http/pipeline/pipeline.ts'
import { makeReadBody, type PayloadParts } from '../http/pipeline/payload.ts'
import type { SharedBudget } from '../http/pipeline/request-body.ts'
import { makeSettlement, type SettlementStore } from '../http/pipeline/settlement.ts'
import { makeForwarder } from '../http/upstream/forward.ts'
import type { OpenAnswers } from '../http/upstream/open-answers.ts'
import type { Limiter } from '../limits/port.ts'
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Policy } from '../policy/compile.ts'
import type { ObservationStore } from '../store/port/observations.ts'
import type { UpstreamHandle } from './upstream-handle.ts'
import type { Addressed, Pipeline, Undecided, UpstreamBinding } from '../http/pipeline/stages.ts'

export type RequestStore = ClaimParts['store'] &
  SettlementStore &
  Pick<ObservationStore, 'observe'> &
  TableListParts['store'] &
  TableChangeParts['store'] &
  GrantsParts['store']

export interface PipelineSurroundings {
  readonly store: RequestStore
  /** Seals the cursors of an upstream's lists. */
  readonly sealOf: (upstreamKey: string) => CursorSeal
  readonly limiter: Limiter
  readonly answers: OpenAnswers
  readonly runs: RunsUnderWay
  readonly memory: RequestMemory
  readonly metrics: Metrics
  readonly log: Logger
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly state: {
    readonly isRevoked: (userId: string, credential: Credential) => boolean
    readonly isShuttingDown: boolean
  }
}

export interface RequestMemory {
  /** For the bytes of all bodies. */
  readonly bodies: SharedBudget
  /** For what reading the bodies takes. */
  readonly reading: SharedBudget
  readonly answers: SharedBudget
}

export interface PipelineSettings {
  readonly config: Config
  readonly policy: Policy
  readonly authenticate: Authenticate
  /** Null where no issuer has a credential cookie. */
  readonly authenticateWithCookies: AuthenticateRequest | null
  readonly identity: Identity
  readonly records: OwnerRecords
  readonly handles: ReadonlyMap<string, UpstreamHandle>
  /** Called with each name in a body that is not forwarded. */
  readonly onDropped: PayloadParts['onDropped']
  /** By default the upstream is asked. */
  readonly makeVerify?: typeof makeVerifyMessages
  readonly makeCheckRun?: typeof makeCheckRun
}

export function assemblePipeline(settings: PipelineSettings, surroundings: PipelineSurroundings): Pipeline {
  const { config, policy } = settings
  const { store, limiter, runs, memory, log, clock, state } = surroundings
  const metrics = surroundings.metrics.requests
  const { limits } = config
  const onBridged = sayBridged(log)
  const [first, ...more] = mountsOf(config).map((mount) => bindUpstream(mount, settings, surroundings, onBridged))
  if (first === undefined) throw new Error('a configuration without any upstream')
  const authentication = makeAuthentication({
    authenticate: settings.authenticate,
    authenticateWithCookies: settings.authenticateWithCookies,
    isRevoked: state.isRevoked,
    requests: limits.requests,
    limiter,
    onFault: (error, requestId) => log.error({ err: error, requestId }, 'the gateway failed'),
    clock,
  })
  return makePipeline({
    bindings: [first, ...more],
    cors: config.cors,
    keySet: settings.identity.keySet,
    rules: policy.rules,
    enforcement: config.enforcement,
    authentication,
    readBody: makeReadBody(
      { limits, budget: memory.bodies, reading: memory.reading, onDropped: settings.onDropped, metrics, audit: config.audit },
      policy.rules,
    ),
    authorize: makeAuthorization({
      records: settings.records,
      claiming: makeClaiming({ store, runs, metrics, clock }),
      invalidity: authentication.invalidity,
      limits,
      limiter,
      metrics,
    }),
    metrics,
    state,
  })
}

function bindUpstream(
  mount: Mount,
  settings: PipelineSettings,
  surroundings: PipelineSurroundings,
  onBridged: (client: Transport) => void,
): UpstreamBinding {
  const { config, policy, records } = settings
  const { store, limiter, log, clock } = surroundings
  const metrics = surroundings.metrics.requests
  const { key, scope, basePath, publicPath, agentId } = mount
  const { upstream, probe, startupChecks, headers } = handleOf(settings.handles, key)
  const { rules } = policy
  const facts = standingFacts(mount, config)
  const observing = config.enforcement === 'observe'
  const named = config.forwardHeaders.map((name) => name.toLowerCase())
  // A client that joins a run of a LangGraph server again says which event it had last.
  const forward = mount.api === 'langgraph' ? [...named, 'last-event-id'] : named
  const { forwardAuthorization, forwardCookies } = mount
  const headerRules = { server: headers, forward, blanks: mount.api === 'langgraph', forwardAuthorization, forwardCookies }
  const identity = settings.identity.headersTo(mount)
  const settlement = makeSettlement(store, scope, clock, metrics, log, observing ? store : null)
  const forwarder = makeForwarder({
    upstream,
    basePath,
    headerRules,
    identity,
    transport: probe,
    settlement,
    answers: surroundings.answers,
    answerRules: { ...config.streams, sendTimeout: config.limits.sendTimeout },
    metrics,
    log,
  })
  const seal = surroundings.sealOf(key)
  const lists = { store, records, scope, rules, facts, forwarder }
  const rewriter =
    mount.api === 'langgraph'
      ? makeLangGraphRewriter({ ...lists, metrics, clock })
      : makeRewriter({
          rules,
          facts,
          forwarder,
          list: makeThreadList({ ...lists, seal }),
          tableList: makeTableList({ ...lists, seal }),
          tableChange: makeTableChange({ store, scope, forwarder, settlement, clock }),
          tableUse: (upstreamIs) => tableUse(mount.lists, config.enforcement, upstreamIs),
        })
  const issuers = Object.keys(config.authentication.issuers)
  const limit = config.limits.grants
  const grants = makeGrants({ store, records, rules, facts, scope, issuers, limiter, limit, log, clock })
  const ask = makeAskHistory(upstream, basePath, () => probe.suspect())
  const verify = (settings.makeVerify ?? makeVerifyMessages)(upstream, basePath)
  const headersFor = ({ exchange: { head }, caller }: Addressed, asked: RouteDescriptor, rule: Rule): Record<string, string> => {
    const own = { ...identity(caller.principal, asked), 'x-request-id': head.id }
    return upstreamHeaders(head.lines, headerRules, own, rule.passes.headers)
  }
  const headersOf = (request: Undecided, rule: Rule): Record<string, string> => headersFor(request, request.body.descriptor, rule)
  const checkRun = (settings.makeCheckRun ?? makeCheckRun)(upstream, basePath)
  return {
    key,
    scope,
    sharesScope: mountsOf(config).some((other) => other.scope === scope && other.key !== key),
    publicPath,
    api: mount.api,
    agentId,
    facts,
    transport: probe,
    hasOperation: rewriter.hasOperation,
    forward: makeForward({
      forwarder,
      rewriter,
      grants,
      checkRun: (request) => checkRun(request, headersFor(request, request.permit.descriptor, request.permit.rule)),
      answerMemory: surroundings.memory.answers,
      onBridged,
    }),
    history: {
      ask: (request, rule, threadId) => ask(request.upstream, threadId, headersOf(request, rule), request.exchange.signal),
      verify(request, rule, threadId, claimed) {
        const budget = surroundings.memory.answers.of(request.caller.key)
        return verify(request.upstream, threadId, claimed, headersOf(request, rule), budget, request.exchange.signal)
      },
      onUntold() {
        if (!observing) startupChecks.historyUntold()
      },
    },
  }
}

function handleOf(handles: ReadonlyMap<string, UpstreamHandle>, key: string): UpstreamHandle {
  const handle = handles.get(key)
  if (handle === undefined) throw new Error('an upstream without a handle')
  return handle
}
