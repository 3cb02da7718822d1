/**
 * Everything in a gateway that depends on the configuration and the policies, made as a whole or not at all. A request uses the
 * snapshot that it arrived at, to its end (docs/contributing/invariants.md, 8).
 */
import { readFileSync } from 'node:fs'
import { makeAuthenticate } from '../auth/authenticate.ts'
import { userOf } from '../auth/claim-rules.ts'
import { makeIssuers, type Issuer } from '../auth/issuer.ts'
import type { Config } from '../config/schema.ts'
import { mountsOf, standingFacts, type Mount } from '../config/mounts.ts'
import { conditionOf, CONDITIONS, makeUpstreamHandle, type UpstreamHandle, type UpstreamHandleParts } from './upstream-handle.ts'
import { decide, isListed, type Enforcement, type OwnerRecord, type Permit, type StandingFacts } from '../core/decide/decide.ts'
import { isThreadId } from '../core/route/ids.ts'
import type { Principal } from '../core/decide/principal.ts'
import { isRefusal, refuse, type Refusal } from '../core/reasons.ts'
import { makeAdminCredentials, type AdminCredentials } from '../http/admin/credentials.ts'
import type { Access } from '../http/pipeline/access.ts'
import { makeGate, type Gate, type GateParts, type Successor } from '../http/pipeline/gate.ts'
import { makeIdentity, type Identity } from '../http/pipeline/identity.ts'
import type { OpenAnswers } from '../http/upstream/open-answers.ts'
import type { Upstream } from '../http/upstream/upstream.ts'
import { makeOwnerRecords } from '../http/pipeline/owner-records.ts'
import type { RunsUnderWay } from '../http/pipeline/runs-under-way.ts'
import { heldBack, type Readiness } from '../http/listeners/readiness.ts'
import type { Limiter } from '../limits/port.ts'
import { bindUpstream } from './upstream-binding.ts'
import { sayBridged, sayClientToken, watchKeys } from '../gateway/operator-notices.ts'
import { onceByName, type Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Prepared } from './load.ts'
import type { Store, ThreadKey } from '../store/port.ts'

export interface Shared extends Pick<GateParts, 'isRevoked' | 'isShuttingDown' | 'budget' | 'reading' | 'answerMemory'> {
  readonly store: Store
  /** The upstream, if it is a runtime in the same process; null for the configured upstream. */
  readonly runtime: Upstream | null
  readonly secret: Uint8Array
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly answers: OpenAnswers
  readonly runs: RunsUnderWay
  readonly limiter: Limiter
  readonly log: Logger
  readonly clock: () => number
  readonly addresses: readonly string[]
  readonly before: number
  readonly onDecision: (snapshot: ConfigSnapshot, ...decision: Parameters<GateParts['onDecision']>) => void
  readonly accessTo: (origin: Origin) => Access
  readonly successorOf: (origin: Origin, principal: Principal) => Successor | Refusal
}

export interface Origin {
  readonly generation: ConfigSnapshot
  readonly mount: Mount
}

export interface ConfigSnapshot {
  readonly number: number
  readonly prepared: Prepared
  readonly gate: Gate
  readonly connections: ReadonlyMap<string, UpstreamHandle>
  readonly issuers: readonly Issuer[]
  readonly adminCredentials: AdminCredentials | null
  /** The standing facts for the upstream of a key; for the first upstream, if none has that key. */
  factsOf(key: string): StandingFacts
  recordOf(key: ThreadKey, principal: Principal): OwnerRecord | Promise<OwnerRecord>
  /** Watches keys and upstreams from now on. Resolves when each upstream was probed or is unreachable. */
  begin(): Promise<void>
  /**
   * Why a permit of this or another configuration is no longer allowed; null if it is allowed. `for-now`: it is allowed, but no
   * invalidation would report its end.
   */
  refusalNow(permit: Permit, origin: Origin): Promise<Refusal | 'for-now' | null>
  hiddenNow(permit: Permit, threadIds: readonly string[], origin: Origin): Promise<ReadonlySet<string>>
  adopt(principal: Principal, origin: Origin): Successor | Refusal
  /**
   * Notes a request under way that may need any of the connections; the returned function releases it and must be called once.
   */
  hold(): () => void
  /** The snapshot is active from now on: /readyz reports what it waits for. */
  takeOver(): void
  /** Releases what the next snapshot does not use; requests under way continue. */
  retire(next: ConfigSnapshot | null): void
}

/**
 * @param previous the snapshot before it: equally configured issuers and upstreams are kept. Nothing that outlives it may refer
 *   to it, or each snapshot would hold all before it
 * @throws IssuerFaults, or Error for files that have changed since they were checked
 */
export function makeSnapshot(prepared: Prepared, shared: Shared, previous: ConfigSnapshot | null): ConfigSnapshot {
  const { config, policy } = prepared
  const { store, metrics, log, clock } = shared
  // Until it is active, /readyz does not report what it waits for: the previous snapshot serves.
  const readiness = heldBack(shared.readiness)
  const issuers = makeIssuers(config.authentication, {
    clock,
    onFetchFailure: fetchFailures(metrics, log),
    known: previous?.issuers ?? [],
  })
  const identity = openIdentity(config.identity, clock)
  const adminCredentials =
    config.admin === undefined
      ? null
      : makeAdminCredentials(config.admin, (message) => log.error({ detail: message }, 'the admin credential'))
  const mounts = mountsOf(config)
  const mountOf = (key: string): Mount | undefined => mounts.find((mount) => mount.key === key)
  const { connections, made } = connectTo(mounts, config.enforcement, { ...shared, readiness }, previous)
  const number = (previous?.number ?? shared.before) + 1
  const observing = config.enforcement === 'observe'
  let keys: NodeJS.Timeout | undefined
  const records = makeOwnerRecords(store, observing)
  const originOf = (mount: Mount): Origin => ({
    get generation() {
      return snapshot
    },
    mount,
  })
  const [first, ...more] = mounts.map((mount) =>
    bindUpstream(mount, connectionOf(connections, mount.key), {
      ...shared,
      config,
      policy,
      identity,
      records,
      access: shared.accessTo(originOf(mount)),
      successor: (principal) => shared.successorOf(originOf(mount), principal),
    }),
  )
  if (first === undefined) throw new Error('a configuration without any upstream')
  const gate = makeGate({
    mounts: [first, ...more],
    cors: config.cors,
    authenticate: makeAuthenticate({
      mode: config.authentication.mode,
      issuers,
      tokenCache: config.authentication.tokenCache,
      clock,
      onClientToken: sayClientToken(log),
    }),
    rules: policy.rules,
    enforcement: config.enforcement,
    limits: config.limits,
    limiter: shared.limiter,
    budget: shared.budget,
    reading: shared.reading,
    answerMemory: shared.answerMemory,
    records,
    store,
    runs: shared.runs,
    keySet: identity.keySet,
    onBridged: sayBridged(log),
    onFault: (error, requestId) => log.error({ err: error, requestId }, 'the gateway failed'),
    isRevoked: shared.isRevoked,
    onDropped: onceByName((name) =>
      log.info({ name }, 'this part of a body does not pass; the policy can name forwarded properties'),
    ),
    onDecision: (...decision) => shared.onDecision(snapshot, ...decision),
    metrics,
    clock,
    isShuttingDown: shared.isShuttingDown,
  })
  /** The caller and upstream of another configuration's request in this configuration; null where it does not have them. */
  const knownAs = (principal: Principal, origin: Origin): { readonly principal: Principal; readonly mount: Mount } | null => {
    if (origin.generation === snapshot) return { principal, mount: origin.mount }
    const mount = mountOf(origin.mount.key)
    if (mount === undefined || mount.agentId !== origin.mount.agentId || mount.scope !== origin.mount.scope) return null
    const otherKeys =
      principal.kind === 'user' && keysOf(origin.generation, principal.issuer) !== keysOf(snapshot, principal.issuer)
    const known = otherKeys ? null : stillAuthenticated(principal, config, clock())
    return known === null ? null : { principal: known, mount }
  }

  const snapshot: ConfigSnapshot = {
    number,
    prepared,
    gate,
    connections,
    issuers,
    adminCredentials,
    factsOf: (key) => standingFacts(mountOf(key) ?? mounts[0], config),
    recordOf: (key, principal) => records.record(key, principal),
    async begin() {
      keys = watchKeys(issuers, readiness, metrics, log)
      await Promise.all(made.map(({ probe }) => probe.start()))
    },
    async refusalNow(permit, origin) {
      const asker = knownAs(permit.principal, origin)
      if (asker === null) return refuse('rules-changed')
      const { threadId } = permit.descriptor.ids
      const facts = standingFacts(asker.mount, config)
      const isOwnPermit = origin.generation === snapshot
      // Under `observe`, ownership ends no answer; but the gateway's own answers are always enforced.
      const isAboutThread = threadId !== undefined && (!observing || permit.descriptor.route.own === true)
      const record = isAboutThread ? await records.record({ scope: asker.mount.scope, threadId }, asker.principal) : null
      const decision = decide(permit.descriptor, asker.principal, policy.rules, { ...facts, record })
      if (decision.outcome === 'refused') return decision
      const isOwner = permit.owner === permit.principal.id
      // Another configuration did not ask for the missing fact; this one asked before the run.
      if (decision.outcome === 'needs') return isOwnPermit && isOwner ? 'for-now' : refuse('rules-changed')
      // The thread has no row by now: its owner goes on, and another caller has no right any more.
      if (!isAboutThread || isSettled(record)) return null
      return record === null && !isOwner ? refuse('thread-unknown') : 'for-now'
    },
    async hiddenNow({ principal }, threadIds, origin) {
      const asker = knownAs(principal, origin)
      if (asker === null) return new Set(threadIds)
      if (observing) return new Set()
      const facts = standingFacts(asker.mount, config)
      const known = await records.records(asker.mount.scope, threadIds.filter(isThreadId), asker.principal)
      return new Set(threadIds.filter((id) => !isListed(id, known.get(id) ?? null, asker.principal, policy.rules, facts)))
    },
    adopt(principal, origin) {
      const asker = knownAs(principal, origin)
      const mount = asker === null ? undefined : gate.mountOf(asker.mount.key)
      if (asker === null || mount === undefined) return refuse('rules-changed')
      return { outcome: 'succeeds', gate, mount, principal: asker.principal, hold: () => snapshot.hold() }
    },
    hold: holdOf([...connections.values()]),
    takeOver: () => readiness.release(),
    retire(next) {
      clearInterval(keys)
      for (const { key } of issuers) {
        if (next?.issuers.some((issuer) => issuer.key === key) !== true) readiness.set(`keys:${key}`, null)
      }
      for (const [key, connection] of connections) {
        const follower = next?.connections.get(key)
        if (follower === connection) continue
        connection.retire()
        if (follower === undefined) for (const name of CONDITIONS) readiness.set(conditionOf(name, key), null)
      }
    },
  }
  return snapshot
}

/**
 * True where only a change that sends an invalidation can give the thread to another user. The claim of an unowned thread sends
 * none.
 */
function isSettled(record: OwnerRecord): boolean {
  return record !== null && !record.deleted && record.seen !== true && record.provisional !== true
}

/** Reports failed key fetches. Issuers outlive their snapshot, so this keeps no reference to it. */
function fetchFailures(metrics: Metrics, log: Logger): (issuer: string, message: string) => void {
  return (issuer, message) => {
    metrics.keyFetchFailed(issuer)
    log.warn({ issuer, detail: message }, 'the keys of an issuer could not be fetched')
  }
}

function connectTo(
  mounts: readonly Mount[],
  enforcement: Enforcement,
  surroundings: UpstreamHandleParts,
  previous: ConfigSnapshot | null,
): { readonly connections: ReadonlyMap<string, UpstreamHandle>; readonly made: readonly UpstreamHandle[] } {
  const connections = new Map<string, UpstreamHandle>()
  const made: UpstreamHandle[] = []
  for (const mount of mounts) {
    const known = previous?.connections.get(mount.key) ?? null
    const connection = makeUpstreamHandle(mount, enforcement, surroundings, known)
    connections.set(mount.key, connection)
    if (connection !== known) made.push(connection)
  }
  return { connections, made }
}

function holdOf(connections: readonly UpstreamHandle[]): () => () => void {
  const [only, ...more] = connections
  if (only !== undefined && more.length === 0) return only.hold
  return () => {
    const held = connections.map(({ hold }) => hold())
    return () => held.forEach((letGo) => letGo())
  }
}

function connectionOf(connections: ReadonlyMap<string, UpstreamHandle>, key: string): UpstreamHandle {
  const connection = connections.get(key)
  if (connection === undefined) throw new Error('an upstream without a connection')
  return connection
}

/** The source of an issuer's keys: another source is another issuer. */
function keysOf({ issuers }: ConfigSnapshot, key: string): string | undefined {
  return issuers.find((issuer) => issuer.key === key)?.keyMaterial
}

/** The principal under another configuration; null if that would not accept the credential. */
function stillAuthenticated(principal: Principal, { authentication }: Config, now: number): Principal | null {
  if (principal.kind === 'anonymous') {
    return authentication.mode === (principal.standsForAll ? 'off' : 'optional') ? principal : null
  }
  const issuer = authentication.issuers[principal.issuer]
  if (issuer === undefined) return null
  const claims = principal.claims as Readonly<Record<string, unknown>>
  if (claims['iss'] !== undefined && claims['iss'] !== issuer.issuer) return null
  const verified = userOf(principal.issuer, issuer, claims, now, issuer.clockTolerance ?? authentication.clockTolerance)
  return isRefusal(verified) || verified.user.id !== principal.id ? null : verified.user
}

export function openIdentity({ headers, assertion }: Config['identity'], clock: () => number): Identity {
  const names = Object.fromEntries(Object.entries(headers).filter(([, name]) => name !== undefined))
  const rules =
    assertion === undefined ? null : { ...assertion, keys: assertion.keyFiles.map((file) => readFileSync(file, 'utf8')) }
  return makeIdentity(names, rules, clock)
}
