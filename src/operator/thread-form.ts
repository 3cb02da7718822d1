/** Shows threads to operators. */
import type { WholeThread } from '../store/port/administration.ts'
import { NOBODY } from '../store/port/thread.ts'
import { shownGrant } from './grant-form.ts'

/** A thread for the admin API. Times are in RFC 3339 format, null where there is no row; `runners` ran it under `observe`, earliest first. */
export function shownThread(threadId: string, { row, grants, runners }: WholeThread) {
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

function stateOf(row: WholeThread['row']) {
  // It was only seen under `observe`.
  if (row === null) return 'seen'
  if (row.deletedAt !== null) return 'deleted'
  if (row.owner === NOBODY) return 'withheld'
  return row.provisional ? 'new' : 'live'
}

function timeOf(time: number | null | undefined): string | null {
  return time === null || time === undefined ? null : new Date(time).toISOString()
}
