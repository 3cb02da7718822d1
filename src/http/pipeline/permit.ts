/** Makes a permit for a request whose body was read: gathers facts, applies limits, writes the body again, claims the thread. */
import { configuredBody } from '../../core/route/bodies.ts'
import { decide, type Facts, type Permit, type StandingFacts } from '../../core/decide/decide.ts'
import { narrowed, upstreamHeaders, type UpstreamHeaderRules } from '../../core/wire/headers.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { isRefusal, refuse, type LimitState, type Refusal } from '../../core/reasons.ts'
import { deletesThread } from '../../core/route/routes.ts'
import type { Rate, Rules } from '../../core/decide/rules.ts'
import type { RuntimeFacts } from '../../core/route/transport.ts'
import type { Limiter, RateName } from '../../limits/port.ts'
import type { Metrics } from '../../observe/metrics.ts'
import type { Claim, ClaimResult, OwnershipStore, ThreadKey } from '../../store/port.ts'
import type { Access } from './access.ts'
import type { ClientDisconnect } from './client-disconnect.ts'
import type { Exchange } from './exchange.ts'
import type { AskHistory } from './history.ts'
import type { Identity } from './identity.ts'
import type { OwnerRecords } from './owner-records.ts'
import type { Payload, ReadBody } from './payload.ts'
import type { Deletion, EndRun, RunsUnderWay } from './runs-under-way.ts'

/** The limits of every caller, where no rule of the policy has others. */
export interface CallerLimits {
  readonly requests: Rate | 'off'
  readonly runs: Rate | 'off'
  readonly newThreads: Rate | 'off'
  readonly streams: number | 'off'
}

export interface PermitParts {
  readonly rules: Rules
  readonly facts: StandingFacts
  readonly scope: string
  /** True where other upstreams have the same scope: one may hold what another has deleted. */
  readonly sharesScope: boolean
  readonly records: OwnerRecords
  readonly store: Pick<OwnershipStore, 'claim' | 'settle' | 'beginDeletion' | 'noteWrite'>
  readonly runs: RunsUnderWay
  readonly access: Pick<Access, 'mark' | 'changedSince' | 'isReplaced'>
  readonly limits: CallerLimits & { readonly body: number; readonly runBody: number }
  readonly limiter: Limiter
  readonly headerRules: UpstreamHeaderRules
  readonly identity: Pick<Identity, 'headers'>
  readonly askHistory: AskHistory
  /** Called when `verify` meets an upstream that does not serve thread histories. */
  readonly onHistoryUntold: () => void
  readonly metrics: Pick<Metrics, 'claimed' | 'upstreamFailed'>
  /** What is wrong with the credential of a request by now; null for nothing. */
  readonly outdated: (exchange: Exchange) => Refusal | null
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export interface Granted {
  readonly outcome: 'granted'
  readonly permit: Permit
  readonly payload: Payload
}

/** Another configuration is active by now: that configuration alone may decide the request. */
export interface Replaced {
  readonly outcome: 'replaced'
}

/** The most decisions for a request whose facts change meanwhile: a history, a change of access, a lost race. */
const MOST_TURNS = 8

/**
 * Nothing is awaited after the last check, so the gateway sends the request by what it knows and has configured then.
 * The gate has decided, before the body was read, that the rules allow the request to some caller.
 * So the gateway looks up a record only for a caller who may cause a look-up.
 */
export async function permitFor(
  parts: PermitParts,
  body: ReadBody,
  upstream: RuntimeFacts,
  principal: Principal,
  taken: LimitsTaken,
  exchange: Exchange,
  signal: ClientDisconnect,
): Promise<Granted | Refusal | Replaced> {
  const { descriptor } = body
  const { threadId } = descriptor.ids
  exchange.descriptor = descriptor
  exchange.threadId = threadId
  const key = threadId === undefined ? null : { scope: parts.scope, threadId }
  const taking = limitLeases(parts, taken)
  let facts: Facts = parts.facts
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    if (parts.access.isReplaced()) return { outcome: 'replaced' }
    const asOf = parts.access.mark()
    if (key !== null && descriptor.route.thread !== undefined) {
      const looked = parts.records.record(key, principal)
      // A remembered record is there at once: each await is a turn of the promise queue.
      facts = { ...facts, record: looked instanceof Promise ? await looked : looked }
    }
    exchange.facts = facts
    const decision = decide(descriptor, principal, parts.rules, facts)
    if (decision.outcome === 'refused') return decision
    if (decision.outcome === 'needs') {
      if (decision.fact !== 'upstreamHistory' || threadId === undefined)
        throw new Error('a decision about a thread without its id')
      // The question is about a thread that would be new, so the limit on new threads applies before it.
      const late = await taking.begin(decision.rule.limits.newThreads)
      if (late !== null) return late
      const history = await parts.askHistory(
        upstream,
        threadId,
        upstreamHeaders(exchange.lines, narrowed(parts.headerRules, decision.rule), {
          ...parts.identity.headers(principal, descriptor),
          'x-request-id': exchange.id,
        }),
        signal,
      )
      if (isRefusal(history)) {
        parts.metrics.upstreamFailed(history.reason)
        if (facts.enforcement === 'enforce') return history
      }
      if (history === 'cannot-tell') parts.onHistoryUntold()
      // Under `observe` the gateway reports nothing that it does not know.
      // The question took time, and another user may own the thread by now.
      facts = { ...facts, upstreamHistory: history === 'none' || isRefusal(history) ? 'none' : 'some' }
      continue
    }
    // Body and history took time. Nothing begins for a credential that ended or was revoked meanwhile.
    const outdated = parts.outdated(exchange)
    if (outdated !== null) return outdated
    let claim: ClaimResult | null = null
    let endRun: EndRun | null = null
    let keeps = false
    let payload: Payload | null = null
    try {
      const limiting = taking.all(decision)
      const limited = limiting === null ? null : await limiting
      if (limited !== null) return limited
      const most = decision.rule.limits.body ?? configuredBody(parts.limits, descriptor.route)
      const writing = body.write(decision.rule.passes, most)
      const written = writing instanceof Promise ? await writing : writing
      if ('outcome' in written) return written
      payload = written
      if (key !== null && descriptor.route.mayWrite === true) {
        endRun = parts.runs.begin(key)
        if (decision.claim) claim = await parts.store.claim(key, claimOf(decision, parts.clock()))
        else await parts.store.noteWrite(key, parts.clock())
      }
      if (key !== null && exchange.deletion === null && deletesThread(descriptor.route) && facts.record?.owner === decision.owner)
        exchange.deletion = await beginDeletion(parts, key, decision)
      if (claim?.outcome === 'foreign') {
        // Another user was faster, or the owner took the thread away: decide again with what the store says now.
        parts.metrics.claimed('lost-race')
        continue
      }
      // Each of these took time, too. What was claimed is given back unless the request is sent now.
      const late = parts.outdated(exchange)
      if (late !== null) return late
      if (parts.access.isReplaced() || (threadId !== undefined && parts.access.changedSince(asOf, [threadId]))) continue
      keeps = true
      exchange.registration = claim?.registration ?? null
      exchange.endRun = endRun
      exchange.permittedAt = asOf
      exchange.takePlace = taking.lasting(decision)
      if (claim?.outcome === 'new') parts.metrics.claimed('new')
      return { outcome: 'granted', permit: decision, payload }
    } finally {
      if (!keeps) {
        if (payload?.kind === 'stream') payload.body.destroy()
        endRun?.(true)
        if (key !== null) await giveBack(parts, key, decision, claim)
      }
    }
  }
  return refuse('store-unavailable')
}

/** Notes a deletion before it is sent; null where the table has no such thread. */
async function beginDeletion(
  { store, runs, sharesScope }: PermitParts,
  key: ThreadKey,
  { owner }: Permit,
): Promise<Deletion | null> {
  const token = await store.beginDeletion(key, owner)
  // A run that executes at this moment may write after the deletion, even if the run is over when the upstream answers.
  const isUndisturbed = !sharesScope && !runs.mayBeExecuting(key)
  return token === null ? null : { token, isUndisturbed }
}

async function giveBack({ store }: PermitParts, key: ThreadKey, { owner }: Permit, claim: ClaimResult | null): Promise<void> {
  if (claim === null || claim.outcome === 'foreign' || claim.registration === null) return
  await store.settle(key, owner, claim.registration, 'not-started')
}

/** A run by a user other than the owner does not change who owns the thread. */
function claimOf({ owner, principal, descriptor }: Permit, now: number): Claim {
  return { userId: owner, agentId: descriptor.ids.agentId ?? '', guest: owner !== principal.id, now }
}

/** What one request has taken of its caller's limits: each limit once, however often the request is decided. */
export interface LimitsTaken {
  readonly caller: () => string
  take(limiter: Limiter, name: RateName, who: string, rate: Rate): Promise<LimitState | null>
  open(limiter: Limiter, most: number): Promise<LimitState | null>
  /** Gives the place back. A place that is taken later is given back at once. */
  release(): void
}

export function limitsTaken(caller: () => string): LimitsTaken {
  const rates = new Set<RateName>()
  let close: (() => void) | null = null
  let isOver = false
  return {
    caller,
    take: (limiter, name, who, rate) => {
      if (rates.has(name)) return Promise.resolve(null)
      rates.add(name)
      return limiter.take(name, who, rate)
    },
    open: async (limiter, most) => {
      if (close !== null) return null
      const opened = await limiter.open(caller(), most)
      if (typeof opened !== 'function') return opened
      if (isOver) opened()
      else close = opened
      return null
    },
    release: () => {
      isOver = true
      close?.()
      close = null
    },
  }
}

function limitLeases({ limits, limiter }: PermitParts, taken: LimitsTaken) {
  const { caller } = taken
  const take = async (
    name: RateName,
    reason: 'requests-limited' | 'runs-limited' | 'new-threads-limited',
    who: string,
    rate: Rate,
  ): Promise<Refusal | null> => {
    const limit = await taken.take(limiter, name, who, rate)
    return limit === null ? null : refuse(reason, { limit })
  }
  const open = async (most: number): Promise<Refusal | null> => {
    const limit = await taken.open(limiter, most)
    return limit === null ? null : refuse('streams-limited', { limit })
  }
  const begin = (own: Rate | 'off' | undefined): Promise<Refusal | null> | null => {
    const rate = own ?? limits.newThreads
    return rate === 'off' ? null : take('newThreads', 'new-threads-limited', caller(), rate)
  }
  /** What has to be taken for a permit, in this order. A step runs only if all steps before it succeeded. */
  const needed = ({ descriptor: { route }, rule, begins }: Permit): readonly (() => Promise<Refusal | null> | null)[] => {
    const { requests = 'off', runs = limits.runs, streams = limits.streams, newThreads } = rule.limits
    const all: (() => Promise<Refusal | null> | null)[] = []
    if (requests !== 'off') all.push(() => take('requests', 'requests-limited', JSON.stringify([rule.name, caller()]), requests))
    if (runs !== 'off' && route.id === 'agent/run') all.push(() => take('runs', 'runs-limited', caller(), runs))
    if (begins) all.push(() => begin(newThreads))
    if (streams !== 'off' && route.streams === true) all.push(() => open(streams))
    return all
  }
  const inTurn = async (steps: readonly (() => Promise<Refusal | null> | null)[]): Promise<Refusal | null> => {
    for (const step of steps) {
      const late = await step()
      if (late !== null) return late
    }
    return null
  }
  return {
    begin,
    /** Null where nothing is limited: there is nothing to await. */
    all: (permit: Permit): Promise<Refusal | null> | null => {
      const steps = needed(permit)
      return steps.length === 0 ? null : inTurn(steps)
    },
    /** Takes a place for an answer that lasts; null where that is not limited, or was done for the permit. */
    lasting: ({ descriptor: { route }, rule }: Permit): (() => Promise<boolean>) | null => {
      const { streams = limits.streams } = rule.limits
      if (streams === 'off' || route.streams === true) return null
      return async () => (await open(streams)) === null
    },
  }
}
