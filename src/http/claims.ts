/** Keeps the ownership table true to what became of a request (design "Claims"). */
import type { Permit } from '../core/decide.ts'
import type { Json } from '../core/json.ts'
import type { RouteId } from '../core/routes.ts'
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { ObservationStore, OwnershipStore, Registration, ThreadKey } from '../store/port.ts'
import type { Payload } from './payload.ts'
import type { UpstreamAnswer, UpstreamFailure } from './upstream.ts'

/** Notes what the upstream's answer means for the thread. */
export interface Claims {
  /** @returns null where there is nothing to note */
  settle(
    permit: Permit,
    registration: Registration,
    payload: Payload,
    result: UpstreamAnswer | UpstreamFailure,
  ): Promise<void> | null
}

/** Statuses of a 4xx after which the run may have started all the same: the server, or one before it, gave up waiting. */
const UNCERTAIN = new Set([408, 499])

/** The key of the thread that a permit is about. */
export function threadKey(permit: Permit, scope: string): ThreadKey | null {
  const { threadId } = permit.descriptor.ids
  return threadId === undefined ? null : { scope, threadId }
}

/**
 * Makes the keeper of claims.
 * @param scope the upstream's scope in the table
 * @param clock milliseconds since the epoch
 * @param observations where it is noted who used which thread, under `observe`
 */
export function makeClaims(
  store: OwnershipStore,
  scope: string,
  clock: () => number,
  metrics: Metrics,
  log: Logger,
  observations: ObservationStore | null = null,
): Claims {
  const note = async (
    permit: Permit,
    registration: Registration,
    payload: Payload,
    result: UpstreamAnswer | UpstreamFailure,
  ): Promise<void> => {
    const key = threadKey(permit, scope)
    if (key === null) return
    const { owner, principal, descriptor } = permit
    const confirmed = result.outcome === 'answered' && result.status >= 200 && result.status < 300
    if (confirmed) {
      const ran = descriptor.route.id === 'agent/run'
      await observations?.observe(key, principal.id, descriptor.ids.agentId ?? '', ran, clock())
    }
    if (permit.claim) {
      if (registration === null) return
      // That the upstream takes somebody else's run says nothing of whether the thread is the owner's.
      const settled = confirmed && principal.id === owner ? 'confirmed' : 'stays'
      const outcome = certainlyNotStarted(result) ? 'not-started' : settled
      if (await store.settle(key, owner, registration, outcome)) metrics.claimed('released')
      return
    }
    if (confirmed) await noteChange(store, key, permit, payload, clock(), 'upstream')
  }
  const settled = async (...said: Parameters<typeof note>): Promise<void> => {
    try {
      await note(...said)
    } catch (error) {
      // The row stays as it was before: with its owner, which is the safe side. The upstream has answered already.
      log.error({ err: error }, 'the ownership table could not be brought up to date')
    }
  }
  return {
    settle(permit, registration, payload, result) {
      const says = permit.claim ? registration !== null : CHANGING.has(permit.descriptor.route.id)
      return says || observations !== null ? settled(permit, registration, payload, result) : null
    },
  }
}

/** Routes that change what the table says of a thread. */
const CHANGING: ReadonlySet<RouteId> = new Set(['threads/archive', 'threads/update'])

/** The longest name that is kept, in characters. */
const MAX_NAME = 1000

/**
 * Notes what a request has changed of a thread.
 * @param by whether the upstream has done it, or the table alone: then the upstream still holds what was deleted
 * @returns true if it was one that changes something, and the thread is there
 */
export async function noteChange(
  store: Pick<OwnershipStore, 'bury' | 'rename' | 'archive'>,
  key: ThreadKey,
  { owner, descriptor }: Permit,
  payload: Payload,
  now: number,
  by: 'upstream' | 'table',
): Promise<boolean> {
  const { id, method } = descriptor.route
  if (id === 'threads/archive') return store.archive(key, owner, true)
  if (id !== 'threads/update') return false
  if (method === 'DELETE') {
    await store.bury(key, owner, now, by === 'upstream')
    return true
  }
  if (payload.kind !== 'json') return false
  const { name, archived } = payload
  const named = name === undefined || (await store.rename(key, owner, nameOf(name)))
  return named && (typeof archived !== 'boolean' || (await store.archive(key, owner, archived)))
}

/** A name as every store can keep it: PostgreSQL has no NUL, and a lone surrogate is no text. */
function nameOf(name: Json): string | null {
  return typeof name === 'string' ? name.toWellFormed().replaceAll('\0', '\ufffd').slice(0, MAX_NAME).toWellFormed() : null
}

/** Nothing was sent, or the upstream refused: only then can a claim be taken back. */
function certainlyNotStarted(result: UpstreamAnswer | UpstreamFailure): boolean {
  if (result.outcome === 'failed') return !result.maybeSent
  return result.status >= 400 && result.status < 500 && !UNCERTAIN.has(result.status)
}
