/** The program of a worker: a gateway on the port that all workers share. The primary starts, directs and ends it. */
import cluster from 'node:cluster'
import { urlOf, assemble, type Assembled } from '../assembly.ts'
import type { ConfigSnapshot } from '../../snapshot/snapshot.ts'
import { listenOn } from '../../http/listeners/listening.ts'
import { makeReadiness } from '../../http/listeners/readiness.ts'
import { connectionsOfWorker } from '../../config/connections.ts'
import { storeOf } from '../../config/store-place.ts'
import { Sources, type HeldFiles } from '../../document/sources.ts'
import { makeLog, sharedStdout, type Logger } from '../../observe/log.ts'
import { makeMetrics } from '../../observe/metrics.ts'
import { loadTracing } from '../../observe/load-tracing.ts'
import type { Tracing } from '../../observe/traces.ts'
import type { Checked, Prepared } from '../../snapshot/load.ts'
import { NO_AUDIT } from '../../audit/sinks.ts'
import { auditLines } from './audit-lines.ts'
import { connectRpc } from './rpc.ts'
import type { Beginning, PrimaryHandlers, WorkerHandlers } from './messages.ts'
import { borrowedLimiter } from './limiter.ts'
import { reportedReadiness } from './joined.ts'

type Serving = Pick<Assembled, 'running' | 'snapshots' | 'revocations' | 'activity' | 'endStream'> & { readonly log: Logger }

// A terminal, or a signal to a process group, reaches all processes; only the primary decides what a worker does.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})

const metrics = makeMetrics()
const serving = Promise.withResolvers<Serving>()
const served = Promise.withResolvers<undefined>()
let next: ConfigSnapshot | null = null
let stopped = false
let tracing: Tracing | null = null

const handlers: WorkerHandlers = {
  figures: () => metrics.figures(),
  activity: async (part) => (await serving.promise).activity(part),
  endStream: async (requestId) => (await serving.promise).endStream(requestId),
  async revocations() {
    const { revocations } = await serving.promise
    // After the stop no request arrives, and the store is closed.
    if (!stopped) await revocations.reload()
  },
  async keysAttempted() {
    await (await serving.promise).snapshots.current().keysAttempted()
  },
  async prepare(prepared) {
    next = await (await serving.promise).snapshots.make(withSources(prepared))
  },
  async activate() {
    if (next === null) throw new Error('there is no prepared configuration to activate')
    const { snapshots, log } = await serving.promise
    await snapshots.activate(next)
    log.level = next.prepared.config.log.level
    next = null
  },
  async discard() {
    if (next !== null) await (await serving.promise).snapshots.discard(next)
    next = null
  },
  async stop(deadline) {
    const { running } = await serving.promise
    await running.stop(deadline, served.promise)
    await tracing?.stop()
    stopped = true
  },
  served: () => served.resolve(undefined),
}

const { call } = connectRpc<PrimaryHandlers>(
  {
    send: (message, failed) => void cluster.worker?.send(message as object, undefined, failed),
    onMessage: (listener) => void process.on('message', listener),
  },
  handlers,
)

/** @throws Error, here or when the snapshot is made, if a file that is not in `files` has changed since the configuration was checked */
function withSources(checked: Checked, files?: HeldFiles): Prepared {
  const store = storeOf(checked.config.ownership)
  // The store itself reads it when it connects.
  if (store.kind === 'postgres' && store.settings.ca !== null) new Sources(checked.hashes).read(store.settings.ca)
  return { ...checked, sources: new Sources(checked.hashes, files) }
}

async function serve({ prepared: checked, files, number, port, worker, workers, logForm }: Beginning): Promise<void> {
  // Shown by `ps`.
  process.title = `threadwarden worker ${worker}`
  const prepared = withSources(checked, files)
  const { config } = prepared
  const { limits } = config
  const log = makeLog(config.log.level, sharedStdout(logForm)).child({ worker })
  const primary = {
    limiter: storeOf(config.ownership).kind === 'postgres' ? null : borrowedLimiter(call),
    audit: config.audit.to === 'off' ? NO_AUDIT : auditLines((lines) => call('audit', lines)),
    readiness: reportedReadiness(
      makeReadiness(metrics.readiness.condition),
      (conditions) => void call('conditions', conditions).catch(() => {}),
    ),
    metrics,
    before: number - 1,
    mostConnections: connectionsOfWorker(config.listen, workers),
    // The largest body has to fit into the worker's share.
    bodiesInFlight: Math.max(limits.bodiesInFlight / workers, limits.runBody, limits.body),
  }
  tracing = await loadTracing(process.env, log)
  await assemble(
    prepared,
    log,
    { primary, tracing },
    null,
    async ({ app, running, snapshots, revocations, activity, endStream }) => {
      await listenOn(app, config.listen.host, port)
      serving.resolve({ running, snapshots, revocations, activity, endStream, log })
      await call('listening', urlOf(app))
    },
  )
}

try {
  await serve(await call('begin', null))
} catch (error) {
  await call('failed', error instanceof Error ? error.message : String(error)).catch(() => {})
  process.exit(1)
}
