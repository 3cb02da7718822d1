/** Combines the upstream's list of threads with their owners, from a mapping or from a field of the list. */
import { isAgentId } from '../../core/route/ids.ts'
import type { Json, JsonObject } from '../../core/json/read.ts'
import type { ThreadKey } from '../../store/port/thread.ts'
import { isThreadName, readEntry, type Entry, type Reading } from './entry.ts'
import type { Problem } from './problem.ts'
import type { StagingTable } from './staging-table.ts'
import { disputes } from './takeover.ts'
import type { ListedItem } from './upstream-list.ts'

export type Whose = (item: ListedItem, scope: string) => Owner

/** `line` is that of the mapping, or null. */
export type Owner =
  | { readonly kind: 'user'; readonly user: string; readonly line: number | null }
  | { readonly kind: 'problems'; readonly problems: Iterable<Problem> }

export function byMapping(mapping: StagingTable): Whose {
  return ({ id }, scope) => {
    const key = { scope, threadId: id }
    const row = mapping.ownerOf(key)
    if (row === null) return unmapped(key, 'the mapping does not say whose it is')
    if (row === 'disputed') return { kind: 'problems', problems: disputes(mapping, key) }
    return { kind: 'user', user: row.owner, line: row.line }
  }
}

/** By a field that the upstream fills with the subject of a user of the issuer. */
export function byField(field: string, issuer: string): Whose {
  return ({ id, item }, scope) => {
    const subject = Object.hasOwn(item, field) ? item[field] : undefined
    if (typeof subject !== 'string' || subject === '')
      return unmapped({ scope, threadId: id }, `its ${field} does not say whose it is`)
    return { kind: 'user', user: `${issuer}:${subject}`, line: null }
  }
}

function unmapped(key: ThreadKey, reason: string): Owner {
  return { kind: 'problems', problems: [{ kind: 'unmapped', line: null, ...key, owner: null, users: [], reason }] }
}

/** Leaves out unreadable facts: they are the upstream's, and no decision depends on them. */
export async function* upstreamEntries(
  items: AsyncIterable<ListedItem>,
  whose: Whose,
  scope: string,
  reading: Reading,
): AsyncGenerator<Entry | Problem> {
  for await (const listed of items) {
    const owner = whose(listed, scope)
    if (owner.kind === 'problems') yield* owner.problems
    else yield readEntry(owner.line ?? 0, { ...factsOf(listed.item), scope, thread: listed.id, user: owner.user }, reading)
  }
}

function factsOf(item: JsonObject): Readonly<Record<string, unknown>> {
  const { agentId, name, archived, createdAt, updatedAt } = item
  return {
    ...(isAgentId(agentId) ? { agent: agentId } : {}),
    ...(isThreadName(name) ? { name } : {}),
    archived: archived === true,
    created: timeIn(createdAt),
    used: timeIn(updatedAt),
  }
}

function timeIn(value: Json | undefined): string | undefined {
  const time = typeof value === 'string' ? Date.parse(value) : typeof value === 'number' ? value : Number.NaN
  const date = new Date(time)
  return Number.isNaN(date.getTime()) || date.getUTCFullYear() > 9999 || date.getUTCFullYear() < 0
    ? undefined
    : date.toISOString()
}
