/** Notes in the ownership table what a permitted request is about to do, before it is sent. */
import type { Permit } from '../../core/decide/decide.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'
import { type ClaimStore, type OwnerChanges, type Registration, LONGEST_RUN } from '../../store/port/claims.ts'
import type { ThreadKey } from '../../store/port/thread.ts'

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
  beginDeletion(key: ThreadKey, permit: Permit, upstream: { readonly sharesScope: boolean }): Promise<Deletion | null>
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
        const { owner, principal, descriptor } = permit
        // A run by a user other than the owner does not change who owns the thread.
        const guest = owner !== principal.id
        const by = { userId: owner, agentId: descriptor.ids.agentId ?? '', guest, now: clock() }
        const claim = await store.claim(key, by)
        if (claim.outcome !== 'foreign') {
          return { registration: claim.registration, isNew: claim.outcome === 'new', endRun, deletion: null }
        }
      } catch (error) {
        endRun('over')
        throw error
      }
      // Another user was faster, or the owner took the thread away.
      endRun('over')
      metrics.claimed('lost-race')
      return 'lost-race'
    },
    async beginDeletion(key, { owner }, { sharesScope }) {
      const token = await store.beginDeletion(key, owner)
      // A run that executes at this moment may write after the deletion, even if the run is over when the upstream answers.
      const isUndisturbed = !sharesScope && !runs.mayBeExecuting(key)
      return token === null ? null : { token, isUndisturbed }
    },
    async giveBack(key, { owner }, { registration, endRun }) {
      endRun?.('over')
      if (registration !== null) await store.settle(key, owner, registration, 'not-started')
    },
  }
}

/** `over`: the run is certainly no longer executing, or never was. Only the first call has an effect. */
export type EndRun = (state: 'over' | 'unknown') => void

export interface Deletion {
  readonly token: string
  /** True if, as far as this process knows, the upstream holds nothing of the thread once it confirms the deletion. */
  readonly isUndisturbed: boolean
}

/**
 * The runs, suggestions and annotations that this process has sent and that may still be executing.
 * Such a run may write to its thread after the thread's deletion.
 * So may a run whose end the gateway did not see: a caller who leaves does not stop a run.
 */
export interface RunsUnderWay {
  /** Called before the run is claimed. */
  begin(key: ThreadKey): EndRun
  mayBeExecuting(key: ThreadKey): boolean
}

interface Noted {
  open: number
  /** Milliseconds since the epoch: the start of the last run whose end the gateway did not see. */
  lostAt: number
}

/** Beyond it, every thread counts as having such a run for as long as a run may last. */
const MOST_LOST = 100_000

/** @param clock milliseconds since the epoch */
export function makeRunsUnderWay(clock: () => number): RunsUnderWay {
  const noted = new Map<string, Noted>()
  let forgotAt = -Infinity
  let sweptAt = clock()

  const sweep = (now: number): void => {
    if (noted.size <= MOST_LOST && now - sweptAt < LONGEST_RUN) return
    sweptAt = now
    for (const [name, { open, lostAt }] of noted) {
      if (open > 0) continue
      if (now - lostAt < LONGEST_RUN) {
        if (noted.size <= MOST_LOST) continue
        forgotAt = now
      }
      noted.delete(name)
    }
  }

  return {
    begin(key) {
      const name = `${key.scope}/${key.threadId}`
      const begunAt = clock()
      let one = noted.get(name)
      if (one === undefined) noted.set(name, (one = { open: 0, lostAt: -Infinity }))
      one.open += 1
      let ended = false
      return (state) => {
        if (ended) return
        ended = true
        one.open -= 1
        if (state === 'unknown') one.lostAt = Math.max(one.lostAt, begunAt)
        if (one.open === 0 && one.lostAt === -Infinity) noted.delete(name)
        else if (state === 'unknown') sweep(clock())
      }
    },
    mayBeExecuting(key) {
      const now = clock()
      const one = noted.get(`${key.scope}/${key.threadId}`)
      return now - forgotAt < LONGEST_RUN || (one !== undefined && (one.open > 0 || now - one.lostAt < LONGEST_RUN))
    },
  }
}
