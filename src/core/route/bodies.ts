/** Decides which JSON keys pass: never `method` or `params` of an envelope (runtime-behaviour.md, "Single-route transport"). */
import type { RouteDescriptor } from './classify.ts'
import { filterForwardedProps } from './forwarded-props.ts'
import { isAgentId, isRunId, isThreadId } from './ids.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { refuse, type Refusal } from '../reasons.ts'
import type { Route } from './routes.ts'
import { atOnce, type Steps } from '../json/steps.ts'

export interface BodyPolicy {
  readonly forwardedProps: ReadonlySet<string>
  readonly state: 'pass' | 'drop'
  readonly tools: 'all' | ReadonlySet<string>
}

/** No route has more than twenty. */
export const MAX_TOP_MEMBERS = 100

/** Paths of the objects in a body that passingBody may return without some of their members. */
export const NARROWED: readonly string[] = ['state', 'forwardedProps', 'forwardedProps/command']

/** In bytes, as configured. */
export interface BodyLimits {
  readonly body: number
  readonly runBody: number
}

export function configuredBody({ body, runBody }: BodyLimits, route: Route): number {
  return route.largeBody === true ? runBody : body
}

export function isBodyOptional({ body }: Route): boolean {
  return body.kind === 'none' || (body.kind === 'json' && body.optional === true)
}

export interface CheckedIds {
  readonly outcome: 'checked'
  readonly descriptor: RouteDescriptor
}

/** @param value the body from the strict reader */
export function checkIds(descriptor: RouteDescriptor, value: JsonObject): CheckedIds | Refusal {
  const { route, ids } = descriptor
  const named = (key: string): Json | undefined => (isKeyOf(route, key) ? value[key] : undefined)
  if (named('agentId') !== undefined && !isAgentId(named('agentId'))) return refuse('agent-id-invalid')
  // The SDKs and the runtime write these into paths: `../../OTHER/runs/R` would end another user's run, `..` leave the route.
  for (const key of ['runId', 'parentRunId', 'clientEventId']) {
    if ((named(key) ?? null) !== null && !isRunId(named(key))) return refuse('run-id-invalid')
  }
  if (route.leave === true) {
    const [leaver, group] = [named('user'), named('group')]
    return {
      outcome: 'checked',
      descriptor: typeof leaver === 'string' && group === undefined ? { ...descriptor, leaver } : descriptor,
    }
  }
  if (route.thread !== 'body') {
    // Only the owner may archive, by whatever route.
    const ownerOnly = named('archived') !== undefined
    return { outcome: 'checked', descriptor: ownerOnly ? { ...descriptor, ownerOnly } : descriptor }
  }
  const threadId = named('threadId')
  if (!isThreadId(threadId)) return refuse('thread-id-invalid')
  return { outcome: 'checked', descriptor: { ...descriptor, ids: { ...ids, threadId } } }
}

export interface PassingBody {
  readonly body: JsonObject
  readonly dropped: readonly string[]
}

/** @param value its ids must be checked already */
export function passingBody(route: Route, value: JsonObject, policy: BodyPolicy): PassingBody {
  return atOnce(passingInSteps(route, value, policy))
}

export function* passingInSteps(route: Route, value: JsonObject, policy: BodyPolicy): Steps<PassingBody> {
  const body: Record<string, Json> = {}
  const dropped: string[] = []
  for (const [key, part] of Object.entries(value)) {
    if (!isKeyOf(route, key) || (key === 'state' && policy.state === 'drop')) dropped.push(key)
    else if (key === 'forwardedProps') {
      const props = filterForwardedProps(part, policy.forwardedProps)
      body[key] = props.kept
      for (const name of props.dropped) dropped.push(`forwardedProps.${name}`)
    } else if (key === 'tools' && policy.tools !== 'all') {
      body[key] = yield* filterTools(part, policy.tools, 'tools', dropped)
    } else if (key === 'state' && policy.tools !== 'all' && isObject(part) && part['tools'] !== undefined) {
      // The runtime's LangGraph agent adds the tools in the state to the tools of the run.
      body[key] = { ...part, tools: yield* filterTools(part['tools'], policy.tools, 'state.tools', dropped) }
    } else body[key] = part
  }
  return { body, dropped }
}

function isKeyOf({ body }: Route, key: string): boolean {
  return body.kind !== 'none' && body.keys.includes(key)
}

/** The keys of a frontend's tool (AG-UI `Tool`). Another key could name another tool to a model. */
const TOOL_KEYS = ['name', 'description', 'parameters', 'metadata']

const TOOLS_AT_ONCE = 256

/** The runtime requires the list, even an empty one (runtime-behaviour.md, "Run input"). `dropped` receives the names. */
function* filterTools(value: Json, allowed: ReadonlySet<string>, place: string, dropped: string[]): Steps<readonly Json[]> {
  const kept: Json[] = []
  if (!Array.isArray(value)) {
    dropped.push(place)
    return kept
  }
  for (const [at, tool] of (value as readonly Json[]).entries()) {
    if (at % TOOLS_AT_ONCE === TOOLS_AT_ONCE - 1) yield
    if (!isObject(tool)) dropped.push(place)
    else if (allowed.has(tool['name'] as string)) kept.push(madeOfKnown(tool))
    else dropped.push(isName(tool['name']) ? `${place}.${tool['name']}` : place)
  }
  return kept
}

/** Looks up each known key by name: a tool may have as many other keys as an object may have members. */
function madeOfKnown(tool: JsonObject): JsonObject {
  return Object.fromEntries(TOOL_KEYS.filter((key) => Object.hasOwn(tool, key)).map((key) => [key, tool[key] as Json]))
}

function isName(value: Json | undefined): value is string {
  return typeof value === 'string' && value.length <= 1024
}
