/** Decides which JSON keys pass: never `method` or `params` of an envelope (runtime-behaviour.md, "Single-route transport"). */
import type { RouteDescriptor } from './classify.ts'
import { closeKeys, type DroppedKeys } from './closed-keys.ts'
import { filterForwardedProps } from './forwarded-props.ts'
import { isAgentId, isRunId, isThreadId } from './ids.ts'
import { answersIn } from './interrupt-answers.ts'
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import { checkLangGraphBody, passingLangGraph, type LangGraphRules } from './langgraph-bodies.ts'
import { applyMessageRules, type MessageRules } from './message-rules.ts'
import { isRefusal, refuse, type Refusal } from '../reasons.ts'
import type { Route } from './routes.ts'
import { TOOLS_IN_STATE } from './run-input.ts'
import { atOnce, type Steps } from '../json/steps.ts'

export interface BodyPolicy {
  readonly forwardedProps: ReadonlySet<string>
  readonly state: 'pass' | 'drop'
  readonly tools: 'all' | ReadonlySet<string>
  readonly messages: MessageRules
  readonly langgraph: LangGraphRules
}

/** What the decision adds to the policy. */
export interface Passing extends BodyPolicy {
  /** Absent where the caller has the thread, or where the request has none. */
  readonly isNewThread?: true
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

/** What the audit keeps of a body. */
export interface AuditedContent {
  /** Whether answers to interrupts come with their content. */
  readonly interruptContent: boolean
}

const NO_CONTENT: AuditedContent = { interruptContent: false }

/** @param value the body from the strict reader */
export function checkIds(
  descriptor: RouteDescriptor,
  value: JsonObject,
  { interruptContent } = NO_CONTENT,
): CheckedIds | Refusal {
  const { route, ids } = descriptor
  if (route.api === 'langgraph') return checkLangGraphBody(descriptor, value, interruptContent)
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
  const about = { ...descriptor, ids: { ...ids, threadId } }
  if (!route.body.keys.includes('resume')) return { outcome: 'checked', descriptor: about }
  const answers = answersIn(value, interruptContent)
  if (answers === 'too-many') return refuse('interrupt-answers-too-many')
  return { outcome: 'checked', descriptor: answers.length === 0 ? about : { ...about, answers } }
}

export interface PassingBody {
  readonly outcome: 'passes'
  /** The value itself if all of it passes. */
  readonly body: JsonObject
  /** Of the body, the forwarded properties and the tools. */
  readonly dropped: readonly string[]
  /** Inside messages, tools, context and resume. */
  readonly droppedInside: DroppedKeys
}

/** @param value its ids must be checked already */
export function passingBody(route: Route, value: JsonObject, policy: Passing): PassingBody | Refusal {
  return atOnce(passingInSteps(route, value, policy))
}

export function* passingInSteps(route: Route, value: JsonObject, policy: Passing): Steps<PassingBody | Refusal> {
  if (route.api === 'langgraph') {
    const dropped: string[] = []
    const body = yield* passingLangGraph(route, value, policy, dropped)
    return isRefusal(body) ? body : { outcome: 'passes', body, dropped, droppedInside: { count: 0, names: new Set() } }
  }
  const body: Record<string, Json> = {}
  const dropped: string[] = []
  const droppedInside: DroppedKeys = { count: 0, names: new Set() }
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
    } else if (key === 'tools' && policy.tools !== 'all') {
      passes = yield* filterTools(part, policy.tools, key, dropped)
    } else if (key === 'state' && policy.tools !== 'all' && isObject(part) && part['tools'] !== undefined) {
      const tools = yield* filterTools(part['tools'], policy.tools, TOOLS_IN_STATE.name, dropped)
      passes = { ...part, tools: yield* closeKeys(tools, TOOLS_IN_STATE, TOOLS_IN_STATE.name, droppedInside) }
    }
    const rule = route.body.inside?.get(key)
    if (rule !== undefined) passes = yield* closeKeys(passes, rule.value, key, droppedInside)
    if (key === 'messages' && Array.isArray(passes)) {
      const messages = yield* applyMessageRules(passes as readonly Json[], policy.messages, dropped)
      if (isRefusal(messages)) return messages
      passes = messages
    }
    body[key] = passes
    isWhole &&= passes === part
  }
  return { outcome: 'passes', body: isWhole ? value : body, dropped, droppedInside }
}

/** AG-UI 1.0: a major and a minor number. A frontend's own text must not reach an agent under this name. */
function isProtocolVersion(value: Json): boolean {
  return typeof value === 'string' && /^\d{1,4}\.\d{1,4}$/.test(value)
}

const TOOLS_AT_ONCE = 256

/** The runtime requires the list, even an empty one (runtime-behaviour.md, "Run input"). */
function* filterTools(value: Json, allowed: ReadonlySet<string>, place: string, dropped: string[]): Steps<readonly Json[]> {
  if (!Array.isArray(value)) {
    dropped.push(place)
    return []
  }
  const kept: Json[] = []
  for (const [at, tool] of (value as readonly Json[]).entries()) {
    if (at % TOOLS_AT_ONCE === TOOLS_AT_ONCE - 1) yield
    if (!isObject(tool)) dropped.push(place)
    else if (allowed.has(tool['name'] as string)) kept.push(tool)
    else dropped.push(isName(tool['name']) ? `${place}.${tool['name']}` : place)
  }
  return kept
}

function isName(value: Json | undefined): value is string {
  return typeof value === 'string' && value.length <= 1024
}
