/** Names the limits that a permitted request counts against: those of its rule before those of the configuration. */
import type { Config } from '../../config/schema.ts'
import { configuredBody } from '../../core/route/bodies.ts'
import type { Permit } from '../../core/decide/decide.ts'
import type { Rate } from '../../core/decide/rules.ts'

/** Limits as in a file; the body in bytes. */
export type LimitsOf = Readonly<Record<string, Rate | number | 'off'>>

/** Requests that a rule limits count against the limits of the configuration, too. */
export function limitsOf({ descriptor: { route }, rule, begins }: Permit, { limits }: Config): LimitsOf {
  const own = rule.limits
  return {
    requests: limits.requests,
    ...(own.requests === undefined ? {} : { 'requests of the rule': own.requests }),
    ...(route.id === 'agent/run' ? { runs: own.runs ?? limits.runs } : {}),
    ...(begins ? { newThreads: own.newThreads ?? limits.newThreads } : {}),
    ...(route.id === 'threads/grants' && route.method === 'POST' ? { grants: limits.grants } : {}),
    ...(route.streams === true ? { streams: own.streams ?? limits.streams } : {}),
    ...(route.body.kind === 'none' ? {} : { body: own.body ?? configuredBody(limits, route) }),
  }
}
