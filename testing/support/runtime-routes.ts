/** The routes of a runtime and of the gateway itself, without those of a LangGraph server. */
import { ROUTES_OF } from '../../src/core/route/all-routes.ts'
import type { RouteId } from '../../src/core/route/routes.ts'

export const RUNTIME_ROUTES = ROUTES_OF.runtime

export const RUNTIME_ROUTE_IDS: readonly RouteId[] = [...new Set(RUNTIME_ROUTES.map(({ id }) => id))]
