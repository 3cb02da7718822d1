/**
 * Names, archives and ends of threads that are listed from the table. The upstream is asked first; where it has no such
 * operation (422) the table does it, and answers as the managed platform does (contract §1).
 */
import type { Permit } from '../core/decide.ts'
import type { JsonObject } from '../core/json.ts'
import { refuse } from '../core/reasons.ts'
import { threadRecord } from '../core/table-lists.ts'
import { hasOperation, type RuntimeFacts } from '../core/transport.ts'
import type { OwnershipStore, ThreadAdministration } from '../store/port.ts'
import { noteChange, threadKey, type Claims } from './claims.ts'
import type { Departure } from './departure.ts'
import type { Exchange } from './exchange.ts'
import type { Forwarder } from './forward.ts'
import type { Payload } from './payload.ts'
import type { Rewritten } from './rewriting.ts'

/** What changes work with. */
export interface TableChangeParts {
  readonly store: Pick<OwnershipStore, 'rename' | 'archive' | 'endDeletion'> & Pick<ThreadAdministration, 'thread'>
  readonly scope: string
  readonly forwarder: Pick<Forwarder, 'ask'>
  readonly claims: Claims
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

/** Changes a thread as a permit allows. */
export type TableChange = (
  permit: Permit,
  payload: Payload,
  exchange: Exchange,
  upstream: RuntimeFacts,
  signal: Departure,
) => Promise<Rewritten>

/** Makes what changes threads. */
export function makeTableChange(parts: TableChangeParts): TableChange {
  const { store, forwarder, claims } = parts

  /** The answer, or null where the table has no such thread or can't make anything of what is asked. */
  const change = async (permit: Permit, payload: Payload, { deletion }: Exchange): Promise<JsonObject | null> => {
    const key = threadKey(permit, parts.scope)
    if (key === null || !isReadable(payload)) return null
    if (!(await noteChange(store, key, permit, payload, { now: parts.clock(), deletion, by: 'table' }))) return null
    const row = (await store.thread(key))?.row
    if (row?.owner !== permit.owner) return null
    const { id, method } = permit.descriptor.route
    if (method === 'DELETE') return row.deletedAt === null ? null : { threadId: key.threadId, deleted: true }
    if (id === 'threads/archive') return { threadId: key.threadId, archived: true }
    return threadRecord({ ...row, updatedAt: row.lastUsedAt })
  }

  return async (permit, payload, exchange, upstream, signal) => {
    if (!hasOperation(upstream, permit.descriptor.route)) {
      const done = await change(permit, payload, exchange)
      return done === null ? refuse('upstream-lacks-route') : { outcome: 'rewritten', body: JSON.stringify(done) }
    }
    const answer = await forwarder.ask(permit, exchange, signal, { payload })
    await claims.settle(permit, exchange, payload, answer)
    if (answer.outcome === 'failed') return answer
    // The managed platform has these operations: its 422 is about the request.
    if (answer.status !== 422 || upstream.managed) return { outcome: 'elsewise', answer }
    const done = await change(permit, payload, exchange).catch((error: unknown) => {
      answer.body.destroy()
      throw error
    })
    if (done === null) return { outcome: 'elsewise', answer }
    answer.body.destroy()
    return { outcome: 'rewritten', body: JSON.stringify(done) }
  }
}

/** What the runtime's clients send: a name is a text or null, and archived is yes or no. */
function isReadable(payload: Payload): boolean {
  if (payload.kind !== 'json') return payload.kind === 'none'
  const { name, archived } = payload
  const isName = name === undefined || name === null || typeof name === 'string'
  return isName && (archived === undefined || typeof archived === 'boolean')
}
