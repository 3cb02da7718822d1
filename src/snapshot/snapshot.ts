/** What depends on configuration and policies. A request keeps its snapshot (docs/contributing/invariants.md, 8). */
import { makeAuthenticate } from '../auth/authenticate.ts'
import { userOf } from '../auth/claim-rules.ts'
import { acceptsLess, makeAuthenticateRequest } from '../auth/request-credentials.ts'
import { makeIssuers, type Issuer } from '../auth/issuer.ts'
import type { Config } from '../config/schema.ts'
import { mountsOf, standingFacts, type Mount } from '../config/mounts.ts'
import { decide, listingFor, type Enforcement, type OwnerRecord, type Permit, type StandingFacts } from '../core/decide/decide.ts'
import { isThreadId } from '../core/route/ids.ts'
import type { Principal } from '../core/decide/principal.ts'
import { isRefusal, refuse, type Refusal } from '../core/reasons.ts'
import type { Sources } from '../document/sources.ts'
import { makeAdminCredentials, type AdminCredentials } from '../http/admin/credentials.ts'
import { makeIdentity, type Identity } from '../http/pipeline/identity.ts'
import { makeOwnerRecords } from '../http/pipeline/authorization.ts'
import type { Upstream } from '../http/upstream/upstream.ts'
import { heldBack, type Readiness } from '../http/listeners/readiness.ts'
import { sayClientToken, watchKeys } from '../gateway/operator-notices.ts'
import { onceByName, type Logger } from '../observe/log.ts'
import type { KeyMetrics } from '../observe/metrics.ts'
import type { AccessInvalidations, AccessStore } from '../store/port/access.ts'
import type { StoreState } from '../store/port/state.ts'
import type { ThreadKey } from '../store/port/thread.ts'
import type { DroppedKind } from '../http/pipeline/payload.ts'
import { assemblePipeline, type PipelineSurroundings } from './assemble-pipeline.ts'
import type { Prepared } from './load.ts'
import { conditionOf, CONDITIONS, makeUpstreamHandle, type UpstreamHandle, type UpstreamHandleParts } from './upstream-handle.ts'
import { listenerTls } from '../tls/material.ts'
import type { ListenerTls } from '../tls/settings.ts'
import type { Pipeline } from '../http/pipeline/stages.ts'

/** What a gateway keeps over all its snapshots. */
export interface SnapshotSurroundings {
  readonly requests: PipelineSurroundings
  readonly store: AccessStore & AccessInvalidations & Pick<StoreState, 'isEmpty'>
  readonly readiness: Readiness
  /** The upstream, if it is a runtime in the same process; null for the configured upstream. */
  readonly runtime: Upstream | null
  readonly addresses: readonly string[]
  /** Applies the TLS settings of a snapshot to new connections of callers. */
  readonly secure: (tls: ListenerTls) => void
  /** The number of snapshots that were active before. */
  readonly before: number
}

export interface Origin {
  readonly snapshot: ConfigSnapshot
  readonly upstreamKey: string
}

export interface ConfigSnapshot {
  readonly number: number
  readonly prepared: Prepared
  readonly pipeline: Pipeline
  readonly handles: ReadonlyMap<string, UpstreamHandle>
  readonly issuers: readonly Issuer[]
  /** Of the public listener; null for plain HTTP. */
  readonly tls: ListenerTls | null
  readonly adminCredentials: AdminCredentials | null
  /** For the first upstream, if none has that key. */
  mountOf(key: string): Mount
  factsOf(key: string): StandingFacts
  recordOf(key: ThreadKey, principal: Principal): OwnerRecord | Promise<OwnerRecord>
  /** Watches keys and upstreams from now on. Resolves when each upstream was probed or is unreachable. */
  begin(): Promise<void>
  /** Resolves when the keys of each issuer are there, or the attempt to fetch them has failed. Rejects never. */
  keysAttempted(): Promise<void>
  /** `for-now`: the permit is allowed, but no invalidation would report its end. */
  refusalNow(permit: Permit, origin: Origin): Promise<Refusal | 'for-now' | null>
  hiddenNow(permit: Permit, threadIds: readonly string[], origin: Origin): Promise<ReadonlySet<string>>
  /** Null where this snapshot does not have the caller or the upstream. */
  adopt(principal: Principal, origin: Origin): { readonly principal: Principal; readonly mount: Mount } | null
  /** The requests under way, which their handles count. They keep the upstream connections open. */
  readonly requests: { underWay: number; onLast: (() => void) | null }
  activate(): void
  /** Releases what the next snapshot does not use; requests under way continue. */
  retire(next: ConfigSnapshot | null): void
}

/**
 * @param previous the snapshot before it: equally configured issuers and upstreams are kept. Nothing that outlives it may refer
 *   to it, or each snapshot would hold all before it
 * @throws IssuerFaults, or Error for files that have changed since they were checked
 */
export function makeSnapshot(
  prepared: Prepared,
  surroundings: SnapshotSurroundings,
  previous: ConfigSnapshot | null,
): ConfigSnapshot {
  const { config, policy, sources } = prepared
  const { store } = surroundings
  const { metrics, log, clock } = surroundings.requests
  // Until it is active, /readyz does not report what it waits for: the previous snapshot serves.
  const readiness = heldBack(surroundings.readiness)
  const issuers = makeIssuers(config.authentication, {
    clock,
    onFetchFailure: fetchFailures(metrics.keys, log),
    known: previous?.issuers ?? [],
    sources,
  })
  const identity = openIdentity(config.identity, sources, clock)
  const adminCredentials =
    config.admin === undefined
      ? null
      : makeAdminCredentials(config.admin, sources, (message) => log.error({ detail: message }, 'the admin credential'))
  const tls = listenerTls(config.listen.tls, sources)
  const mounts = mountsOf(config)
  const mountOf = (key: string): Mount => mounts.find((mount) => mount.key === key) ?? mounts[0]
  const { runtime, addresses } = surroundings
  const upstreamParts = { store, runtime, readiness, metrics: metrics.runtimes, log, addresses, sources }
  const { handles, made } = connectTo(mounts, config.enforcement, upstreamParts, previous)
  sources.release()
  const observing = config.enforcement === 'observe'
  let keys: NodeJS.Timeout | undefined
  const records = makeOwnerRecords(store, config.enforcement)
  const { mode, tokenCache } = config.authentication
  const authenticate = makeAuthenticate({ mode, issuers, tokenCache, clock, onClientToken: sayClientToken(log) })
  const authenticateWithCookies = makeAuthenticateRequest(authenticate, config)
  const sayDropped = {
    'body-key': onceByName((name) =>
      name.startsWith('messages[')
        ? log.info({ name }, 'dropped a message of a run: to forward it, name its role under messages.roles of the policy')
        : log.info({ name }, 'dropped a body field: to forward it, name it under forwardedProps of the policy'),
    ),
    'nested-key': onceByName((name) =>
      log.info({ name }, 'dropped a key inside a run: no version of AG-UI that the gateway knows has it'),
    ),
  }
  const onDropped = (kind: DroppedKind, name: string): void => sayDropped[kind](name)
  const settings = { config, policy, authenticate, authenticateWithCookies, identity, records, handles, onDropped }
  const pipeline = assemblePipeline(settings, surroundings.requests)

  const adopt: ConfigSnapshot['adopt'] = (principal, { snapshot: from, upstreamKey }) => {
    const mount = mounts.find(({ key }) => key === upstreamKey)
    if (from === snapshot) return { principal, mount: mountOf(upstreamKey) }
    const before = from.mountOf(upstreamKey)
    if (mount === undefined || mount.agentId !== before.agentId || mount.api !== before.api || mount.scope !== before.scope)
      return null
    const isOther =
      principal.kind === 'user' &&
      (keysOf(from, principal.issuer) !== keysOf(snapshot, principal.issuer) ||
        acceptsLess(from.prepared.config, config, principal.issuer))
    const known = isOther ? null : stillAuthenticated(principal, config, clock())
    return known === null ? null : { principal: known, mount }
  }

  for (const { hold } of handles.values()) hold()
  let isReleased = false
  const releaseUpstreams = (): void => {
    if (isReleased) return
    isReleased = true
    for (const { release } of handles.values()) release()
  }

  const snapshot: ConfigSnapshot = {
    number: (previous?.number ?? surroundings.before) + 1,
    prepared,
    pipeline,
    handles,
    issuers,
    tls,
    adminCredentials,
    mountOf,
    factsOf: (key) => standingFacts(mountOf(key), config),
    recordOf: (key, principal) => records.record(key, principal),
    async begin() {
      keys = watchKeys(issuers, readiness, metrics.keys, log)
      await Promise.all(made.map(({ probe }) => probe.start()))
    },
    async keysAttempted() {
      await Promise.all(issuers.map(({ keys: source }) => source.find(undefined)))
    },
    async refusalNow(permit, origin) {
      const known = adopt(permit.principal, origin)
      if (known === null) return refuse('rules-changed')
      const { threadId } = permit.descriptor.ids
      const facts = standingFacts(known.mount, config)
      const isOwnPermit = origin.snapshot === snapshot
      // Under `observe`, ownership ends no answer; but the gateway's own answers are always enforced.
      const isAboutThread = threadId !== undefined && (!observing || permit.descriptor.route.own === true)
      const record = isAboutThread ? await records.record({ scope: known.mount.scope, threadId }, known.principal) : null
      const decision = decide(permit.descriptor, known.principal, policy.rules, { ...facts, record })
      if (decision.outcome === 'refused') return decision
      const isOwner = permit.owner === permit.principal.id
      // Another configuration did not ask for the missing fact; this one asked before the run.
      if (decision.outcome === 'needs') return isOwnPermit && isOwner ? 'for-now' : refuse('rules-changed')
      // The thread has no row by now: its owner continues, and another caller has no right any more.
      if (!isAboutThread || isSettled(record)) return null
      return record === null && !isOwner ? refuse('thread-unknown') : 'for-now'
    },
    async hiddenNow({ principal, descriptor: { route } }, threadIds, origin) {
      const known = adopt(principal, origin)
      if (known === null) return new Set(threadIds)
      if (observing) return new Set()
      const facts = standingFacts(known.mount, config)
      const owners = await records.records(known.mount.scope, threadIds.filter(isThreadId), known.principal)
      const isListed = listingFor(known.principal, policy.rules, facts, route)
      return new Set(threadIds.filter((id) => !isListed(id, owners.get(id))))
    },
    adopt,
    requests: { underWay: 0, onLast: null },
    activate() {
      readiness.release()
      metrics.runtimes.forgetRuntimes()
      for (const { versionNotices } of handles.values()) versionNotices.activate(config.forwardHeaders)
    },
    retire(next) {
      clearInterval(keys)
      for (const { key } of issuers) {
        if (next?.issuers.some((issuer) => issuer.key === key) !== true) readiness.set(`keys:${key}`, null)
      }
      for (const [key, handle] of handles) {
        const follower = next?.handles.get(key)
        if (follower === handle) continue
        handle.retire()
        if (follower === undefined) for (const name of CONDITIONS) readiness.set(conditionOf(name, key), null)
      }
      snapshot.requests.onLast = releaseUpstreams
      if (snapshot.requests.underWay === 0) releaseUpstreams()
    },
  }
  return snapshot
}

/** The claim of an unowned thread sends no invalidation. */
function isSettled(record: OwnerRecord): boolean {
  return record !== null && !record.deleted && record.seen !== true && record.provisional !== true
}

/** Reports failed key fetches. Issuers outlive their snapshot, so this keeps no reference to it. */
function fetchFailures(metrics: KeyMetrics, log: Logger): (issuer: string, message: string) => void {
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
): { readonly handles: ReadonlyMap<string, UpstreamHandle>; readonly made: readonly UpstreamHandle[] } {
  const handles = new Map<string, UpstreamHandle>()
  const made: UpstreamHandle[] = []
  for (const mount of mounts) {
    const known = previous?.handles.get(mount.key) ?? null
    const handle = makeUpstreamHandle(mount, enforcement, surroundings, known)
    handles.set(mount.key, handle)
    if (handle !== known) made.push(handle)
  }
  return { handles, made }
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

export function openIdentity({ headers, assertion }: Config['identity'], sources: Sources, clock: () => number): Identity {
  const names = Object.fromEntries(Object.entries(headers).filter(([, name]) => name !== undefined))
  const rules = assertion === undefined ? null : { ...assertion, keys: assertion.keyFiles.map((file) => sources.text(file)) }
  return makeIdentity(names, rules, clock)
}
