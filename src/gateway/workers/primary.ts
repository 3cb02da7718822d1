/** A gateway of several processes on one port: this one manages workers, limits, audit and reloads, and serves no requests. */
import { randomUUID } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { urlOf, type Surroundings } from '../assembly.ts'
import { storeOf } from '../../config/store-place.ts'
import type { Config } from '../../config/schema.ts'
import type { Gateway } from '../start.ts'
import { makeAdminCredentials, type AdminCredentials } from '../../http/admin/credentials.ts'
import { makeAdminApp } from '../../http/admin/admin.ts'
import { makeHealthApp } from '../../http/listeners/health.ts'
import { listenOn } from '../../http/listeners/listening.ts'
import { makeReadiness } from '../../http/listeners/readiness.ts'
import { measuredStore } from '../measured-store.ts'
import { makeInspection } from '../inspection.ts'
import { announce, sayLostStore, watchCertificates, watchClaims } from '../operator-notices.ts'
import { openAuditSink } from '../../audit/sinks.ts'
import type { Logger } from '../../observe/log.ts'
import { makeMetrics } from '../../observe/metrics.ts'
import { openLimiter } from '../../limits/open.ts'
import { openStoreWithPool } from '../../store/open.ts'
import type { HeldFiles } from '../../document/sources.ts'
import type { Prepared } from '../../snapshot/load.ts'
import { makeReload, type Numbered } from '../../snapshot/reload.ts'
import { keepRetention } from '../../store/retention.ts'
import { readMounts } from '../../store/durability.ts'
import { StoreUnavailable } from '../../store/port/state.ts'
import { makeRevocationList } from '../../store/revocations.ts'
import { makeWorkerPool, type WorkerPool } from './pool.ts'
import { lend } from './limiter.ts'
import { joinMetrics, joinReadiness } from './joined.ts'

interface ActiveConfiguration extends Numbered {
  readonly files: HeldFiles
  readonly adminCredentials: AdminCredentials | null
}

export function workersOf({ workers }: Pick<Config, 'workers'>): number {
  return workers === 'auto' ? availableParallelism() : workers
}

type Closing = (() => unknown)[]

/** @throws StoreUnavailable, or Error with the reason of the first worker that can't start; nothing is left open then */
export async function startWorkers(prepared: Prepared, log: Logger, surroundings: Surroundings = {}): Promise<Gateway> {
  const closing: Closing = []
  const close = async (): Promise<void> => {
    for (const one of closing.splice(0).reverse()) await one()
  }
  try {
    return await start(prepared, log, surroundings, closing, close)
  } catch (error) {
    await close()
    throw error
  }
}

async function start(
  prepared: Prepared,
  log: Logger,
  surroundings: Surroundings,
  closing: Closing,
  close: () => Promise<void>,
): Promise<Gateway> {
  const { config } = prepared
  const clock = Date.now
  const figures = makeMetrics()
  const own = makeReadiness(figures.readiness.condition)
  const readiness = joinReadiness(own, () => workerPool.conditions())
  const metrics = joinMetrics(figures, () => workerPool.figures())

  const { store: unmeasured, pool } = await openStoreWithPool(config.ownership, { log })
  const store = measuredStore(unmeasured, storeOf(config.ownership).kind, metrics.store)
  closing.push(() => store.close())
  sayLostStore(storeOf(config.ownership), surroundings.machine?.mounts ?? readMounts(), log)
  const revocations = await makeRevocationList(store)
  closing.push(() => revocations.stop())
  const audit = openAuditSink(config.audit, { log, metrics: metrics.audit, note: (text) => own.note('audit', text) })
  closing.push(() => audit?.stop())
  // With a database, workers count there: of this limiter, only the admin API asks what was spent.
  const limiter = openLimiter(config.ownership, pool, log)
  closing.push(() => limiter.stop())

  const size = workersOf(config)
  let current = withCredentials(prepared, 1, log)
  let stopping = false
  const workerPool: WorkerPool = makeWorkerPool({
    size,
    port: config.listen.port,
    beginning: () => ({
      prepared: current.prepared,
      files: current.files,
      number: current.number,
      logForm: surroundings.logForm ?? 'json',
    }),
    lend: () => lend(limiter),
    onAudit({ text, lost }) {
      for (const line of text.split('\n').slice(0, -1)) audit?.write(`${line}\n`)
      if (lost > 0) audit?.lost(lost)
    },
    onGone: (gone) => metrics.keep(gone),
    onChange: (serving) => {
      if (!stopping) sayWorkers(own, serving, size)
    },
    log,
  })
  closing.push(() => workerPool.end())
  sayWorkers(own, 0, size)

  const { reload, settled, last } = makeReload<ActiveConfiguration>({
    isStopping: () => stopping,
    prepare: surroundings.prepare ?? (() => ({ ok: true, value: prepared })),
    current: () => current,
    async make(next) {
      const made = withCredentials(next, current.number + 1, log)
      try {
        await workerPool.ask('prepare', made.prepared)
      } catch (error) {
        await workerPool.ask('discard', null)
        throw error
      }
      return made
    },
    async put(next) {
      // Workers that are ending activate nothing.
      if (stopping) {
        await workerPool.ask('discard', null)
        throw new Error('the gateway is shutting down')
      }
      current = next
      await workerPool.order('activate', null)
      log.level = next.prepared.config.log.level
      await announce(next.prepared, { store, readiness: own, metrics, log })
    },
    readiness: own,
    metrics: metrics.configuration,
    log,
    clock,
  })
  // A starting worker gets the active configuration: nothing else may be activated meanwhile.
  const reloadAll: Gateway['reload'] = (cause) => workerPool.exclusively(() => reload(cause))

  await announce(prepared, { store, readiness: own, metrics, log })
  const url = await workerPool.start()
  closing.push(keepRetention({ store, deleted: () => current.prepared.config.ownership.retention.deleted, clock, log }), settled)
  closing.push(watchCertificates(() => current.prepared.certificates, clock, log))
  closing.push(watchClaims(store, metrics.store))
  const configuration = (): string => current.prepared.digest
  const health = makeHealthApp({ readiness, store, metrics, isStarted: () => started, configuration })
  let started = false
  closing.push(() => health.close())
  await listenOn(health, config.health.host, config.health.port)
  let adminUrl: string | null = null
  if (config.admin !== undefined) {
    const admin = makeAdminApp({
      store,
      revocations: {
        current: () => revocations.current(),
        async reload() {
          await revocations.reload()
          // An order is done when all workers apply it.
          await workerPool.ask('revocations', null).catch((error: unknown) => {
            throw new StoreUnavailable(error instanceof Error ? error.message : String(error))
          })
        },
      },
      credentials: { credentials: () => current.adminCredentials?.credentials() ?? [] },
      console: config.admin.console ?? null,
      issuers: () => Object.keys(current.prepared.config.authentication.issuers),
      reload: () => reloadAll('admin'),
      inspection: makeInspection({
        activities: async (part) => (await workerPool.ask('activity', part)).filter((one) => one !== null),
        endStream: async (requestId) => (await workerPool.ask('endStream', requestId)).includes(true),
        current: () => current,
        readiness,
        lastReload: last,
        store,
        counters: limiter,
        workers: size,
        clock,
      }),
      log,
      clock,
      requestId: randomUUID,
    })
    closing.push(() => admin.close())
    await listenOn(admin, config.admin.host, config.admin.port)
    adminUrl = urlOf(admin)
  }
  started = true

  return {
    url,
    healthUrl: urlOf(health),
    adminUrl,
    readiness,
    config: () => current.prepared.config,
    reload: reloadAll,
    reopenAudit: () => audit?.reopen(),
    answers: () => workerPool.answers(),
    // A worker that ended meanwhile attempts it when it has been started again.
    async keysAttempted() {
      await workerPool.ask('keysAttempted', null).catch(() => undefined)
    },
    async stop(deadline, served) {
      own.set('shutting-down', 'the gateway is shutting down')
      const stopped = workerPool.stop(deadline)
      await served
      stopping = true
      await workerPool.ask('served', null)
      await stopped
      await close()
    },
  }
}

function withCredentials({ sources, ...prepared }: Prepared, number: number, log: Logger): ActiveConfiguration {
  const { admin } = prepared.config
  const adminCredentials =
    admin === undefined ? null : makeAdminCredentials(admin, sources, (detail) => log.error({ detail }, 'the admin credential'))
  const files = sources.held
  sources.release()
  return { prepared, files, number, adminCredentials }
}

/** The remaining workers serve on; a gateway without any is not ready. */
function sayWorkers(readiness: ReturnType<typeof makeReadiness>, serving: number, size: number): void {
  readiness.set('workers', serving === 0 ? 'no worker is ready yet' : null)
  readiness.note('workers', serving === size ? null : `${serving} of ${size} workers are ready: the others are starting`)
}
