/** Thread lists from the ownership table, for runtimes that have none (`ownership.lists`; runtime-behaviour.md, "Routes"). */
import type { Enforcement } from '../decide/decide.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { ROUTES, type Route } from '../route/routes.ts'
import { hasOperation, NO_ENDPOINTS, readRuntimeInfo, tunnelOf, type RuntimeFacts, type Transport } from '../route/transport.ts'

/** `auto`: the table if the upstream has none. */
export type ListSource = 'upstream' | 'table' | 'auto'

/** `where-refused`: if the upstream answers 422. */
export type TableUse = 'always' | 'where-refused' | 'never'

const LIST = ROUTES.find(({ id }) => id === 'threads/list') as Route

/** Under `observe` a run makes no row, so a list from the table would hold no thread that is begun. */
export function tableUse(source: ListSource, enforcement: Enforcement, upstream: RuntimeFacts): TableUse {
  if (source === 'upstream' || enforcement === 'observe') return 'never'
  if (source === 'table' || !hasOperation(upstream, LIST)) return 'always'
  if (upstream.lists === null) return 'where-refused'
  return upstream.lists ? 'never' : 'always'
}

export function isTableRoute({ id }: Route): boolean {
  return id === 'threads/list' || id === 'threads/update' || id === 'threads/archive'
}

/** @param info what the upstream reports: it may say more than the gateway knows so far */
export function tellsOfTable(use: TableUse, info: JsonObject): boolean {
  return use === 'always' || (use === 'where-refused' && readRuntimeInfo(info)?.lists === false)
}

/** Clients ask for lists and change threads only if /info allows it. `info` is correct for this client except for the table. */
export function withTableLists(client: Transport, info: JsonObject): JsonObject {
  const { singleRoute, threadEndpoints } = info
  if (client === 'multi-route') return { ...info, threadEndpoints: served(threadEndpoints) }
  // Without the tunnel this client would ask for nothing of a thread. Parts that the upstream lacks answer 404.
  const tunnel = tunnelOf(singleRoute) ?? { resourceOperations: true }
  return { ...info, singleRoute: { ...tunnel, threadEndpoints: served(tunnel['threadEndpoints']) } }
}

function served(endpoints: Json | undefined): JsonObject {
  return { ...NO_ENDPOINTS, ...(isObject(endpoints) ? endpoints : {}), list: true, mutations: true }
}

/** Times are milliseconds since the epoch. */
export interface ShownThread {
  readonly threadId: string
  readonly agentId: string
  readonly name: string | null
  readonly archived: boolean
  readonly createdAt: number
  readonly updatedAt: number
}

/** Without any user's id: a user with a grant need not know the owner. */
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
