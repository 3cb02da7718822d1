/** Manages successive configurations: one snapshot is active, and what older ones have begun is checked against it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { conditionOf } from './upstream-handle.ts'
import { makeSnapshot, type ConfigSnapshot, type Origin, type Shared } from './snapshot.ts'
import type { Refusal } from '../core/reasons.ts'
import type { AnswerOwner } from '../http/upstream/open-answers.ts'
import { makeAnswerRecheck } from './answer-recheck.ts'
import type { Prepared } from './load.ts'

export type Basis = Omit<Shared, 'accessTo' | 'successorOf'>

export interface SnapshotManager {
  readonly current: () => ConfigSnapshot
  /**
   * Creates the next snapshot without activating it. New upstreams get time to answer the transport probe.
   * @throws Error for files that have changed since they were checked
   */
  readonly make: (prepared: Prepared) => Promise<ConfigSnapshot>
  readonly discard: (next: ConfigSnapshot) => Promise<void>
  /**
   * Activates a snapshot and ends the streams that it does not allow.
   * @throws Error if the gateway stops meanwhile; the previous snapshot then stays active
   */
  readonly put: (next: ConfigSnapshot) => Promise<void>
  readonly stop: () => void
}

/** Milliseconds that a new upstream may take for the transport probe, before requests that need it arrive and wait. */
const FIRST_ANSWER_MS = 5000

export function makeSnapshotManager(prepared: Prepared, basis: Basis): SnapshotManager {
  const { answers, readiness, log } = basis
  const origins = new WeakMap<AnswerOwner, Origin>()
  const shared: Shared = {
    ...basis,
    accessTo: (origin) => ({
      mark: () => review.mark(),
      changedSince: (mark, threadIds) => review.changedSince(mark, threadIds),
      isReplaced: () => origin.generation !== current,
      refusal(permit, permittedAt) {
        const { threadId } = permit.descriptor.ids
        const mayHaveEnded = permit.isUnsettled || (threadId !== undefined && review.changedSince(permittedAt, [threadId]))
        return mayHaveEnded || origin.generation !== current ? current.refusalNow(permit, origin).then(withoutTerm) : null
      },
      hidden(permit, threadIds, listedAt) {
        if (origin.generation === current && !review.changedSince(listedAt, threadIds)) return null
        return current.hiddenNow(permit, threadIds, origin)
      },
      opened(owner, permittedAt) {
        origins.set(owner, origin)
        review.opened(owner, permittedAt)
        // Replaced rules allowed it while it was on its way.
        if (origin.generation !== current) void review.check([owner])
      },
    }),
    successorOf: (origin, principal) => current.adopt(principal, origin),
  }

  const discard = async (next: ConfigSnapshot): Promise<void> => {
    next.retire(current)
    const others = [...next.connections].filter(([key, one]) => one !== current.connections.get(key))
    await Promise.all(others.map(([, { upstream }]) => upstream.close()))
  }

  const review = makeAnswerRecheck({
    invalidations: basis.store,
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
  let current = makeSnapshot(prepared, shared, null)
  current.takeOver()
  return {
    current: () => current,
    stop: review.stop,
    discard,
    async make(prepared) {
      const next = makeSnapshot(prepared, shared, current)
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
    async put(next) {
      const before = current
      if (basis.isShuttingDown()) {
        await discard(next)
        throw new Error('the gateway is shutting down')
      }
      current = next
      before.retire(next)
      // The next snapshot is not responsible for what was known of the previous upstream.
      for (const [key, connection] of before.connections) {
        if (next.connections.get(key) !== connection) readiness.set(conditionOf('unknownThread', key), null)
      }
      next.takeOver()
      await review.check(answers.owners())
    },
  }
}

/** Drops `for-now`: what is allowed now may begin, for however long that holds. */
function withoutTerm(refusal: Refusal | 'for-now' | null): Refusal | null {
  return refusal === 'for-now' ? null : refusal
}
