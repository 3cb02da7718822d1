/** The composition root: opens the parts of a gateway, connects them, starts it, and closes everything again. */
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { mostConnections } from '../config/connections.ts'
import { mountsOf } from '../config/mounts.ts'
import { storeOf } from '../config/store-place.ts'
import { makeDecisionRecorder } from '../audit/recorder.ts'
import { makeRecentDecisions } from '../audit/recent.ts'
import { activityOf, makeInspection, type Activity } from './inspection.ts'
import { makeSnapshotManager, type SnapshotManager } from '../snapshot/manager.ts'
import { measuredStore } from './measured-store.ts'
import { memoryBudgets } from './memory-budgets.ts'
import { makeCursorSeal } from '../http/lists/cursor.ts'
import { makeAdminApp, type ReloadResult } from '../http/admin/admin.ts'
import { makeApp, type FastifyInstance } from '../http/listeners/app.ts'
import { ownAddresses } from '../http/upstream/exposure.ts'
import { makeHealthApp } from '../http/listeners/health.ts'
import { listenOn } from '../http/listeners/listening.ts'
import { makeRunsUnderWay } from '../http/pipeline/claim.ts'
import { makeOpenAnswers } from '../http/upstream/open-answers.ts'
import { makeReadiness, type Readiness } from '../http/listeners/readiness.ts'
import type { Upstream } from '../http/upstream/upstream.ts'
import { openLimiter, type OpenLimiter } from '../limits/open.ts'
import { openStoreWithPool } from '../store/open.ts'
import { announce, sayLostStore, watchCertificates, watchClaims } from './operator-notices.ts'
import { openAudit, type Audit } from '../audit/sinks.ts'
import type { Logger, LogForm } from '../observe/log.ts'
import { makeMetrics, type Metrics } from '../observe/metrics.ts'
import type { Tracing } from '../observe/traces.ts'
import type { Prepared } from '../snapshot/load.ts'
import { makeReload } from '../snapshot/reload.ts'
import { keepRetention } from '../store/retention.ts'
import { readMounts } from '../store/durability.ts'
import type { RevocationList } from '../store/port/revocations.ts'
import type { Store } from '../store/port/store.ts'
import { makeRevocationList } from '../store/revocations.ts'
import type { Config } from '../config/schema.ts'
import type { Outcome } from '../document/document.ts'

/** Milliseconds for the last event of a stream to leave, before its connection is cut. */
const LAST_WORDS_MS = 1000

export interface Assembled {
  readonly app: FastifyInstance
  readonly healthApp: FastifyInstance
  readonly running: RunningGateway
  readonly listenForAdmin: () => Promise<string | null>
  readonly snapshots: SnapshotManager
  readonly revocations: RevocationList
  /** Null without an admin API. */
  readonly activity: (part: keyof Activity) => Partial<Activity> | null
  /** True if the request had an open stream. */
  readonly endStream: (requestId: string) => boolean
}

/**
 * Assembles a gateway, and closes everything again if it can't begin.
 * @param runtime in the same process; null for the configured upstream
 */
export async function assemble<Begun>(
  prepared: Prepared,
  log: Logger,
  surroundings: Surroundings,
  runtime: Upstream | null,
  begin: (assembled: Assembled) => Promise<Begun>,
): Promise<Begun> {
  const opened = await open(prepared, log, surroundings.primary)
  let gateway: Composed
  try {
    gateway = await compose(opened, prepared, surroundings, runtime)
  } catch (error) {
    await opened.close()
    throw error
  }
  try {
    if (surroundings.primary === undefined) await announce(prepared, opened)
    void gateway.snapshots.current().begin()
    const begun = await begin(gateway)
    gateway.markStarted()
    return begun
  } catch (error) {
    await gateway.close()
    throw error
  }
}

interface Opened {
  readonly store: Store
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly log: Logger
  readonly audit: Audit
  readonly limiter: OpenLimiter
  readonly close: () => Promise<void>
}

async function open({ config }: Prepared, log: Logger, primary: Primary | undefined): Promise<Opened> {
  const { store: unmeasured, pool } = await openStoreWithPool(config.ownership, { log })
  const limiter = primary?.limiter ?? openLimiter(config.ownership, pool, log)
  const metrics = primary?.metrics ?? makeMetrics()
  const store = measuredStore(unmeasured, storeOf(config.ownership).kind, metrics.store)
  const readiness = primary?.readiness ?? makeReadiness(metrics.readiness.condition)
  const closeStore = async (): Promise<void> => {
    limiter.stop()
    await store.close()
  }
  try {
    const audit =
      primary?.audit ?? openAudit(config.audit, { log, metrics: metrics.audit, note: (text) => readiness.note('audit', text) })
    const close = async (): Promise<void> => {
      await audit.stop()
      await closeStore()
    }
    return { store, limiter, audit, metrics, readiness, log, close }
  } catch (error) {
    await closeStore()
    throw error
  }
}

interface Composed extends Assembled {
  readonly markStarted: () => void
  readonly close: () => Promise<void>
}

async function compose(
  opened: Opened,
  prepared: Prepared,
  surroundings: Surroundings,
  runtime: Upstream | null,
): Promise<Composed> {
  const { store, limiter, audit, metrics, readiness, log } = opened
  const { config } = prepared
  const { machine = { mounts: readMounts(), addresses: ownAddresses() }, primary } = surroundings
  const clock = Date.now
  let isStarted = false
  if (primary === undefined) sayLostStore(storeOf(config.ownership), machine.mounts, log)

  const revocations = await makeRevocationList(store, {
    onChange: () => answers.endRevoked(),
    onFailure: (error) => log.error({ err: error }, 'the revocations cannot be read: the known ones stay active'),
  })
  const answers = makeOpenAnswers(clock, metrics.streams, revocations.isRevoked)
  const state = { isRevoked: revocations.isRevoked, isShuttingDown: false }

  const recent = config.admin === undefined ? null : makeRecentDecisions()
  const decisions = makeDecisionRecorder({ metrics: metrics.requests, audit, recent, log, clock, current: () => current() })
  const secret = await store.secret()
  const requests = {
    store,
    sealOf: (upstreamKey: string) => makeCursorSeal(secret, upstreamKey),
    limiter,
    answers,
    runs: makeRunsUnderWay(clock),
    memory: memoryBudgets({ ...config.limits, ...(primary === undefined ? {} : { bodiesInFlight: primary.bodiesInFlight }) }),
    metrics,
    log,
    clock,
    state,
  }
  metrics.memory.budgets(requests.memory)
  const { addresses } = machine
  const snapshots = makeSnapshotManager(
    prepared,
    { requests, store, readiness, runtime, addresses, before: primary?.before ?? 0, secure: (tls) => secure(tls) },
    decisions.take,
  )
  const { current } = snapshots
  const endRetention =
    primary === undefined
      ? keepRetention({ store, deleted: () => current().prepared.config.ownership.retention.deleted, clock, log })
      : () => {}

  const endCertificates = primary === undefined ? watchCertificates(() => current().prepared.certificates, clock, log) : () => {}

  const endClaims = primary === undefined ? watchClaims(store, metrics.store) : () => {}

  const { reload, settled, last } = makeReload({
    isStopping: () => state.isShuttingDown,
    prepare: surroundings.prepare ?? (() => ({ ok: true, value: prepared })),
    current,
    make: snapshots.make,
    put: async (next) => {
      await snapshots.activate(next)
      log.level = next.prepared.config.log.level
      await announce(next.prepared, opened)
    },
    readiness,
    metrics: metrics.configuration,
    log,
    clock,
  })
  const activity: Assembled['activity'] = (part) => (recent === null ? null : activityOf(part, recent, answers, current()))

  const { app, leave, cut, secure } = makeApp({
    enter: snapshots.enter,
    upstreamUrl: mountsOf(config)[0].url,
    log,
    onUnreadable: decisions.takeUnreadable,
    maxHeaderSize: config.limits.headers,
    trustedProxies: config.listen.trustedProxies,
    requestId: randomUUID,
    // The server in front of hooks is not the gateway's.
    tls: runtime === null ? current().tls : null,
    mostConnections: runtime === null ? (primary?.mostConnections ?? mostConnections(config.listen)) : null,
    tracing: surroundings.tracing ?? null,
    metrics,
  })
  const configuration = (): string => current().prepared.digest
  const healthApp = makeHealthApp({ readiness, store, metrics, isStarted: () => isStarted, configuration })
  const admin =
    config.admin === undefined
      ? null
      : makeAdminApp({
          store,
          revocations,
          credentials: { credentials: () => current().adminCredentials?.credentials() ?? [] },
          console: config.admin.console ?? null,
          issuers: () => Object.keys(current().prepared.config.authentication.issuers),
          reload: () => reload('admin'),
          inspection: makeInspection({
            activities: async (part) => [activity(part)].filter((one) => one !== null),
            endStream: async (requestId) => answers.endStream(requestId),
            current,
            readiness,
            lastReload: last,
            store,
            counters: limiter,
            workers: 1,
            clock,
          }),
          log,
          clock,
          requestId: randomUUID,
        })

  const close = async (): Promise<void> => {
    await settled()
    current().retire(null)
    snapshots.stop()
    revocations.stop()
    endRetention()
    endCertificates()
    endClaims()
    await Promise.all([app.close(), healthApp.close(), admin?.close()])
    await Promise.all([...current().handles.values()].map(({ upstream }) => upstream.close()))
    await opened.close()
  }
  const stop: RunningGateway['stop'] = async (deadline, served) => {
    leave()
    readiness.set('shutting-down', 'the gateway is shutting down')
    const endStreams = setTimeout(() => answers.endAll('The gateway is shutting down.', 'shutting-down'), deadline)
    const late = setTimeout(cut, deadline + LAST_WORDS_MS)
    await served
    state.isShuttingDown = true
    // Otherwise an idle connection would be kept open for the next request.
    const closeIdle = setInterval(() => app.server.closeIdleConnections(), 50)
    await app.close()
    clearInterval(closeIdle)
    clearTimeout(endStreams)
    clearTimeout(late)
    await close()
  }
  return {
    app,
    healthApp,
    snapshots,
    revocations,
    activity,
    endStream: (requestId) => answers.endStream(requestId),
    running: {
      readiness,
      reload,
      reopenAudit: () => audit.reopen(),
      config: () => current().prepared.config,
      stop,
    },
    async listenForAdmin() {
      if (admin === null || config.admin === undefined) return null
      await listenOn(admin, config.admin.host, config.admin.port)
      return urlOf(admin)
    },
    markStarted: () => void (isStarted = true),
    close,
  }
}

export function urlOf({ server }: FastifyInstance): string {
  const { address, family, port } = server.address() as AddressInfo
  return `${server instanceof TlsServer ? 'https' : 'http'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

export interface RunningGateway {
  readonly readiness: Readiness
  reload(cause: string): Promise<ReloadResult>
  /** For log rotation: opens the audit file again by its name. */
  reopenAudit(): void
  config(): Config
  /**
   * Reports the shutdown on /readyz, then accepts no more connections, waits for running requests, and closes everything.
   * @param deadline milliseconds after which open streams are ended with a RUN_ERROR event
   * @param served until this resolves, the gateway serves as before, but closes each connection with its next answer
   */
  stop(deadline: number, served?: Promise<unknown>): Promise<void>
}

export interface Machine {
  readonly mounts: string
  readonly addresses: readonly string[]
}

export interface Surroundings {
  readonly machine?: Machine
  /** Reads the configuration again; by default it never changes. */
  readonly prepare?: () => Outcome<Prepared>
  readonly primary?: Primary
  /** By default, requests are not traced. */
  readonly tracing?: Tracing | null
  /** Of the lines of workers. */
  readonly logForm?: LogForm
}

/** What a worker leaves to the primary, which reports to operators, forgets old threads, and changes rules. */
interface Primary {
  readonly limiter: OpenLimiter | null
  readonly audit: Audit
  readonly readiness: Readiness
  readonly metrics: Metrics
  readonly before: number
  readonly bodiesInFlight: number
  readonly mostConnections: number
}
