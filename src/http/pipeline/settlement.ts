/** Updates the ownership table after the upstream's answer to a request (docs/explanation/ownership.md). */
import { CLAIMING, type Permit } from '../../core/decide/decide.ts'
import type { Json } from '../../core/json/read.ts'
import type { RouteId } from '../../core/route/routes.ts'
import { answerKind } from '../../core/wire/headers.ts'
import type { Logger } from '../../observe/log.ts'
import type { RequestMetrics } from '../../observe/metrics.ts'
import type { ObservationStore } from '../../store/port/observations.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import type { Begun, Deletion } from './claim.ts'
import type { Payload } from './stages.ts'
import type { UpstreamAnswer, UpstreamFailure } from '../upstream/upstream.ts'
import type { ClaimStore, OwnerChanges } from '../../store/port/claims.ts'

export interface Settlement {
  settle(
    permit: Permit,
    begun: Pick<Begun, 'registration' | 'deletion'>,
    payload: Payload,
    result: UpstreamAnswer | UpstreamFailure,
  ): Promise<void> | null
}

/** 4xx statuses after which the run may have started: the server, or a server in front of it, gave up waiting. */
const UNCERTAIN = new Set([408, 499])

export function threadKey(permit: Permit, scope: string): ThreadKey | null {
  const { threadId } = permit.descriptor.ids
  return threadId === undefined ? null : { scope, threadId }
}

export type SettlementStore = Pick<ClaimStore, 'settle'> & Pick<OwnerChanges, 'endDeletion' | 'rename' | 'archive'>

/** The clock gives milliseconds since the epoch. Under `observe`, `observations` notes who used which thread. */
export function makeSettlement(
  store: SettlementStore,
  scope: string,
  clock: () => number,
  metrics: RequestMetrics,
  log: Logger,
  observations: Pick<ObservationStore, 'observe'> | null = null,
): Settlement {
  const note = async (
    permit: Permit,
    { registration, deletion }: Pick<Begun, 'registration' | 'deletion'>,
    payload: Payload,
    result: UpstreamAnswer | UpstreamFailure,
  ): Promise<void> => {
    const key = threadKey(permit, scope)
    if (key === null) return
    const { owner, principal, descriptor } = permit
    const confirmed = isConfirmed(result)
    if (confirmed) {
      const use = CLAIMING.has(descriptor.route.unknownThread) ? 'run' : 'other'
      await observations?.observe(key, principal.id, descriptor.ids.agentId ?? '', use, clock())
    }
    if (permit.claim) {
      if (registration === null) return
      // An upstream that accepts another user's run does not show that the thread is the owner's.
      const settled = confirmed && principal.id === owner ? 'confirmed' : 'stays'
      const isLeft = descriptor.isInSteps === true && result.outcome === 'answered' && result.status !== 409
      const outcome = certainlyNotStarted(result) && !isLeft ? 'not-started' : settled
      if (await store.settle(key, owner, registration, outcome)) metrics.claimed('released')
      return
    }
    if (confirmed) await noteChange(store, key, permit, payload, { now: clock(), deletion, by: 'upstream' })
  }
  const settled = async (...said: Parameters<typeof note>): Promise<void> => {
    try {
      await note(...said)
    } catch (error) {
      // The row keeps its owner, which is the safe state. The upstream has answered already.
      log.error({ err: error }, 'the ownership table could not be updated')
    }
  }
  return {
    settle(permit, begun, payload, result) {
      const { route } = permit.descriptor
      const says = permit.claim ? begun.registration !== null : route.deletesThread === true || CHANGING.has(route.id)
      return says || observations !== null ? settled(permit, begun, payload, result) : null
    },
  }
}

const CHANGING: ReadonlySet<RouteId> = new Set(['threads/archive', 'threads/update'])

/** In characters. */
const MAX_NAME = 1000

type TableChanges = Pick<OwnerChanges, 'endDeletion' | 'rename' | 'archive'>

export interface Change {
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly deletion: Deletion | null
  /** With `table`, only the table has changed: the upstream still has the deleted thread. */
  readonly by: 'upstream' | 'table'
}

/** @returns true if the request is of a kind that changes something, and the thread exists */
export async function noteChange(
  store: TableChanges,
  key: ThreadKey,
  { owner, descriptor }: Permit,
  payload: Payload,
  { now, deletion, by }: Change,
): Promise<boolean> {
  const { route } = descriptor
  if (route.id === 'threads/archive') return store.archive(key, owner, { archived: true })
  if (route.deletesThread === true) {
    if (deletion === null) return false
    const upstream = by === 'upstream' && deletion.isUndisturbed ? 'deleted' : 'unknown'
    return store.endDeletion(key, owner, deletion.token, now, upstream)
  }
  if (route.id !== 'threads/update' || payload.kind !== 'json') return false
  const { name, archived } = payload
  const named = name === undefined || (await store.rename(key, owner, nameOf(name)))
  return named && (typeof archived !== 'boolean' || (await store.archive(key, owner, { archived })))
}

/** A name that every store can keep: PostgreSQL has no NUL, and a lone surrogate is not text. */
function nameOf(name: Json): string | null {
  return typeof name === 'string' ? name.toWellFormed().replaceAll('\0', '\ufffd').slice(0, MAX_NAME).toWellFormed() : null
}

/** A page with status 200 comes from a server in between, such as a sign-in page: the runtime answers no route with HTML. */
function isConfirmed(result: UpstreamAnswer | UpstreamFailure): boolean {
  if (result.outcome === 'failed' || result.status < 200 || result.status >= 300) return false
  return answerKind(result.status, result.headers) !== 'html'
}

/** True if nothing was sent, or the upstream refused: only then can a claim be taken back. */
export function certainlyNotStarted(result: UpstreamAnswer | UpstreamFailure): boolean {
  if (result.outcome === 'failed') return !result.maybeSent
  return result.status >= 400 && result.status < 500 && !UNCERTAIN.has(result.status)
}
