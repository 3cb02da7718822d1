/** Changes threads that the table lists, if the upstream lacks the operation (422; runtime-behaviour.md, "Routes"). */
import type { Permit } from '../../core/decide/decide.ts'
import { isObject, type JsonObject } from '../../core/json/read.ts'
import { isRefusal, refuse } from '../../core/reasons.ts'
import { threadRecord, type TableUse } from '../../core/wire/table-lists.ts'
import { withoutOwner } from '../../core/wire/thread-page.ts'
import { hasOperation } from '../../core/route/transport.ts'
import { noteChange, threadKey, type Settlement } from '../pipeline/settlement.ts'
import type { Forwarder } from '../upstream/forward.ts'
import { readAnswer, writtenAnew, type Rewritten } from './rewriting.ts'
import type { UpstreamAnswer } from '../upstream/upstream.ts'
import type { Authorized, Payload } from '../pipeline/stages.ts'
import type { OwnerChanges } from '../../store/port/claims.ts'
import type { RowStore } from '../../store/port/administration.ts'

export interface TableChangeParts {
  readonly store: Pick<OwnerChanges, 'rename' | 'archive' | 'endDeletion'> & Pick<RowStore, 'thread'>
  readonly scope: string
  readonly forwarder: Pick<Forwarder, 'ask' | 'refusal'>
  readonly settlement: Settlement
  readonly clock: () => number
}

export type TableChange = (request: Authorized, use: TableUse) => Promise<Rewritten>

const MAX_RECORD_BYTES = 1024 * 1024

export function makeTableChange(parts: TableChangeParts): TableChange {
  const { store, forwarder, settlement } = parts

  /** Null where the table has no such thread or can't use the request. */
  const change = async ({ permit, payload, begun }: Authorized): Promise<JsonObject | null> => {
    const key = threadKey(permit, parts.scope)
    if (key === null || !isReadable(payload)) return null
    if (!(await noteChange(store, key, permit, payload, { now: parts.clock(), deletion: begun.deletion, by: 'table' })))
      return null
    const row = (await store.thread(key))?.row
    if (row?.owner !== permit.owner) return null
    const { id, method } = permit.descriptor.route
    if (method === 'DELETE') return row.deletedAt === null ? null : { threadId: key.threadId, deleted: true }
    if (id === 'threads/archive') return { threadId: key.threadId, archived: true }
    return threadRecord({ ...row, updatedAt: row.lastUsedAt })
  }

  return async (request, use) => {
    const { permit, payload, upstream, begun } = request
    if (use !== 'never' && !hasOperation(upstream, permit.descriptor.route)) {
      const done = await change(request)
      return done === null ? refuse('upstream-lacks-route') : { outcome: 'rewritten', body: JSON.stringify(done) }
    }
    const answer = await forwarder.ask(request, { payload })
    await settlement.settle(permit, begun, payload, answer)
    if (answer.outcome === 'failed') return answer
    // The managed platform has these operations: its 422 is about the request.
    if (use === 'never' || answer.status !== 422 || upstream.managed) return changed(permit, answer)
    try {
      // The upstream took time, and the table makes no check of its own whether the caller may do this.
      const late = await forwarder.refusal(request)
      const done = late ?? (await change(request))
      if (done === null) return { outcome: 'passthrough', answer }
      answer.body.destroy()
      return isRefusal(done) ? done : { outcome: 'rewritten', body: JSON.stringify(done) }
    } catch (error) {
      answer.body.destroy()
      throw error
    }
  }
}

/** True for a change of another user's thread: the caller must not see what the upstream says of its owner. */
export function isOfOtherOwner({ owner, principal, observed }: Permit): boolean {
  return owner !== principal.id && observed === null
}

async function changed(permit: Permit, answer: UpstreamAnswer): Promise<Rewritten> {
  if (answer.status !== 200 || !isOfOtherOwner(permit)) return { outcome: 'passthrough', answer }
  const read = await readAnswer(answer, MAX_RECORD_BYTES, 'upstream-answer-unreadable')
  if (read.outcome !== 'read') return read
  return isObject(read.value)
    ? writtenAnew(withoutOwner(read.value), 'upstream-answer-unreadable')
    : refuse('upstream-answer-unreadable')
}

/** Accepts what the runtime's clients send: a name is a text or null, and archived is a boolean. */
function isReadable(payload: Payload): boolean {
  if (payload.kind !== 'json') return payload.kind === 'none'
  const { name, archived } = payload
  const isName = name === undefined || name === null || typeof name === 'string'
  return isName && (archived === undefined || typeof archived === 'boolean')
}
