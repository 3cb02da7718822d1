/** The composition root: puts the concrete parts of a gateway together, starts and stops it. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { makeAuthenticate } from './auth/authenticate.ts'
import { makeIssuers } from './auth/issuer.ts'
import { storeFile, type Config } from './config/schema.ts'
import { makeAdminApp } from './http/admin.ts'
import { makeAdminCredentials } from './http/admin-credentials.ts'
import { makeApp } from './http/app.ts'
import { makeClaims } from './http/claims.ts'
import { makeCursorSeal } from './http/cursor.ts'
import { ownAddresses } from './http/exposure.ts'
import { makeForwarder } from './http/forward.ts'
import { makeGate } from './http/gate.ts'
import { makeHealthApp } from './http/health.ts'
import { makeAskHistory } from './http/history.ts'
import { makeIdentity, type Identity } from './http/identity.ts'
import { makeOpenStreams } from './http/open-streams.ts'
import { makeReadiness, type Readiness } from './http/readiness.ts'
import { makeBudget } from './http/request-body.ts'
import { watchRollout } from './http/rollout.ts'
import { makeThreadList } from './http/thread-list.ts'
import { makeTransportProbe } from './http/transport-probe.ts'
import { openUpstream } from './http/upstream.ts'
import { sayBridged, sayClientToken, watchKeys } from './notices.ts'
import { onceByName, type Logger } from './observe/log.ts'
import { makeMetrics } from './observe/metrics.ts'
import type { Policy } from './policy/compile.ts'
import { lostWith, readMounts } from './store/durability.ts'
import type { OwnershipStore, RevocationStore } from './store/port.ts'
import { makeRevocationList } from './store/revocations.ts'
import { openSqliteStore } from './store/sqlite.ts'

/** A gateway that is listening. */
export interface Gateway {
  /** The bound addresses, as `http://host:port`. */
  readonly url: string
  readonly healthUrl: string
  /** Null where the operator API is off. */
  readonly adminUrl: string | null
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
  const store = openSqliteStore(storeFile(config.ownership))
  try {
    return await startOn(store, config, policy, log, machine)
  } catch (error) {
    await store.close()
    throw error
  }
}

async function startOn(
  store: OwnershipStore & RevocationStore,
  config: Config,
  policy: Policy,
  log: Logger,
  machine: Machine,
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
  const file = storeFile(config.ownership)
  const fate = lostWith(file, machine.mounts)
  if (fate !== null) {
    log.warn({ store: file }, `the ownership table is lost with ${fate}: THREADS THEN HAVE NO OWNER ANY MORE. Put it on a volume`)
  }
  const { ca, timeouts, url: upstreamUrl, basePath } = config.upstream
  const upstream = openUpstream({ url: upstreamUrl, timeouts, ...(ca === undefined ? {} : { ca: readFileSync(ca, 'utf8') }) })
  const server = Object.fromEntries(Object.entries(config.upstream.headers).map(([name, value]) => [name.toLowerCase(), value]))
  const headerRules = {
    server,
    forward: config.forwardHeaders.map((name) => name.toLowerCase()),
    forwardAuthorization: config.upstream.forwardAuthorization,
  }
  const identity = openIdentity(config.identity, clock)
  const streams = makeOpenStreams(
    config.streams,
    clock,
    metrics,
    ({ userId, credential }) => credential !== null && revocations.isRevoked(userId, credential),
  )
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
    identity,
    transport: probe,
    claims: makeClaims(store, SCOPE, clock, metrics, log),
    streams,
    metrics,
    log,
  })
  const revocations = await makeRevocationList(store, {
    onChange: () => streams.endRevoked(),
    onFailure: (error) => log.error({ err: error }, 'the revocations could not be read: those that are known stay in force'),
  })
  let stopping = false
  const gate = makeGate({
    publicPath: config.upstream.publicPath ?? basePath,
    cors: config.cors,
    authenticate: makeAuthenticate({
      mode: config.authentication.mode,
      issuers,
      tokenCache: config.authentication.tokenCache,
      clock,
      onClientToken: sayClientToken(log),
    }),
    rules: policy.rules,
    bodies: policy.bodies,
    facts,
    scope: SCOPE,
    limits: config.limits,
    budget: makeBudget(config.limits.bodiesInFlight),
    store,
    transport: probe,
    headerRules,
    identity,
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
    isRevoked: (userId, credential) => revocations.isRevoked(userId, credential),
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
  const admin =
    config.admin === undefined
      ? null
      : makeAdminApp({
          store,
          revocations,
          credentials: makeAdminCredentials(config.admin, (message) => log.error({ detail: message }, 'the admin credential')),
          issuers: Object.keys(config.authentication.issuers),
          log,
          clock,
          requestId: randomUUID,
        })
  const close = async (): Promise<void> => {
    probe.stop()
    revocations.stop()
    await Promise.all([app.close(), health.close(), admin?.close()])
    await upstream.close()
    await store.close()
  }

  try {
    void probe.start()
    await app.listen({ host: config.listen.host, port: config.listen.port })
    await health.listen({ host: config.health.host, port: config.health.port })
    if (config.admin !== undefined) await admin?.listen({ host: config.admin.host, port: config.admin.port })
  } catch (error) {
    await close()
    throw error
  }
  started = true
  const keys = watchKeys(issuers, readiness, metrics, log)
  return {
    url: urlOf(app.server.address() as AddressInfo),
    healthUrl: urlOf(health.server.address() as AddressInfo),
    adminUrl: admin === null ? null : urlOf(admin.server.address() as AddressInfo),
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

/** Reads the keys of assertions; they were read once before, when the configuration was checked. */
function openIdentity({ headers, assertion }: Config['identity'], clock: () => number): Identity {
  const names = Object.fromEntries(Object.entries(headers).filter(([, name]) => name !== undefined))
  const rules =
    assertion === undefined ? null : { ...assertion, keys: assertion.keyFiles.map((file) => readFileSync(file, 'utf8')) }
  return makeIdentity(names, rules, clock)
}

function urlOf(address: AddressInfo): string {
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return `http://${host}:${address.port}`
}
