/** How operators see a thread. */
import { NOBODY, type ThreadAdministration } from '../../store/port.ts'
import { shownGrant, type ShownGrant } from './grant-form.ts'

/** All that the table holds of a thread. */
type WholeThread = NonNullable<Awaited<ReturnType<ThreadAdministration['thread']>>>

/**
 * How a thread stands: `live`; `new` while no run of it is confirmed; `deleted` by its owner; `withheld` from whoever owned it;
 * `seen` where it has no row and was only seen under `observe`.
 */
export type ThreadState = 'live' | 'new' | 'deleted' | 'withheld' | 'seen'

/** A thread as operators see it; times as RFC 3339 writes them, null where there is no row. */
export interface ShownThread {
  readonly thread: string
  readonly state: ThreadState
  /** The user id; null for nobody. */
  readonly owner: string | null
  readonly agent: string | null
  readonly name: string | null
  readonly archived: boolean
  readonly createdAt: string | null
  readonly lastUsedAt: string | null
  readonly deletedAt: string | null
  readonly grants: readonly ShownGrant[]
  /** Who was seen to run it under `observe`, the first first. */
  readonly runners: readonly string[]
}

export function shownThread(threadId: string, { row, grants, runners }: WholeThread): ShownThread {
  return {
    thread: threadId,
    state: stateOf(row),
    owner: row === null || row.owner === NOBODY ? null : row.owner,
    // The table has no agent for rows that no request has made.
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
