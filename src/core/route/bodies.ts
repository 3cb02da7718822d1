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

/** The SDKs and the runtime write these into paths: `../../OTHER/runs/R` would end another user's run, `..` leave the route. */
const RUN_ID_KEYS = ['runId', 'parentRunId', 'clientEventId']

/** @param value the body from the strict reader */
export function checkIds(descriptor: RouteDescriptor, value: JsonObject): CheckedIds | Refusal {
  const { route, ids } = descriptor
  const named = (key: string): Json | undefined => (route.body.keys.includes(key) ? value[key] : undefined)
  const agentId = named('agentId')
  if (agentId !== undefined && !isAgentId(agentId)) return refuse('agent-id-invalid')
  for (const key of RUN_ID_KEYS) {
    const runId = named(key) ?? null
    if (runId !== null && !isRunId(runId)) return refuse('run-id-invalid')
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
  /** The value itself if all of it passes. */
  readonly body: JsonObject
  readonly dropped: readonly string[]
}

export function* passingInSteps(route: Route, value: JsonObject, policy: BodyPolicy): Steps<PassingBody> {
  return passingBody(route, value, policy, policy.tools === 'all' ? ALL_TOOLS : yield* filterAllTools(value, policy.tools))
}

/** @param value its ids must be checked already */
export function passingBody(
  route: Route,
  value: JsonObject,
  policy: BodyPolicy,
  { tools, state } = policy.tools === 'all' ? ALL_TOOLS : atOnce(filterAllTools(value, policy.tools)),
): PassingBody {
  const body: Record<string, Json> = {}
  const dropped: string[] = []
  let isWhole = true
  for (const [key, part] of Object.entries(value)) {
    const isForeign = !route.body.keys.includes(key) || (key === 'protocolVersion' && !isProtocolVersion(part))
    if (isForeign || (key === 'state' && policy.state === 'drop')) {
      dropped.push(key)
      isWhole = false
      continue
    }
    let passes = part
    if (key === 'forwardedProps') {
      const props = filterForwardedProps(part, policy.forwardedProps)
      passes = props.kept
      for (const name of props.dropped) dropped.push(`forwardedProps.${name}`)
    } else if (key === 'tools' && tools !== null) {
      passes = tools.kept
      for (const name of tools.dropped) dropped.push(name)
    } else if (key === 'state' && state !== null && isObject(part)) {
      passes = { ...part, tools: state.kept }
      for (const name of state.dropped) dropped.push(name)
    }
    body[key] = passes
    isWhole &&= passes === part
  }
  return { body: isWhole ? value : body, dropped }
}

/** AG-UI 1.0: a major and a minor number. A frontend's own text must not reach an agent under this name. */
function isProtocolVersion(value: Json): boolean {
  return typeof value === 'string' && /^\d{1,4}\.\d{1,4}$/.test(value)
}

interface Tools {
  readonly kept: readonly Json[]
  readonly dropped: readonly string[]
}

/** Null where there are no tools to filter. */
interface FilteredTools {
  readonly tools: Tools | null
  readonly state: Tools | null
}

const ALL_TOOLS: FilteredTools = { tools: null, state: null }

/** The runtime's LangGraph agent adds the tools in the state to the tools of the run. */
function* filterAllTools({ tools, state }: JsonObject, allowed: ReadonlySet<string>): Steps<FilteredTools> {
  const inState = isObject(state) ? state['tools'] : undefined
  return {
    tools: tools === undefined ? null : yield* filterTools(tools, allowed, 'tools'),
    state: inState === undefined ? null : yield* filterTools(inState, allowed, 'state.tools'),
  }
}

/** The keys of a frontend's tool (AG-UI `Tool`). Another key could name another tool to a model. */
const TOOL_KEYS = ['name', 'description', 'parameters', 'metadata']

const TOOLS_AT_ONCE = 256

/** The runtime requires the list, even an empty one (runtime-behaviour.md, "Run input"). */
function* filterTools(value: Json, allowed: ReadonlySet<string>, place: string): Steps<Tools> {
  if (!Array.isArray(value)) return { kept: [], dropped: [place] }
  const kept: Json[] = []
  const dropped: string[] = []
  for (const [at, tool] of (value as readonly Json[]).entries()) {
    if (at % TOOLS_AT_ONCE === TOOLS_AT_ONCE - 1) yield
    if (!isObject(tool)) dropped.push(place)
    else if (allowed.has(tool['name'] as string)) kept.push(madeOfKnown(tool))
    else dropped.push(isName(tool['name']) ? `${place}.${tool['name']}` : place)
  }
  return { kept, dropped }
}

/** Looks up each known key by name: a tool may have as many other keys as an object may have members. */
function madeOfKnown(tool: JsonObject): JsonObject {
  return Object.fromEntries(TOOL_KEYS.filter((key) => Object.hasOwn(tool, key)).map((key) => [key, tool[key] as Json]))
}

function isName(value: Json | undefined): value is string {
  return typeof value === 'string' && value.length <= 1024
}
