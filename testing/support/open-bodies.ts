/** A policy of bodies that takes nothing out, but what no policy lets through. */
import { passingBody, type BodyPolicy, type PassingBody } from '../../src/core/route/bodies.ts'
import { MESSAGE_ROLES } from '../../src/core/route/message-rules.ts'
import type { JsonObject } from '../../src/core/json/read.ts'
import type { Route } from '../../src/core/route/routes.ts'

export const OPEN_BODIES: BodyPolicy = {
  forwardedProps: new Set(),
  state: 'pass',
  tools: 'all',
  messages: {
    roles: new Set(MESSAGE_ROLES),
    others: 'drop',
    most: 'off',
    size: 'off',
    media: 'all',
    schemes: 'all',
    history: 'trust',
  },
  langgraph: { options: new Set(), command: new Set(), configurable: new Set(), input: 'all' },
}

/** @throws Error for a body that the policy refuses */
export function passingOf(route: Route, body: JsonObject, policy: BodyPolicy = OPEN_BODIES): PassingBody {
  const passing = passingBody(route, body, policy)
  if (passing.outcome === 'refused') throw new Error(passing.reason)
  return passing
}
