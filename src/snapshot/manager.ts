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

interface Handles {
  readonly current: () => ConfigSnapshot
  readonly recheck: AnswerRecheck
  readonly origins: WeakMap<AnswerOwner, Origin>
  readonly onDecision: OnDecision
}

class SnapshotHandle implements RequestSnapshot, Origin {
  readonly snapshot: ConfigSnapshot
  readonly pipeline: Pipeline
  upstreamKey = ''
  readonly #handles: Handles
  readonly #previous: SnapshotHandle | null
  #letGo: (() => void) | null

  constructor(handles: Handles, previous: SnapshotHandle | null) {
    this.snapshot = handles.current()
    this.pipeline = this.snapshot.pipeline
    this.#handles = handles
    this.#previous = previous
    this.#letGo = this.snapshot.hold()
  }

  mark(): Mark {
    return this.#handles.recheck.mark()
  }

  changedSince(mark: Mark, threadIds: readonly string[]): boolean {
    return this.#handles.recheck.changedSince(mark, threadIds)
  }

  isReplaced(): boolean {
    return this.snapshot !== this.#handles.current()
  }

  refusal(permit: Permit, permittedAt: Mark): Promise<Refusal | null> | null {
    const { threadId } = permit.descriptor.ids
    const mayHaveEnded = permit.isUnsettled || (threadId !== undefined && this.changedSince(permittedAt, [threadId]))
    if (!mayHaveEnded && !this.isReplaced()) return null
    // What is allowed now may begin, for however long that is the case.
    return this.#handles
      .current()
      .refusalNow(permit, this)
      .then((refusal) => (refusal === 'for-now' ? null : refusal))
  }

  hidden(permit: Permit, threadIds: readonly string[], listedAt: Mark): Promise<ReadonlySet<string>> | null {
    if (!this.isReplaced() && !this.changedSince(listedAt, threadIds)) return null
    return this.#handles.current().hiddenNow(permit, threadIds, this)
  }

  opened(owner: AnswerOwner, permittedAt: Mark): void {
    const { recheck, origins } = this.#handles
    origins.set(owner, this)
    recheck.opened(owner, permittedAt)
    // Replaced rules allowed it while it was on its way.
    if (this.isReplaced()) void recheck.check([owner])
  }

  decided(exchange: Exchange, outcome: Refusal | 'permitted'): void {
    this.#handles.onDecision(this.snapshot, exchange, outcome)
  }

  successor(principal: Principal): Successor | Refusal {
    const next = this.#handles.current()
    const known = next.adopt(principal, this)
    const binding = known === null ? undefined : next.pipeline.bindingOf(known.mount.key)
    if (known === null || binding === undefined) return refuse('rules-changed')
    const snapshot = new SnapshotHandle(this.#handles, this)
    snapshot.upstreamKey = binding.key
    return { outcome: 'succeeds', snapshot, binding, principal: known.principal }
  }

  release(): void {
    this.#letGo?.()
    this.#letGo = null
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
    next.retire(current)
    const others = [...next.handles].filter(([key, one]) => one !== current.handles.get(key))
    await Promise.all(others.map(([, { upstream }]) => upstream.close()))
  }

  const recheck = makeAnswerRecheck({
    invalidations: store,
    answers,
    allows: async (owner) => {
      const origin = origins.get(owner)
      if (owner.permit === undefined || origin === undefined) return true
      const { permit, tellsOf = [] } = owner
      const refusal = await current.refusalNow(permit, origin)
      if (refusal === 'for-now') return refusal
      return refusal === null && (tellsOf.length === 0 || (await current.hiddenNow(permit, tellsOf, origin)).size === 0)
    },
    log,
  })
  let current = makeSnapshot(prepared, surroundings, null)
  const handles: Handles = { current: () => current, recheck, origins, onDecision }
  current.activate()
  return {
    current: () => current,
    enter: () => new SnapshotHandle(handles, null),
    stop: recheck.stop,
    discard,
    async make(prepared) {
      const next = makeSnapshot(prepared, surroundings, current)
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
      const before = current
      if (requests.state.isShuttingDown()) {
        await discard(next)
        throw new Error('the gateway is shutting down')
      }
      current = next
      before.retire(next)
      // The next snapshot is not responsible for what was known of the previous upstream.
      for (const [key, handle] of before.handles) {
        if (next.handles.get(key) !== handle) readiness.set(conditionOf('unknownThread', key), null)
      }
      next.activate()
      await recheck.check(answers.owners())
    },
  }
}
