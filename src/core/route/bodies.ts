/**
 * What of a JSON body passes, and the ids that it names. Whatever is not in the route's closed set of keys is
 * dropped, as the runtime drops it too; `method` and `params` are in no set, so nothing that leaves here is a single-route
 * envelope by itself (runtime-behaviour.md, "Single-route transport").
 */
import type { RouteDescriptor } from './classify.ts'
import { filterForwardedProps } from './forwarded-props.ts'
import { isAgentId, isRunId, isThreadId } from './ids.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { refuse, type Refusal } from '../reasons.ts'
import type { Route } from './routes.ts'
import { atOnce, type Steps } from '../json/steps.ts'

export interface BodyPolicy {
  /** `forwardedProps` names that pass besides the built-in ones. */
  readonly forwardedProps: ReadonlySet<string>
  /** Whether the caller's `state` reaches the agent. */
  readonly state: 'pass' | 'drop'
  /** The names of the frontend's `tools` that reach the agent. */
  readonly tools: 'all' | ReadonlySet<string>
}

/** How many members a body may have, and the params of an envelope: no route has more than twenty. */
export const MAX_TOP_MEMBERS = 100

/** The objects in a body that may be written without some of their members (passingBody), by their paths. */
export const NARROWED: readonly string[] = ['state', 'forwardedProps', 'forwardedProps/command']

/** The configured bounds of bodies, in bytes. */
export interface BodyLimits {
  readonly body: number
  /** On routes whose bodies may be large. */
  readonly runBody: number
}

/** The configured bound of a body on a route, in bytes. */
export function configuredBody({ body, runBody }: BodyLimits, route: Route): number {
  return route.largeBody === true ? runBody : body
}

/** True where a request may come without a body. */
export function isBodyOptional({ body }: Route): boolean {
  return body.kind === 'none' || (body.kind === 'json' && body.optional === true)
}

/** The ids of a body, checked. */
export interface CheckedIds {
  readonly outcome: 'checked'
  /** The descriptor, with what the body says: the thread, on routes whose thread is there. */
  readonly descriptor: RouteDescriptor
}

/**
 * Checks the ids that a JSON body names.
 * @param descriptor of a route with a JSON body
 * @param value the body as the strict reader gave it
 * @returns the descriptor, or a refusal: 400 for an id that is missing or outside its grammar
 */
export function checkIds(descriptor: RouteDescriptor, value: JsonObject): CheckedIds | Refusal {
  const { route, ids } = descriptor
  const named = (key: string): Json | undefined => (isKeyOf(route, key) ? value[key] : undefined)
  if (named('agentId') !== undefined && !isAgentId(named('agentId'))) return refuse('agent-id-invalid')
  // The SDKs and the runtime write these into paths: `../../OTHER/runs/R` would end another's run, `..` leave the route.
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
    // Archiving is the owner's, by whatever route.
    const ownerOnly = named('archived') !== undefined
    return { outcome: 'checked', descriptor: ownerOnly ? { ...descriptor, ownerOnly } : descriptor }
  }
  const threadId = named('threadId')
  if (!isThreadId(threadId)) return refuse('thread-id-invalid')
  return { outcome: 'checked', descriptor: { ...descriptor, ids: { ...ids, threadId } } }
}

export interface PassingBody {
  readonly body: JsonObject
  /** Names of top-level keys, of forwarded properties and of tools that were dropped. */
  readonly dropped: readonly string[]
}

/**
 * Keeps of a JSON body what may pass.
 * @param value the body, whose ids were checked
 * @param policy what the policy lets through
 */
export function passingBody(route: Route, value: JsonObject, policy: BodyPolicy): PassingBody {
  return atOnce(passingInSteps(route, value, policy))
}

/** Keeps of it what may pass, in steps. */
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
      // The runtime's LangGraph agent adds the tools that it finds in the state to those of the run.
      body[key] = { ...part, tools: yield* filterTools(part['tools'], policy.tools, 'state.tools', dropped) }
    } else body[key] = part
  }
  return { body, dropped }
}

function isKeyOf({ body }: Route, key: string): boolean {
  return body.kind !== 'none' && body.keys.includes(key)
}

/** What a tool of a frontend is made of (AG-UI `Tool`). Another key could name another tool to a model. */
const TOOL_KEYS = ['name', 'description', 'parameters', 'metadata']

/** How many tools are looked at in one step. */
const TOOLS_AT_ONCE = 256

/**
 * Keeps of the frontend's tools those with a name that may pass. The runtime wants the list, be it empty (runtime-behaviour.md, "Run input").
 * @param place where it stands, for the names of what is dropped
 * @param dropped where these names go
 */
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

/** The known keys of a tool, each asked for by its name: a tool may have as many others as an object may have members. */
function madeOfKnown(tool: JsonObject): JsonObject {
  return Object.fromEntries(TOOL_KEYS.filter((key) => Object.hasOwn(tool, key)).map((key) => [key, tool[key] as Json]))
}

/** True for what a log can say of a tool. */
function isName(value: Json | undefined): value is string {
  return typeof value === 'string' && value.length <= 1024
}
