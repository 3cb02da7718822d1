/** Manages successive configuration snapshots: one is active, and what older ones have begun is checked against it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Permit } from '../core/decide/decide.ts'
import type { Principal } from '../core/decide/principal.ts'
import { refuse, type Refusal } from '../core/reasons.ts'
import type { AnswerOwner } from '../http/upstream/open-answers.ts'
import { makeAnswerRecheck, type AnswerRecheck } from './stream-recheck.ts'
import type { Prepared } from './load.ts'
import { makeSnapshot, type ConfigSnapshot, type Origin, type SnapshotSurroundings } from './snapshot.ts'
import { conditionOf } from './upstream-handle.ts'
import type { Exchange, Mark, Pipeline, RequestSnapshot, Successor } from '../http/pipeline/stages.ts'

export type OnDecision = (snapshot: ConfigSnapshot, exchange: Exchange, outcome: Refusal | 'permitted') => void

export interface SnapshotManager {
  readonly current: () => ConfigSnapshot
  readonly enter: () => RequestSnapshot
  /** New upstreams get time to answer the probe. @throws Error for files that have changed since they were checked */
  readonly make: (prepared: Prepared) => Promise<ConfigSnapshot>
  readonly discard: (next: ConfigSnapshot) => Promise<void>
  /** Ends the streams that the snapshot forbids. @throws Error if the gateway stops meanwhile: the previous stays active */
  readonly activate: (next: ConfigSnapshot) => Promise<void>
  readonly stop: () => void
}

/** Milliseconds that a new upstream may take for the transport probe, before requests that need it arrive and wait. */
const FIRST_ANSWER_MS = 5000

/** What all handles share. */
interface Shared {
  active: ConfigSnapshot
  readonly recheck: AnswerRecheck
  readonly origins: WeakMap<AnswerOwner, Origin>
  readonly onDecision: OnDecision
}

class SnapshotHandle implements RequestSnapshot, Origin {
  readonly snapshot: ConfigSnapshot
  readonly pipeline: Pipeline
  upstreamKey = ''
  readonly #shared: Shared
  readonly #previous: SnapshotHandle | null
  #isReleased = false

  constructor(shared: Shared, previous: SnapshotHandle | null) {
    this.snapshot = shared.active
    this.pipeline = shared.active.pipeline
    this.#shared = shared
    this.#previous = previous
    this.snapshot.requests.underWay += 1
  }

  mark(): Mark {
    return this.#shared.recheck.mark
  }

  isReplaced(): boolean {
    return this.snapshot !== this.#shared.active
  }

  outdated(since: Mark, threadId: string | undefined): boolean {
    const { active, recheck } = this.#shared
    if (this.snapshot !== active) return true
    return threadId !== undefined && since !== recheck.mark && recheck.changedSince(since, [threadId])
  }

  refusal(permit: Permit, permittedAt: Mark): Promise<Refusal | null> | null {
    if (!permit.isUnsettled && !this.outdated(permittedAt, permit.descriptor.ids.threadId)) return null
    // A request that is allowed now may begin.
    return this.#shared.active.refusalNow(permit, this).then((refusal) => (refusal === 'for-now' ? null : refusal))
  }

  hidden(permit: Permit, threadIds: readonly string[], listedAt: Mark): Promise<ReadonlySet<string>> | null {
    const { active, recheck } = this.#shared
    if (this.snapshot === active && !recheck.changedSince(listedAt, threadIds)) return null
    return active.hiddenNow(permit, threadIds, this)
  }

  opened(owner: AnswerOwner, permittedAt: Mark): void {
    const { recheck, origins } = this.#shared
    origins.set(owner, this)
    recheck.opened(owner, permittedAt)
    // Replaced rules allowed it while it was on its way.
    if (this.isReplaced()) void recheck.check([owner])
  }

  decided(exchange: Exchange, outcome: Refusal | 'permitted'): void {
    this.#shared.onDecision(this.snapshot, exchange, outcome)
  }

  successor(principal: Principal): Successor | Refusal {
    const next = this.#shared.active
    const known = next.adopt(principal, this)
    const binding = known === null ? undefined : next.pipeline.bindingOf(known.mount.key)
    if (known === null || binding === undefined) return refuse('rules-changed')
    const snapshot = new SnapshotHandle(this.#shared, this)
    snapshot.upstreamKey = binding.key
    return { outcome: 'succeeds', snapshot, binding, principal: known.principal }
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    const { requests } = this.snapshot
    requests.underWay -= 1
    if (requests.underWay === 0) requests.onLast?.()
    this.#previous?.release()
  }
}

export function makeSnapshotManager(
  prepared: Prepared,
  surroundings: SnapshotSurroundings,
  onDecision: OnDecision,
): SnapshotManager {
  const { readiness, requests, store } = surroundings
  const { answers, log } = requests
  const origins = new WeakMap<AnswerOwner, Origin>()

  const discard = async (next: ConfigSnapshot): Promise<void> => {
    next.retire(shared.active)
    const others = [...next.handles].filter(([key, one]) => one !== shared.active.handles.get(key))
    await Promise.all(others.map(([, { upstream }]) => upstream.close()))
  }

  const recheck = makeAnswerRecheck({
    invalidations: store,
    answers,
    allows: async (owner) => {
      const origin = origins.get(owner)
      if (owner.permit === undefined || origin === undefined) return true
      const { permit, tellsOf = [] } = owner
      const refusal = await shared.active.refusalNow(permit, origin)
      if (refusal === 'for-now') return refusal
      return refusal === null && (tellsOf.length === 0 || (await shared.active.hiddenNow(permit, tellsOf, origin)).size === 0)
    },
    log,
  })
  const shared: Shared = { active: makeSnapshot(prepared, surroundings, null), recheck, origins, onDecision }
  shared.active.activate()
  return {
    current: () => shared.active,
    enter: () => new SnapshotHandle(shared, null),
    stop: recheck.stop,
    discard,
    async make(prepared) {
      const next = makeSnapshot(prepared, surroundings, shared.active)
      const waiting = new AbortController()
      try {
        const late = sleep(FIRST_ANSWER_MS, undefined, { signal: waiting.signal }).catch(() => {})
        await Promise.race([next.begin(), late])
      } catch (error) {
        await discard(next)
        throw error
      } finally {
        waiting.abort()
      }
      return next
    },
    async activate(next) {
      const before = shared.active
      if (requests.state.isShuttingDown) {
        await discard(next)
        throw new Error('the gateway is shutting down')
      }
      // First: if the listener did not take the certificate, nothing has changed.
      if (next.tls !== null) surroundings.secure(next.tls)
      shared.active = next
      before.retire(next)
      // The next snapshot does not answer for facts about the previous upstream.
      for (const [key, handle] of before.handles) {
        if (next.handles.get(key) !== handle) readiness.set(conditionOf('unknownThread', key), null)
      }
      next.activate()
      await recheck.check(answers.owners())
    },
  }
}
