/** Shows threads to operators. */
import type { WholeThread } from '../store/port/administration.ts'
import { NOBODY } from '../store/port/thread.ts'
import { shownGrant, type ShownGrant } from './grant-form.ts'

/**
 * `new`: no run is confirmed. `deleted`: by its owner. `withheld`: its owner was removed. `seen`: it has no row, and was only
 * seen under `observe`.
 */
export type ThreadState = 'live' | 'new' | 'deleted' | 'withheld' | 'seen'

/** Times are in RFC 3339 format, null where there is no row. */
export interface ShownThread {
  readonly thread: string
  readonly state: ThreadState
  /** The user id; null for an unowned thread. */
  readonly owner: string | null
  readonly agent: string | null
  readonly name: string | null
  readonly archived: boolean
  readonly createdAt: string | null
  readonly lastUsedAt: string | null
  readonly deletedAt: string | null
  readonly grants: readonly ShownGrant[]
  /** The users who ran it under `observe`, earliest first. */
  readonly runners: readonly string[]
}

export function shownThread(threadId: string, { row, grants, runners }: WholeThread): ShownThread {
  return {
    thread: threadId,
    state: stateOf(row),
    owner: row === null || row.owner === NOBODY ? null : row.owner,
    // Rows that no request has made have no agent.
    agent: row === null || row.agentId === '' ? null : row.agentId,
    name: row?.name ?? null,
    archived: row?.archived ?? false,
    createdAt: timeOf(row?.createdAt),
    lastUsedAt: timeOf(row?.lastUsedAt),
    deletedAt: timeOf(row?.deletedAt),
    grants: grants.map(shownGrant),
    runners,
  }
}

function stateOf(row: WholeThread['row']): ThreadState {
  if (row === null) return 'seen'
  if (row.deletedAt !== null) return 'deleted'
  if (row.owner === NOBODY) return 'withheld'
  return row.provisional ? 'new' : 'live'
}

function timeOf(time: number | null | undefined): string | null {
  return time === null || time === undefined ? null : new Date(time).toISOString()
}
