/** Reads the upstream's own list of threads, for an import from a runtime or LangGraph server, with the owners from elsewhere. */
import { valueAt } from '../../core/json/pointer.ts'
import { isObject, type Json, type JsonObject } from '../../core/json/read.ts'
import { LANGGRAPH, type RuntimeFacts, type Transport } from '../../core/route/transport.ts'
import { askRuntime } from '../../http/upstream/transport-probe.ts'
import { NoList, threadPages } from '../../http/upstream/thread-pages.ts'
import type { Upstream } from '../../http/upstream/upstream.ts'
import { SourceFault, type Problem } from './problem.ts'
import { isAgentId, isThreadId } from '../../core/route/ids.ts'
import { NOBODY, type ThreadKey } from '../../store/port/thread.ts'
import { isThreadName, NOBODY_WORD, readEntry, refusedIdText, type Entry, type Reading } from './entry.ts'
import type { StagingTable } from './staging-table.ts'
import { disputes } from './takeover.ts'

interface ListedItem {
  readonly id: string
  readonly item: JsonObject
  /** What the list says of the thread besides its owner, by columns of a source. */
  readonly facts: Readonly<Record<string, unknown>>
}

const FACTS_TIMEOUT_MS = 60_000

interface UpstreamListParts {
  readonly upstream: Upstream
  readonly basePath: string
  readonly headers: Readonly<Record<string, string>>
  /** The transport that the configuration names, or null. */
  readonly named: Transport | null
  /** The agents whose threads are listed; empty for all agents in one list. A managed runtime has no list without an agent. */
  readonly agentIds: readonly string[]
  readonly signal: AbortSignal
}

/** @throws SourceFault if the upstream gives no list, or not all of it */
export async function* upstreamList(parts: UpstreamListParts): AsyncGenerator<ListedItem> {
  const facts = await askFacts(parts)
  try {
    for (const agentId of parts.agentIds.length === 0 ? [null] : parts.agentIds) {
      for await (const threads of threadPages({ ...parts, facts }, agentId)) {
        for (const { id, item } of threads) yield { id, item, facts: factsOf(item) }
      }
    }
  } catch (error) {
    throw error instanceof NoList ? new SourceFault(error.message + hintFor(error)) : error
  }
}

type ServerListParts = Omit<UpstreamListParts, 'named' | 'agentIds'> & {
  /** The member of a thread in which the owner is. */
  readonly ownerIn: string | null
}

/** The threads of a LangGraph server. @throws SourceFault if it gives no list, or not all of it */
export async function* serverList({ ownerIn, ...parts }: ServerListParts): AsyncGenerator<ListedItem> {
  const select = ['metadata', 'created_at', 'updated_at', ...(ownerIn === null ? [] : [ownerIn])]
  try {
    for await (const threads of threadPages({ ...parts, facts: LANGGRAPH, select }, null)) {
      for (const { id, item } of threads) yield { id, item, facts: serverFactsOf(item) }
    }
  } catch (error) {
    throw error instanceof NoList ? new SourceFault(error.message + serverHintFor(error)) : error
  }
}

function serverHintFor({ status }: NoList): string {
  switch (status) {
    case 401:
    case 403:
      return ': pass a credential with --token-file, or in headers of the upstream'
    case 404:
      return ': check that a LangGraph server listens there, and basePath'
    default:
      return ''
  }
}

async function askFacts(parts: UpstreamListParts): Promise<RuntimeFacts> {
  const signal = AbortSignal.any([parts.signal, AbortSignal.timeout(FACTS_TIMEOUT_MS)])
  const verdict = await askRuntime(parts, parts.named, signal)
  if (verdict.kind !== 'runtime') throw new SourceFault(`the upstream does not answer as a runtime: ${verdict.why}`)
  return verdict.facts
}

function hintFor({ status }: NoList): string {
  switch (status) {
    case 400:
      return ': name an agent with --agent, which a managed runtime requires'
    case 401:
    case 403:
      return ': pass a credential with --token-file, or in upstream.headers'
    case 404:
    case 422:
      return ': its runner keeps no list, so import a file'
    default:
      return ''
  }
}

export type Whose = (item: ListedItem, scope: string) => Owner

/** `line` is that of the mapping, or null. */
type Owner =
  | { readonly kind: 'user'; readonly user: string; readonly line: number | null }
  | { readonly kind: 'problems'; readonly problems: Iterable<Problem> }

export function byMapping(mapping: StagingTable): Whose {
  return ({ id }, scope) => {
    const key = { scope, threadId: id }
    const row = mapping.ownerOf(key)
    if (row === null) return unmapped(key, 'the mapping has no owner for it')
    if (row === 'disputed') return { kind: 'problems', problems: disputes(mapping, key) }
    return { kind: 'user', user: row.owner === NOBODY ? NOBODY_WORD : row.owner, line: row.line }
  }
}

/** @param field a name, or a JSON pointer: the upstream fills it with the subject of a user of the issuer */
export function byField(field: string, issuer: string): Whose {
  return ({ id, item }, scope) => {
    const subject = field.startsWith('/') ? valueAt(item, field) : Object.hasOwn(item, field) ? item[field] : undefined
    if (typeof subject !== 'string' || subject === '')
      return unmapped({ scope, threadId: id }, `its field ${field} does not name an owner`)
    return { kind: 'user', user: `${issuer}:${subject}`, line: null }
  }
}

function unmapped(key: ThreadKey, reason: string): Owner {
  return { kind: 'problems', problems: [{ kind: 'unmapped', line: null, ...key, owner: null, users: [], reason }] }
}

/**
 * Leaves out unreadable facts: they are the upstream's, and no decision depends on them.
 * @param reported ids that the mapping has and the gateway refuses: the report already has them
 */
export async function* upstreamEntries(
  items: AsyncIterable<ListedItem>,
  whose: Whose,
  scope: string,
  reading: Reading,
  reported: ReadonlySet<string> = new Set(),
): AsyncGenerator<Entry | Problem> {
  for await (const listed of items) {
    if (!isThreadId(listed.id)) {
      const [line, reason, owner, refusedId] = [0, refusedIdText(listed.id), null, listed.id]
      if (!reported.has(listed.id)) yield { kind: 'fault', line, reason, scope, threadId: null, refusedId, owner }
      continue
    }
    const owner = whose(listed, scope)
    if (owner.kind === 'problems') yield* owner.problems
    else yield readEntry(owner.line ?? 0, { ...listed.facts, scope, thread: listed.id, user: owner.user }, reading)
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

function serverFactsOf(item: JsonObject): Readonly<Record<string, unknown>> {
  const { metadata, created_at: createdAt, updated_at: updatedAt } = item
  const graph = isObject(metadata) ? metadata['graph_id'] : undefined
  return {
    ...(isAgentId(graph) ? { agent: graph } : {}),
    archived: false,
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
