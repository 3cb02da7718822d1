/**
 * Everything of a gateway that hangs on the configuration and the policies, made whole or not at all. A request goes by the
 * generation that it came to, to its end (design, invariant 8).
 */
import { readFileSync } from 'node:fs'
import { makeAuthenticate } from './auth/authenticate.ts'
import { userOf } from './auth/claim-rules.ts'
import { makeIssuers, type Issuer } from './auth/issuer.ts'
import type { Config } from './config/schema.ts'
import { connect, type Connection } from './connection.ts'
import { decide, type OwnerRecord, type Permit, type StandingFacts } from './core/decide.ts'
import type { Principal } from './core/principal.ts'
import { tableUse } from './core/table-lists.ts'
import { isRefusal, refuse, type Refusal } from './core/reasons.ts'
import { makeAdminCredentials, type AdminCredentials } from './http/admin-credentials.ts'
import { makeClaims } from './http/claims.ts'
import { makeCursorSeal } from './http/cursor.ts'
import { makeForwarder } from './http/forward.ts'
import { makeGate, type Gate, type GateParts } from './http/gate.ts'
import { makeGrants } from './http/grants.ts'
import { makeAskHistory } from './http/history.ts'
import { makeIdentity, type Identity } from './http/identity.ts'
import type { OpenStreams, StreamOwner } from './http/open-streams.ts'
import { makeOwnerRecords, type OwnerRecords } from './http/owner-records.ts'
import { heldBack, type Readiness } from './http/readiness.ts'
import { makeRewriter } from './http/rewriter.ts'
import { makeTableChange } from './http/table-changes.ts'
import { makeTableList } from './http/table-list.ts'
import { makeThreadList } from './http/thread-list.ts'
import type { Limiter } from './limits/port.ts'
import { sayBridged, sayClientToken, watchKeys } from './notices.ts'
import { onceByName, type Logger } from './observe/log.ts'
import type { Metrics } from './observe/metrics.ts'
import type { Policy } from './policy/policy.ts'
import type { Prepared } from './prepare.ts'
import type { Store } from './store/port.ts'

/** What all generations of a process share. */
export interface Shared extends Pick<GateParts, 'isRevoked' | 'isShuttingDown' | 'budget'> {
  readonly store: Store
  /** The secret that cursors are sealed with. */
  readonly secret: Uint8Array
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly streams: OpenStreams
  readonly limiter: Limiter
  readonly log: Logger
  readonly clock: () => number
  readonly addresses: readonly string[]
  /** Told every decision, with the policies that it was made by. */
  readonly onDecision: (generation: Generation, ...decision: Parameters<GateParts['onDecision']>) => void
  /** What the rules in force say against what a generation has permitted that may have been replaced. */
  readonly overruled: (permit: Permit, origin: Generation) => Promise<Refusal | null>
  /** Counts changes of threads' standings. */
  readonly epoch: () => number
  /** Told of each stream that opens, with the count at the head of its request. */
  readonly onStream: (owner: StreamOwner, origin: Generation, epoch: number) => void
}

/** A configuration in force, or one that was. */
export interface Generation {
  readonly number: number
  readonly prepared: Prepared
  readonly facts: StandingFacts
  readonly scope: string
  readonly gate: Gate
  readonly connection: Connection
  readonly issuers: readonly Issuer[]
  readonly adminCredentials: AdminCredentials | null
  /** What decisions by it go by of a thread, as it stands to a caller. */
  recordOf(threadId: string, principal: Principal): Promise<OwnerRecord>
  /** Looks after keys and upstream from now on. Resolves when the upstream was asked what it is, or is away. */
  begin(): Promise<void>
  /** What these rules say against what those of another generation have permitted. */
  overrules(permit: Permit, origin: Generation): Promise<Refusal | null>
  /** False if what is known of its thread by now does not allow what was permitted. */
  stillAllows(permit: Permit): Promise<boolean>
  /** Is in force from now on: /readyz says what it waits for. */
  takeOver(): void
  /** Lets go of what the next one does not use; what is under way goes on. */
  retire(next: Generation | null): void
}

/** The upstream's scope in the ownership table, while a gateway has one upstream. */
const SCOPE = ''

/**
 * Makes a generation.
 * @param previous the one before it: issuers and the upstream are kept where they are configured alike
 * @throws IssuerFaults, or Error for files that have changed since they were checked
 */
export function makeGeneration(prepared: Prepared, shared: Shared, previous: Generation | null): Generation {
  const { config, policy } = prepared
  const { store, metrics, streams, log, clock } = shared
  // Until it is in force, what it waits for is nobody's business: the one before it serves.
  const readiness = heldBack(shared.readiness)
  const issuers = makeIssuers(config.authentication, {
    clock,
    onFetchFailure: (issuer, message) => {
      metrics.keyFetchFailed(issuer)
      log.warn({ issuer, detail: message }, 'the keys of an issuer could not be fetched')
    },
    known: previous?.issuers ?? [],
  })
  const identity = openIdentity(config.identity, clock)
  const adminCredentials =
    config.admin === undefined
      ? null
      : makeAdminCredentials(config.admin, (message) => log.error({ detail: message }, 'the admin credential'))
  const connection = connect(config, { ...shared, readiness }, previous?.connection ?? null)
  const { upstream, probe, rollout } = connection
  const isNew = connection !== previous?.connection
  const number = (previous?.number ?? 0) + 1
  const { basePath } = config.upstream
  const headerRules = {
    server: connection.headers,
    forward: config.forwardHeaders.map((name) => name.toLowerCase()),
    forwardAuthorization: config.upstream.forwardAuthorization,
  }
  const facts = {
    userScoped: config.upstream.userScoped,
    unknownThread: config.ownership.unknownThread,
    enforcement: config.enforcement,
  }
  const observing = config.enforcement === 'observe'
  let keys: NodeJS.Timeout | undefined
  const ownership = makeOwnerRecords(store, observing)
  const claims = makeClaims(store, SCOPE, clock, metrics, log, observing ? store : null)
  const forwarder = makeForwarder({
    upstream,
    basePath,
    headerRules,
    identity,
    transport: probe,
    claims,
    streams,
    streamRules: config.streams,
    onStream: (owner, epoch) => shared.onStream(owner, generation, epoch),
    metrics,
    log,
  })
  const seal = makeCursorSeal(shared.secret)
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
    facts,
    scope: SCOPE,
    limits: config.limits,
    limiter: shared.limiter,
    budget: shared.budget,
    records: ownership,
    store,
    transport: probe,
    headerRules,
    identity,
    forwarder,
    rewriter: makeRewriter({
      rules: policy.rules,
      facts,
      forwarder,
      list: makeThreadList({ records: ownership, scope: SCOPE, rules: policy.rules, facts, forwarder, seal }),
      tableList: makeTableList({ store, records: ownership, scope: SCOPE, rules: policy.rules, facts, seal }),
      tableChange: makeTableChange({ store, scope: SCOPE, forwarder, claims, clock }),
      tableUse: (upstreamIs) => tableUse(config.ownership.lists, config.enforcement, upstreamIs),
    }),
    grants: makeGrants({
      store,
      records: ownership,
      rules: policy.rules,
      facts,
      scope: SCOPE,
      issuers: Object.keys(config.authentication.issuers),
      log,
      clock,
    }),
    askHistory: makeAskHistory(upstream, basePath, () => probe.suspect()),
    epoch: shared.epoch,
    onBridged: sayBridged(log),
    onFault: (error, requestId) => log.error({ err: error, requestId }, 'the gateway failed'),
    isRevoked: shared.isRevoked,
    onHistoryUntold: () => {
      if (!observing) rollout.historyUntold()
    },
    onDropped: onceByName((name) =>
      log.info({ name }, 'this part of a body does not pass; the policy can name forwarded properties'),
    ),
    overruled: (permit) => shared.overruled(permit, generation),
    onDecision: (...decision) => shared.onDecision(generation, ...decision),
    metrics,
    clock,
    isShuttingDown: shared.isShuttingDown,
  })
  const generation: Generation = {
    number,
    prepared,
    facts,
    scope: SCOPE,
    gate,
    connection,
    issuers,
    adminCredentials,
    recordOf: (threadId, principal) => ownership.record({ scope: SCOPE, threadId }, principal),
    async begin() {
      keys = watchKeys(issuers, readiness, metrics, log)
      if (isNew) await probe.start()
    },
    async overrules(permit, origin) {
      const { principal } = permit
      if (principal.kind === 'user' && keysOf(origin, principal.issuer) !== keysOf(generation, principal.issuer)) {
        return refuse('rules-changed')
      }
      return overrules(permit, config, policy, facts, ownership, clock())
    },
    async stillAllows(permit) {
      const { threadId } = permit.descriptor.ids
      if (threadId === undefined || observing) return true
      const record = await ownership.record({ scope: SCOPE, threadId }, permit.principal)
      const { outcome } = decide(permit.descriptor, permit.principal, policy.rules, { ...facts, record })
      // A thread that is unknown by now: whoever began it goes on, and whoever was let in to another's has no leave any more.
      if (record === null || outcome === 'needs') return outcome !== 'refused' && permit.owner === permit.principal.id
      return outcome === 'permitted'
    },
    takeOver: () => readiness.release(),
    retire(next) {
      clearInterval(keys)
      for (const { key } of issuers) {
        if (next?.issuers.some((issuer) => issuer.key === key) !== true) readiness.set(`keys:${key}`, null)
      }
      if (next?.connection === connection) return
      connection.retire()
    },
  }
  return generation
}

/** Decides again what was permitted by another configuration and its policy. */
async function overrules(
  permit: Permit,
  config: Config,
  policy: Policy,
  facts: StandingFacts,
  ownership: OwnerRecords,
  now: number,
): Promise<Refusal | null> {
  const principal = stillAuthenticated(permit.principal, config, now)
  if (principal === null) return refuse('rules-changed')
  const { threadId } = permit.descriptor.ids
  // Under `observe` nothing that rests on ownership ends anything.
  const unasked = threadId === undefined || facts.enforcement === 'observe'
  const record = unasked ? null : await ownership.record({ scope: SCOPE, threadId }, principal)
  const decision = decide(permit.descriptor, principal, policy.rules, { ...facts, record })
  // What would have to be asked first was not asked for this one.
  if (decision.outcome === 'needs') return refuse('rules-changed')
  return decision.outcome === 'refused' ? decision : null
}

/** What the keys of an issuer come from: another source is another issuer. */
function keysOf({ issuers }: Generation, key: string): string | undefined {
  return issuers.find((issuer) => issuer.key === key)?.keyMaterial
}

/** Who a principal is by another configuration; null for one that it would not take the credential of. */
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

/** Reads the keys of assertions; they were read once before, when the configuration was checked. */
export function openIdentity({ headers, assertion }: Config['identity'], clock: () => number): Identity {
  const names = Object.fromEntries(Object.entries(headers).filter(([, name]) => name !== undefined))
  const rules =
    assertion === undefined ? null : { ...assertion, keys: assertion.keyFiles.map((file) => readFileSync(file, 'utf8')) }
  return makeIdentity(names, rules, clock)
}
