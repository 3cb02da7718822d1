/** Authorizes a request whose body was read. Must await nothing after the last check: the request is sent by what it found. */
import { configuredBody } from '../../core/route/bodies.ts'
import {
  decideMatched,
  type Enforcement,
  type Facts,
  type Need,
  type OwnerRecord,
  type Permit,
} from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import type { Reader } from '../../core/decide/sharing.ts'
import { isRefusal, refuse, type Refusal } from '../../core/reasons.ts'
import type { Limiter } from '../../limits/port.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'
import type { AccessStore, ThreadAccess } from '../../store/port/access.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import type { Authentication } from './authentication.ts'
import { NOTHING_BEGUN, type Begun, type Claiming, type Deletion } from './claim.ts'
import { lastingLimit, takeLimits, takeNewThread, takeTokens, type CallerLimits } from './limit-leases.ts'
import type { Authorized, Mark, Payload, Undecided } from './stages.ts'

export interface AuthorizationParts {
  readonly records: OwnerRecords
  readonly claiming: Claiming
  readonly invalidity: Authentication['invalidity']
  readonly limits: CallerLimits & { readonly body: number; readonly runBody: number }
  readonly limiter: Limiter
  readonly metrics: Pick<RequestMetrics, 'claimed' | 'upstreamFailed' | 'tokens'>
}

export interface Replaced {
  readonly outcome: 'replaced'
}

export type Authorize = (request: Undecided) => Promise<Authorized | Refusal | Replaced>

/** The facts of a request may change meanwhile: a history, a change of access, a lost race. */
const MOST_TURNS = 8

const REPLACED: Replaced = { outcome: 'replaced' }

/** The classification has already refused what no rule allows, so only a caller who may cause a look-up gets here. */
export function makeAuthorization(parts: AuthorizationParts): Authorize {
  const { records, claiming, invalidity, limits, limiter, metrics } = parts

  const askHistory = async (
    request: Undecided,
    need: Need,
    facts: Facts,
    threadId: string | undefined,
  ): Promise<Facts | Refusal> => {
    if (need.fact !== 'upstreamHistory' || threadId === undefined) throw new Error('a decision about a thread without its id')
    // The question is about a thread that would be new, so the limit on new threads applies before it.
    const limited = await takeNewThread(request.leases, need.rule.limits.newThreads, limits, limiter)
    if (limited !== null) return limited
    const { history: asking } = request.binding
    const { timing } = request.exchange
    const askedAt = performance.now()
    const history = await asking.ask(request, need.rule, threadId)
    timing.waited += performance.now() - askedAt
    if (isRefusal(history)) {
      metrics.upstreamFailed(history.reason)
      if (facts.enforcement === 'enforce') return history
    }
    if (history === 'cannot-tell') asking.onUntold()
    // Under `observe` the gateway reports nothing that it does not know.
    return { ...facts, upstreamHistory: history === 'none' || isRefusal(history) ? 'none' : 'some' }
  }

  /** Does what a permit requires before the request is sent; `again` where access has changed meanwhile. */
  const prepare = async (
    request: Undecided,
    permit: Permit,
    key: ThreadKey | null,
    permittedAt: Mark,
    deletes: () => Promise<Deletion | null>,
  ): Promise<Authorized | Refusal | 'again'> => {
    const { exchange, binding, caller, upstream, body, leases } = request
    const { route } = permit.descriptor
    // Body and history took time. Nothing begins for a credential that ended or was revoked meanwhile.
    const invalid = invalidity(caller)
    if (invalid !== null) return invalid
    const limiting = takeLimits(leases, permit, limits, limiter)
    const limited = limiting === null ? null : await limiting
    if (limited !== null) return limited
    const { passes } = permit.rule
    const passing = permit.begins && route.unknownThread === 'create' ? { ...passes, isNewThread: true as const } : passes
    const writing = body.write(passing, permit.rule.limits.body ?? configuredBody(limits, route))
    const payload = writing instanceof Promise ? await writing : writing
    if ('outcome' in payload) return { ...payload, rule: permit.rule }
    if (payload.kind === 'json' && payload.claimed !== null && key !== null) {
      const askedAt = performance.now()
      const forged = await binding.history.verify(request, permit.rule, key.threadId, payload.claimed)
      exchange.timing.waited += performance.now() - askedAt
      if (forged !== null) return { ...forged, rule: permit.rule }
    }
    const budgets = permit.rule.limits.tokens ?? limits.tokens
    const exceeded = budgets.length === 0 ? null : await takeTokens(leases, permit, budgets, bytesOf(payload), parts)
    if (exceeded !== null) return exceeded
    let begun: Begun = NOTHING_BEGUN
    let isKept = false
    try {
      if (key !== null && route.mayWrite === true) {
        const traced = exchange.trace?.begin('claim')
        const claimed = await claiming.begin(key, permit)
        traced?.end()
        if (claimed === 'lost-race') return 'again'
        begun = claimed
      }
      if (key !== null && route.deletesThread === true) begun = { ...begun, deletion: await deletes() }
      // Each of these took time, too. The claim is released unless the request is sent now.
      const late = invalidity(caller)
      if (late !== null) return late
      if (exchange.snapshot.outdated(permittedAt, key?.threadId)) return 'again'
      isKept = true
      if (begun.isNew) metrics.claimed('new')
      const takePlace = lastingLimit(leases, permit, limits, limiter)
      const { budget } = leases
      return {
        outcome: 'authorized',
        exchange,
        binding,
        caller,
        upstream,
        permit,
        payload,
        begun,
        permittedAt,
        takePlace,
        budget,
      }
    } finally {
      if (!isKept) {
        if (payload.kind === 'stream') payload.body.destroy()
        if (key !== null) await claiming.giveBack(key, permit, begun)
      }
    }
  }

  return async (request) => {
    const { exchange, binding, caller, match, body } = request
    const { snapshot, record } = exchange
    const { descriptor } = body
    const { threadId } = descriptor.ids
    record.descriptor = descriptor
    const key = threadId === undefined ? null : { scope: binding.scope, threadId }
    let facts: Facts = binding.facts
    let deletion: Deletion | null = null
    for (let turn = 0; turn < MOST_TURNS; turn += 1) {
      if (snapshot.isReplaced()) return REPLACED
      const asOf = snapshot.mark()
      if (key !== null && descriptor.route.thread !== undefined) {
        const looked = records.record(key, caller.principal)
        // A cached record is there at once: each await is a turn of the promise queue.
        if (looked instanceof Promise) {
          const traced = exchange.trace?.begin('store')
          facts = { ...facts, record: await looked }
          traced?.end()
        } else facts = { ...facts, record: looked }
      }
      record.facts = facts
      const decision = decideMatched(match, descriptor, facts)
      if (decision.outcome === 'refused') return decision
      if (decision.outcome === 'needs') {
        // The question takes time, and another user may own the thread then.
        const known = await askHistory(request, decision, facts, threadId)
        if (isRefusal(known)) return known
        facts = known
        continue
      }
      const isOwners = facts.record?.owner === decision.owner
      const prepared = await prepare(request, decision, key, asOf, async () => {
        if (key !== null && isOwners) deletion ??= await claiming.beginDeletion(key, decision, binding)
        return deletion
      })
      if (prepared !== 'again') return prepared
    }
    return refuse('store-unavailable')
  }
}

function bytesOf(payload: Payload): number {
  if (payload.kind !== 'json') return 0
  const { bytes } = payload
  return Buffer.isBuffer(bytes) ? bytes.length : bytes.reduce((sum, piece) => sum + piece.length, 0)
}

/** What a decision needs to know about a thread: its row or, without a row, the users seen on it. */
export interface OwnerRecords {
  record(key: ThreadKey, principal: Principal): OwnerRecord | Promise<OwnerRecord>
  records(scope: string, threadIds: readonly string[], principal: Principal): Promise<RecordsByThread>
  /** Of the threads that the caller owns or was granted. Null if there are too many, or under `observe`. */
  recordsOf(scope: string, principal: Principal): Promise<RecordsOfReader | null>
}

export interface RecordsByThread {
  get(threadId: string): OwnerRecord
}

export interface RecordsOfReader extends RecordsByThread {
  /** Of the threads with a record. */
  ids(): readonly string[]
}

/** Reading this many takes some ten milliseconds of SQLite. */
const MOST_OF_READER = 10_000

/** Under `observe`, the user seen first counts as the owner that a row would name. */
export function makeOwnerRecords(store: AccessStore, enforcement: Enforcement): OwnerRecords {
  return {
    record(key, principal) {
      const threadAccess = store.accessTo(key, readerOf(principal))
      return threadAccess instanceof Promise
        ? threadAccess.then((known) => recordOf(known, enforcement))
        : recordOf(threadAccess, enforcement)
    },
    async records(scope, threadIds, principal) {
      return recordsIn(await store.accessToSeveral(scope, threadIds, readerOf(principal)), enforcement)
    },
    async recordsOf(scope, principal) {
      // While nothing is enforced, a user also owns threads on which they were only seen.
      if (enforcement === 'observe') return null
      const theirs = await store.accessOfReader(scope, readerOf(principal), MOST_OF_READER)
      return theirs === null ? null : recordsIn(theirs, enforcement)
    },
  }
}

function recordsIn(several: ReadonlyMap<string, ThreadAccess>, enforcement: Enforcement): RecordsOfReader {
  let last: ThreadAccess | null = null
  let record: OwnerRecord = null
  const get = (threadId: string): OwnerRecord => {
    const threadAccess = several.get(threadId)
    if (threadAccess === undefined) return null
    // With SQLite, most threads of a user share what the store knows of them.
    if (threadAccess !== last) record = recordOf((last = threadAccess), enforcement)
    return record
  }
  return { get, ids: () => [...several.keys()].filter((threadId) => get(threadId) !== null) }
}

export function recordOf({ row, runners }: ThreadAccess, enforcement: Enforcement): OwnerRecord {
  if (row !== null) {
    const { owner, deleted, provisional, granted } = row
    return { owner, deleted, ...(provisional ? { provisional } : {}), ...(granted === null ? {} : { granted }) }
  }
  const [first, ...others] = runners
  if (first === undefined) return null
  if (enforcement === 'observe') return { owner: first, deleted: false }
  return { owner: others.length === 0 ? first : '', deleted: false, seen: true }
}

/** Anonymous callers have no groups, and nothing can be granted to them. */
export function readerOf(principal: Principal): Reader {
  return { userId: principal.id, groups: principal.kind === 'user' ? principal.groups : [] }
}
