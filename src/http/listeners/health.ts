/** The health listener: it reveals no secret and changes nothing. Each probe has its own path (docs/how-to/operate/health-and-readiness.md). */
import { setTimeout as sleep } from 'node:timers/promises'
import fastify, { type FastifyInstance } from 'fastify'
import type { Metrics } from '../../observe/metrics.ts'
import type { StoreState } from '../../store/port/state.ts'
import { boundConnections, OPERATOR_LISTENER, readAllLines } from './listening.ts'
import type { Readiness } from './readiness.ts'
import { singleFlight } from './single-flight.ts'

/** On the answers of /readyz: which configuration is active. */
export const CONFIGURATION_HEADER = 'threadwarden-configuration'

export interface HealthParts {
  readonly readiness: Readiness
  readonly store: Pick<StoreState, 'fault'>
  readonly metrics: Pick<Metrics, 'expose' | 'readiness'>
  readonly isStarted: () => boolean
  /** Identifies the active configuration, for `threadwarden doctor`. It tells no secret. */
  readonly configuration?: () => string
}

/** Probes and scrapers need few connections; the process's other file descriptors are for callers. */
export const MOST_CONNECTIONS = 256

/** How long a scrape waits for the check of the store, in milliseconds: a scraper that waits too long takes the gateway for dead. */
const STORE_MS = 2000

export function makeHealthApp(parts: HealthParts): FastifyInstance {
  const app = fastify({ logger: false, forceCloseConnections: true, ...OPERATOR_LISTENER })
  readAllLines(app.server)
  boundConnections(app.server, MOST_CONNECTIONS)
  // Anyone who reaches this listener can ask, and the same thread serves callers.
  const fault = singleFlight(async () => {
    const found = await parts.store.fault()
    parts.metrics.readiness.condition('store', found !== null)
    return found
  })
  const exposed = singleFlight(async () => {
    await Promise.race([fault(), sleep(STORE_MS, null, { ref: false })])
    return parts.metrics.expose()
  })
  app.get('/livez', () => ({ status: 'alive' }))
  app.get('/startupz', (_request, reply) => {
    const started = parts.isStarted()
    void reply.code(started ? 200 : 503)
    return { status: started ? 'started' : 'starting' }
  })
  app.get('/readyz', async (_request, reply) => {
    const storeFault = await fault()
    const pending = { ...Object.fromEntries(parts.readiness.pending()), ...(storeFault === null ? {} : { store: storeFault }) }
    const ready = Object.keys(pending).length === 0
    void reply.code(ready ? 200 : 503).header('cache-control', 'no-store')
    if (parts.configuration !== undefined) void reply.header(CONFIGURATION_HEADER, parts.configuration())
    const notes = Object.fromEntries(parts.readiness.notes())
    return { status: ready ? 'ready' : 'pending', pending, ...(Object.keys(notes).length === 0 ? {} : { notes }) }
  })
  app.get('/metrics', async (_request, reply) => {
    const { type, text } = await exposed()
    return reply.type(type).send(text)
  })
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ error: 'Not found.', message: 'Not found.', code: 'not-found' }),
  )
  return app
}
