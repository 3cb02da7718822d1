/** The composition root: assembles a gateway from its parts, changes its configuration, stops it. */
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { mountsOf } from '../config/mounts.ts'
import { storeOf } from '../config/store-place.ts'
import type { Config } from '../config/schema.ts'
import { makeDecisionRecorder } from '../audit/recorder.ts'
import { makeSnapshotManager, type SnapshotManager } from '../snapshot/manager.ts'
import { oldSpace } from './v8-old-space.ts'
import { bodyMemory, largestReadable, readingCost, type BodyMemory } from '../http/pipeline/body-memory.ts'
import { makeAdminApp, type ReloadResult } from '../http/admin/admin.ts'
import { makeApp, type FastifyInstance } from '../http/listeners/app.ts'
import { ownAddresses } from '../http/upstream/exposure.ts'
import { makeHealthApp } from '../http/listeners/health.ts'
import { listenOn } from '../http/listeners/listening.ts'
import { makeRunsUnderWay } from '../http/pipeline/runs-under-way.ts'
import { makeOpenAnswers } from '../http/upstream/open-answers.ts'
import { makeReadiness, type Readiness } from '../http/listeners/readiness.ts'
import { makeBudget, type SharedBudget } from '../http/pipeline/request-body.ts'
import { makeCursorSeal } from '../http/lists/cursor.ts'
import { MAX_PAGE_BYTES } from '../http/lists/thread-list.ts'
import type { Upstream } from '../http/upstream/upstream.ts'
import { openLimiter, type OpenLimiter } from '../limits/open.ts'
import { openStoreWithPool } from '../store/open.ts'
import { announce, sayLostStore } from './operator-notices.ts'
import { openAudit, type Audit } from '../audit/sinks.ts'
import type { Logger } from '../observe/log.ts'
import { makeMetrics, type Metrics } from '../observe/metrics.ts'
import type { Outcome } from '../document/document.ts'
import type { Prepared } from '../snapshot/load.ts'
import { makeReload } from '../snapshot/reload.ts'
import { keepRetention } from '../store/retention.ts'
import { readMounts } from '../store/durability.ts'
import type { RevocationList, Store } from '../store/port.ts'
import { makeRevocationList } from '../store/revocations.ts'

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
}

/** What a worker leaves to the primary, which reports to operators, forgets old threads, and changes rules. */
export interface Primary {
  /** Counters of all workers; null where the store's database has them. */
  readonly limiter: OpenLimiter | null
  readonly audit: Audit
  readonly readiness: Readiness
  readonly metrics: Metrics
  /** The number of configurations that were active before. */
  readonly before: number
  /** Bytes of all bodies that this worker may hold. */
  readonly bodiesInFlight: number
}

/** Milliseconds for the last event of a stream to leave, before its connection is cut. */
const LAST_WORDS_MS = 1000

export interface Assembled {
  readonly app: FastifyInstance
  readonly healthApp: FastifyInstance
  readonly running: RunningGateway
  /** Returns the bound address; null where the operator API is off. */
  readonly listenForAdmin: () => Promise<string | null>
  readonly generations: SnapshotManager
  readonly revocations: RevocationList
}

/**
 * Assembles a gateway, and closes everything again if it can't begin.
 * @param runtime a runtime in the same process; null for the configured upstream
 * @param begin starts taking requests
 */
export async function assemble<Begun>(
  prepared: Prepared,
  log: Logger,
  surroundings: Surroundings,
  runtime: Upstream | null,
  begin: (assembled: Assembled) => Promise<Begun>,
): Promise<Begun> {
  const { store, pool } = await openStoreWithPool(prepared.config.ownership, { log })
  const { primary } = surroundings
  const limiter = primary?.limiter ?? openLimiter(prepared.config.ownership, pool, log)
  const metrics = primary?.metrics ?? makeMetrics()
  const readiness = primary?.readiness ?? makeReadiness()
  let audit: Audit | null = primary?.audit ?? null
  try {
    audit ??= openAudit(prepared.config.audit, { log, metrics, note: (text) => readiness.note('audit', text) })
    return await beginOn({ store, limiter, audit, metrics, readiness, log, runtime }, prepared, surroundings, begin)
  } catch (error) {
    await audit?.stop()
    limiter.stop()
    await store.close()
    throw error
  }
}

interface Opened {
  readonly store: Store
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly log: Logger
  readonly runtime: Upstream | null
  readonly audit: Audit
  readonly limiter: OpenLimiter
}

async function beginOn<Begun>(
  opened: Opened,
  prepared: Prepared,
  surroundings: Surroundings,
  begin: (assembled: Assembled) => Promise<Begun>,
): Promise<Begun> {
  const { store, limiter, audit, metrics, readiness, log, runtime } = opened
  const { config } = prepared
  const { machine = { mounts: readMounts(), addresses: ownAddresses() }, primary } = surroundings
  const clock = Date.now
  if (primary === undefined) sayLostStore(storeOf(config.ownership), machine.mounts, log)
  const answers = makeOpenAnswers(
    clock,
    metrics,
    ({ userId, credential }) => credential !== null && revocations.isRevoked(userId, credential),
  )
  const revocations = await makeRevocationList(store, {
    onChange: () => answers.endRevoked(),
    onFailure: (error) => log.error({ err: error }, 'the revocations could not be read: those that are known stay in force'),
  })
  let stopping = false
  const decisions = makeDecisionRecorder({ metrics, audit, log, clock, current: () => current() })
  const memory = bodyMemory(oldSpace())
  const secret = await store.secret()
  const requests = {
    store,
    sealOf: (upstreamKey: string) => makeCursorSeal(secret, upstreamKey),
    limiter,
    answers,
    runs: makeRunsUnderWay(clock),
    memory: {
      bodies: bodyBudget(Math.min(primary?.bodiesInFlight ?? config.limits.bodiesInFlight, memory.held), config, memory),
      reading: makeBudget(memory.reading, memory.reading / 2),
      answers: answerBudget(memory),
    },
    metrics,
    log,
    clock,
    state: { isRevoked: revocations.isRevoked, isShuttingDown: () => stopping },
  }
  const { addresses } = machine
  const snapshots = makeSnapshotManager(
    prepared,
    { requests, store, readiness, runtime, addresses, before: primary?.before ?? 0 },
    decisions.take,
  )
  const { current } = snapshots

  const endRetention =
    primary === undefined
      ? keepRetention({ store, deleted: () => current().prepared.config.ownership.retention.deleted, clock, log })
      : () => {}
  const { app, leave } = makeApp({
    enter: snapshots.enter,
    upstreamUrl: mountsOf(config)[0].url,
    log,
    onUnreadable: decisions.takeUnreadable,
    maxHeaderSize: config.limits.headers,
    trustedProxies: config.listen.trustedProxies,
    requestId: randomUUID,
  })
  const { reload, settled } = makeReload({
    isStopping: () => stopping,
    prepare: surroundings.prepare ?? (() => ({ ok: true, value: prepared })),
    current,
    make: snapshots.make,
    put: async (next) => {
      await snapshots.activate(next)
      log.level = next.prepared.config.log.level
      await announce(next.prepared, opened)
    },
    readiness,
    metrics,
    log,
  })
  let started = false
  const healthApp = makeHealthApp({ readiness, store, metrics, isStarted: () => started })
  const admin =
    config.admin === undefined
      ? null
      : makeAdminApp({
          store,
          revocations,
          credentials: { credentials: () => current().adminCredentials?.credentials() ?? [] },
          issuers: () => Object.keys(current().prepared.config.authentication.issuers),
          reload: () => reload('admin'),
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
    await Promise.all([app.close(), healthApp.close(), admin?.close()])
    await Promise.all([...current().handles.values()].map(({ upstream }) => upstream.close()))
    await audit.stop()
    limiter.stop()
    await store.close()
  }

  const running: RunningGateway = {
    readiness,
    reload,
    reopenAudit: () => audit.reopen(),
    config: () => current().prepared.config,
    async stop(deadline, served) {
      leave()
      readiness.set('shutting-down', 'the gateway is shutting down')
      const endStreams = setTimeout(() => answers.endAll('The gateway is shutting down.', 'shutting-down'), deadline)
      const cut = setTimeout(() => app.server.closeAllConnections(), deadline + LAST_WORDS_MS)
      await served
      stopping = true
      // Otherwise an idle connection would be kept open for the next request.
      const closeIdle = setInterval(() => app.server.closeIdleConnections(), 50)
      await app.close()
      clearInterval(closeIdle)
      clearTimeout(endStreams)
      clearTimeout(cut)
      await close()
    },
  }
  try {
    if (primary === undefined) await announce(prepared, opened)
    void current().begin()
    const listenForAdmin = async (): Promise<string | null> => {
      if (admin === null || config.admin === undefined) return null
      await listenOn(admin, config.admin.host, config.admin.port)
      return urlOf(admin)
    }
    const begun = await begin({ app, healthApp, running, listenForAdmin, generations: snapshots, revocations })
    started = true
    return begun
  } catch (error) {
    await close()
    throw error
  }
}

export function urlOf({ server }: FastifyInstance): string {
  const { address, family, port } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

/** One caller may have half of the memory for bodies, and at least as much as the largest body. */
function bodyBudget(most: number, { limits }: Config, memory: BodyMemory): SharedBudget {
  return makeBudget(most, Math.max(most / 2, Math.min(limits.runBody, largestReadable(memory.reading))))
}

/** The same for answers; even with little memory, there is room for the largest page of a list. */
function answerBudget({ answers }: BodyMemory): SharedBudget {
  const largest = readingCost(MAX_PAGE_BYTES, 0)
  return makeBudget(Math.max(answers, largest), Math.max(answers / 2, largest))
}
