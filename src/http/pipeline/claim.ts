/** Notes in the ownership table what a permitted request is about to do, before it is sent. */
import type { Permit } from '../../core/decide/decide.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'
import type { Claim, ClaimStore, OwnerChanges, Registration } from '../../store/port/claims.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import type { Deletion, EndRun, RunsUnderWay } from './runs-under-way.ts'

export interface ClaimParts {
  readonly store: ClaimStore & Pick<OwnerChanges, 'beginDeletion'>
  readonly runs: RunsUnderWay
  readonly metrics: Pick<RequestMetrics, 'claimed'>
  readonly clock: () => number
}

export interface Begun {
  readonly registration: Registration
  readonly isNew: boolean
  /** Null for a request that is not a run. */
  readonly endRun: EndRun | null
  readonly deletion: Deletion | null
}

export const NOTHING_BEGUN: Begun = { registration: null, isNew: false, endRun: null, deletion: null }

export interface Claiming {
  /** @returns `lost-race` where another user owns the thread by now */
  begin(key: ThreadKey, permit: Permit): Promise<Begun | 'lost-race'>
  /** Null where the table has no such thread. `sharesScope`: another upstream may hold the thread as well. */
  beginDeletion(key: ThreadKey, permit: Permit, sharesScope: boolean): Promise<Deletion | null>
  giveBack(key: ThreadKey, permit: Permit, begun: Begun): Promise<void>
}

export function makeClaiming({ store, runs, metrics, clock }: ClaimParts): Claiming {
  return {
    async begin(key, permit) {
      if (permit.descriptor.route.mayWrite !== true) return NOTHING_BEGUN
      const endRun = runs.begin(key)
      try {
        if (!permit.claim) {
          await store.noteWrite(key, clock())
          return { ...NOTHING_BEGUN, endRun }
        }
        const claim = await store.claim(key, claimOf(permit, clock()))
        if (claim.outcome !== 'foreign') {
          return { registration: claim.registration, isNew: claim.outcome === 'new', endRun, deletion: null }
        }
      } catch (error) {
        endRun(true)
        throw error
      }
      // Another user was faster, or the owner took the thread away.
      endRun(true)
      metrics.claimed('lost-race')
      return 'lost-race'
    },
    async beginDeletion(key, { owner }, sharesScope) {
      const token = await store.beginDeletion(key, owner)
      // A run that executes at this moment may write after the deletion, even if the run is over when the upstream answers.
      const isUndisturbed = !sharesScope && !runs.mayBeExecuting(key)
      return token === null ? null : { token, isUndisturbed }
    },
    async giveBack(key, { owner }, { registration, endRun }) {
      endRun?.(true)
      if (registration !== null) await store.settle(key, owner, registration, 'not-started')
    },
  }
}

/** A run by a user other than the owner does not change who owns the thread. */
function claimOf({ owner, principal, descriptor }: Permit, now: number): Claim {
  return { userId: owner, agentId: descriptor.ids.agentId ?? '', guest: owner !== principal.id, now }
}
