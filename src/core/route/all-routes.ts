/** The routes of each kind of upstream, with those that the gateway answers itself. */
import { LANGGRAPH_ROUTES } from './langgraph-routes.ts'
import { OWN_ROUTES, ROUTES, type Route, type RouteId } from './routes.ts'

/** A self-hosted agent has one path, to which runs are POSTed. */
export type UpstreamApi = 'runtime' | 'agent' | 'langgraph'

export const ROUTES_OF: Readonly<Record<UpstreamApi, readonly Route[]>> = {
  runtime: [...ROUTES, ...OWN_ROUTES],
  agent: [...ROUTES.filter(({ id }) => id === 'agent/run'), ...OWN_ROUTES],
  langgraph: [...LANGGRAPH_ROUTES, ...OWN_ROUTES],
}

export const ALL_ROUTES: readonly Route[] = [...ROUTES, ...LANGGRAPH_ROUTES, ...OWN_ROUTES]

export const ROUTE_IDS: readonly RouteId[] = [...new Set(ALL_ROUTES.map((row) => row.id))]

/** The gateway refuses any of them twice. */
export const QUERY_NAMES: ReadonlySet<string> = new Set(ALL_ROUTES.flatMap((row) => row.query))
