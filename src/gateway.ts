/** The composition root: puts the concrete parts of a gateway together, starts and stops it. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { makeAuthenticate } from './auth/authenticate.ts'
import { makeIssuers, type Issuer } from './auth/issuer.ts'
import type { Config } from './config/schema.ts'
import type { Transport } from './core/transport.ts'
import { makeApp } from './http/app.ts'
import { makeClaims } from './http/claims.ts'
import { makeCursorSeal } from './http/cursor.ts'
import { ownAddresses } from './http/exposure.ts'
import { makeForwarder } from './http/forward.ts'
import { makeGate } from './http/gate.ts'
import { makeHealthApp } from './http/health.ts'
import { makeAskHistory } from './http/history.ts'
import { makeOpenStreams } from './http/open-streams.ts'
import { makeReadiness, type Readiness } from './http/readiness.ts'
import { makeBudget } from './http/request-body.ts'
import { watchRollout } from './http/rollout.ts'
import { makeThreadList } from './http/thread-list.ts'
import { makeTransportProbe } from './http/transport-probe.ts'
import { openUpstream } from './http/upstream.ts'
import { onceByName, type Logger } from './observe/log.ts'
import { makeMetrics } from './observe/metrics.ts'
import type { Policy } from './policy/compile.ts'
import { lostWith, readMounts } from './store/durability.ts'
import { openSqliteStore } from './store/sqlite.ts'

/** A gateway that is listening. */
export interface Gateway {
  /** The bound addresses, as `http://host:port`. */
  readonly url: string
  readonly healthUrl: string
  readonly readiness: Readiness
  /**
   * Takes no more connections, lets what is running end, and closes everything.
   * @param deadline milliseconds after which open streams are ended with a RUN_ERROR event
   */
  stop(deadline: number): Promise<void>
}

/** What start looks at of the machine, to warn of a deployment in which the gateway holds nothing. */
export interface Machine {
  /** Its mounts, as /proc/self/mountinfo has them. */
  readonly mounts: string
  /** The addresses by which others reach it. */
  readonly addresses: readonly string[]
}

/** The upstream's scope in the ownership table, while a gateway has one upstream. */
const SCOPE = ''

/** Time for the last event of a stream to leave, before its connection is cut. */
const LAST_WORDS_MS = 1000

/** How often the upstream is asked what it is, in milliseconds. */
const PROBE_INTERVALS = { pending: 500, known: 15_000 }

/**
 * Starts a gateway.
 * @param config a configuration that was loaded and checked
 * @param policy the policy in force
 * @param machine by default the one that this runs on
 * @throws StoreUnavailable, IssuerFaults, or the listener's error; nothing is left open then
 */
export async function startGateway(
  config: Config,
  policy: Policy,
  log: Logger,
  machine: Machine = { mounts: readMounts(), addresses: ownAddresses() },
): Promise<Gateway> {
  const clock = Date.now
  const metrics = makeMetrics()
  const readiness = makeReadiness()
  const issuers = makeIssuers(config.authentication, {
    clock,
    onFetchFailure: (issuer, message) => {
      metrics.keyFetchFailed(issuer)
      log.warn({ issuer, detail: message }, 'the keys of an issuer could not be fetched')
    },
  })
  const storeFile = config.ownership.store.slice('sqlite:'.length)
  const store = openSqliteStore(storeFile)
  const fate = lostWith(storeFile, machine.mounts)
  if (fate !== null) {
    log.warn(
      { store: storeFile },
      `the ownership table is lost with ${fate}: THREADS THEN HAVE NO OWNER ANY MORE. Put it on a volume`,
    )
  }
  const { ca, timeouts, url: upstreamUrl, basePath } = config.upstream
  const upstream = openUpstream({ url: upstreamUrl, timeouts, ...(ca === undefined ? {} : { ca: readFileSync(ca, 'utf8') }) })
  const server = Object.fromEntries(Object.entries(config.upstream.headers).map(([name, value]) => [name.toLowerCase(), value]))
  const headerRules = {
    server,
    forward: config.forwardHeaders.map((name) => name.toLowerCase()),
    forwardAuthorization: config.upstream.forwardAuthorization,
  }
  const streams = makeOpenStreams(config.streams.keepAlive, metrics)
  const facts = { userScoped: config.upstream.userScoped, unknownThread: config.ownership.unknownThread }
  const rollout = watchRollout({
    upstream,
    upstreamUrl,
    addresses: machine.addresses,
    basePath,
    headers: server,
    store,
    unknownThread: facts.unknownThread,
    readiness,
    log,
  })
  const probe = makeTransportProbe({
    upstream,
    basePath,
    headers: server,
    named: config.upstream.transport === 'auto' ? null : config.upstream.transport,
    readiness,
    onNews: (facts) => rollout.look(facts),
    log,
    intervals: PROBE_INTERVALS,
  })
  const forwarder = makeForwarder({
    upstream,
    basePath,
    headerRules,
    transport: probe,
    claims: makeClaims(store, SCOPE, clock, metrics, log),
    streams,
    metrics,
    log,
  })
  let stopping = false
  const gate = makeGate({
    publicPath: config.upstream.publicPath ?? basePath,
    cors: config.cors,
    authenticate: makeAuthenticate(config.authentication.mode, issuers, sayClientToken(log)),
    rules: policy.rules,
    bodies: policy.bodies,
    facts,
    scope: SCOPE,
    limits: config.limits,
    budget: makeBudget(config.limits.bodiesInFlight),
    store,
    transport: probe,
    headerRules,
    forwarder,
    list: makeThreadList({
      store,
      scope: SCOPE,
      rules: policy.rules,
      facts,
      forwarder,
      seal: makeCursorSeal(await store.secret()),
    }),
    askHistory: makeAskHistory(upstream, basePath, () => probe.suspect()),
    onBridged: sayBridged(log),
    onFault: (error, requestId) => log.error({ err: error, requestId }, 'the gateway failed'),
    onHistoryUntold: () => rollout.historyUntold(),
    onDropped: onceByName((name) =>
      log.info({ name }, 'this part of a body does not pass; the policy can name forwarded properties'),
    ),
    metrics,
    clock,
    isShuttingDown: () => stopping,
  })
  const app = makeApp({
    gate,
    upstream,
    upstreamUrl,
    log,
    metrics,
    maxHeaderSize: config.limits.headers,
    trustedProxies: config.listen.trustedProxies,
    requestId: randomUUID,
    now: () => performance.now(),
  })
  let started = false
  const health = makeHealthApp({ readiness, store, metrics, isStarted: () => started })
  const close = async (): Promise<void> => {
    probe.stop()
    await Promise.all([app.close(), health.close()])
    await upstream.close()
    await store.close()
  }

  try {
    void probe.start()
    await app.listen({ host: config.listen.host, port: config.listen.port })
    await health.listen({ host: config.health.host, port: config.health.port })
  } catch (error) {
    await close()
    throw error
  }
  started = true
  const keys = watchKeys(issuers, readiness)
  return {
    url: urlOf(app.server.address() as AddressInfo),
    healthUrl: urlOf(health.server.address() as AddressInfo),
    readiness,
    async stop(deadline) {
      stopping = true
      readiness.set('shutting-down', 'the gateway is shutting down')
      clearInterval(keys)
      const endStreams = setTimeout(() => streams.endAll('The gateway is shutting down.', 'shutting-down'), deadline)
      const cut = setTimeout(() => app.server.closeAllConnections(), deadline + LAST_WORDS_MS)
      // A connection whose last answer is over would otherwise be kept open for the next request.
      const closeIdle = setInterval(() => app.server.closeIdleConnections(), 50)
      await app.close()
      clearInterval(closeIdle)
      clearTimeout(endStreams)
      clearTimeout(cut)
      await close()
    },
  }
}

/** Says of each client once that it comes with a token of its own. */
function sayClientToken(log: Logger): (userId: string) => void {
  return onceByName((principal) =>
    log.warn({ principal }, "this token is a client's own, not a person's: ALL WHO COME WITH IT ARE ONE USER"),
  )
}

/** Says once for each kind of client which setting would let it speak to the upstream as that speaks itself. */
function sayBridged(log: Logger): (client: Transport) => void {
  const settings: Readonly<Record<Transport, string>> = {
    'multi-route': 'set useSingleEndpoint={true} on its CopilotKitProvider, or mount the runtime with mode: "multi-route"',
    'single-route': 'set useSingleEndpoint={false} on its CopilotKitProvider, or mount the runtime with mode: "single-route"',
  }
  return onceByName((client) =>
    log.info(
      { from: client, to: client === 'multi-route' ? 'single-route' : 'multi-route' },
      `this client speaks the other transport, and the gateway translates: to make that unnecessary, ${settings[client as Transport]}`,
    ),
  )
}

/** Fetches keys ahead of the first token, and says in /readyz whose are missing. */
function watchKeys(issuers: readonly Issuer[], readiness: Readiness): NodeJS.Timeout {
  const look = (): void => {
    for (const { key, keys } of issuers) {
      readiness.set(`keys:${key}`, keys.ready() ? null : 'the keys of this issuer could not be fetched yet')
      if (!keys.ready()) void keys.find(undefined).then(() => keys.ready() && readiness.set(`keys:${key}`, null))
    }
  }
  look()
  return setInterval(look, 1000)
}

function urlOf(address: AddressInfo): string {
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return `http://${host}:${address.port}`
}
