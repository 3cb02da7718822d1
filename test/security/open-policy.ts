/** A policy that opens as much as a policy can, so that nothing but the rule under test is left to refuse. */
import { RUNTIME_ROUTE_IDS, RUNTIME_ROUTES } from '../../testing/support/runtime-routes.ts'
import type { RouteId } from '../../src/core/route/routes.ts'

const CREATING: readonly RouteId[] = ['agent/run', 'agent/connect', 'agent/suggest']
const OF_ALL: readonly RouteId[] = ['threads/clear', 'cpk-debug-events']
const ABOUT_THREADS = [...new Set(RUNTIME_ROUTES.filter((route) => route.thread !== undefined).map((route) => route.id))]
const OF_NOBODY = RUNTIME_ROUTE_IDS.filter((id) => ![...ABOUT_THREADS, ...OF_ALL, 'threads/list', 'threads/grants'].includes(id))

/** Everything to operators, foreign threads too; all that a policy can open to others is open to everybody. */
export const OPEN_POLICY = JSON.stringify({
  version: 1,
  operators: [{ role: 'operator' }],
  rules: [
    { routes: OF_ALL, allow: ['operator'] },
    { routes: ['threads/list'], allow: ['signed-in'] },
    { routes: OF_NOBODY, allow: ['anonymous', 'signed-in'] },
    { routes: CREATING, allow: ['anonymous', 'signed-in'], threads: ['own', 'unknown'] },
    { routes: ['threads/grants'], allow: ['signed-in'], threads: ['own'] },
    {
      routes: ABOUT_THREADS.filter((id) => !CREATING.includes(id) && id !== 'threads/grants'),
      allow: ['anonymous', 'signed-in'],
      threads: ['own'],
    },
    { routes: ['threads/grants'], allow: ['signed-in'], threads: ['own'] },
    { routes: [...ABOUT_THREADS, 'threads/grants'], allow: ['operator'], threads: ['foreign'] },
  ],
})
