/**
 * Lists of threads from the ownership table, for runtimes whose runner has none (`ownership.lists`): where the table answers,
 * and how it answers, which is as the runtime does (runtime-behaviour.md, "Routes").
 */
import type { Enforcement } from '../decide/decide.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { ROUTES, type Route } from '../route/routes.ts'
import { hasOperation, NO_ENDPOINTS, readRuntimeInfo, tunnelOf, type RuntimeFacts, type Transport } from '../route/transport.ts'

/** Where lists come from: the upstream, the table, or the table where the upstream has none. */
export type ListSource = 'upstream' | 'table' | 'auto'

/** Whether the table answers in the upstream's place: always, where that answers 422, or never. */
export type TableUse = 'always' | 'where-refused' | 'never'

const LIST = ROUTES.find(({ id }) => id === 'threads/list') as Route

/**
 * How the table is used before an upstream.
 * @param source what is configured
 * @param enforcement under `observe` callers get what the upstream gives, and nothing else: a run makes no row then, so that
 * a list from the table would hold none of the threads that are begun
 * @param upstream what it is known to be
 */
export function tableUse(source: ListSource, enforcement: Enforcement, upstream: RuntimeFacts): TableUse {
  if (source === 'upstream' || enforcement === 'observe') return 'never'
  if (source === 'table' || !hasOperation(upstream, LIST)) return 'always'
  if (upstream.lists === null) return 'where-refused'
  return upstream.lists ? 'never' : 'always'
}

/** True for what the table can do by itself: lists, and with them names, archives and ends. */
export function isTableRoute({ id }: Route): boolean {
  return id === 'threads/list' || id === 'threads/update' || id === 'threads/archive'
}

/**
 * True where clients are to be told that lists and changes of threads work.
 * @param info what the upstream says of itself: it may say more than is known of it so far
 */
export function tellsOfTable(use: TableUse, info: JsonObject): boolean {
  return use === 'always' || (use === 'where-refused' && readRuntimeInfo(info)?.lists === false)
}

/**
 * /info as it is true where the table answers: clients ask for lists, and change threads, only where it says that they may.
 * @param client the transport of the client
 * @param info as it is true for this client but for the table
 */
export function withTableLists(client: Transport, info: JsonObject): JsonObject {
  const { singleRoute, threadEndpoints } = info
  if (client === 'multi-route') return { ...info, threadEndpoints: served(threadEndpoints) }
  // Without the tunnel this client would ask for nothing of a thread; what the upstream lacks of it is 404.
  const tunnel = tunnelOf(singleRoute) ?? { resourceOperations: true }
  return { ...info, singleRoute: { ...tunnel, threadEndpoints: served(tunnel['threadEndpoints']) } }
}

function served(endpoints: Json | undefined): JsonObject {
  return { ...NO_ENDPOINTS, ...(isObject(endpoints) ? endpoints : {}), list: true, mutations: true }
}

/** What the table knows of a thread that is shown. Times are milliseconds since the epoch. */
export interface ShownThread {
  readonly threadId: string
  readonly agentId: string
  readonly name: string | null
  readonly archived: boolean
  readonly createdAt: number
  readonly updatedAt: number
}

/**
 * A thread in the runtime's own shape. Nobody's id stands in it: the runtime in memory leaves `createdById` empty, too, and
 * whoever a thread was shared with need not know its owner.
 */
export function threadRecord({ threadId, agentId, name, archived, createdAt, updatedAt }: ShownThread): JsonObject {
  return {
    id: threadId,
    name,
    agentId,
    organizationId: '',
    createdById: '',
    archived,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
  }
}
