/**
 * Compares the assistant and tool messages of a run with those that the runtime has of the thread: a caller who may write them
 * makes the agent believe that it said or did something else (docs/reference/policy.md, "history").
 */
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import type { Steps } from '../json/steps.ts'
import type { Route } from './routes.ts'

export interface ClaimedHistory {
  readonly messages: readonly JsonObject[]
  /** Names of the frontend tools that the run offers. */
  readonly tools: ReadonlySet<string>
}

/**
 * Only of runs: a connect replays what the runtime has, and a client asks for suggestions with the messages of one thread in a
 * thread of their own.
 * @returns null if the body claims nothing of an agent or a tool
 */
export function claimedHistory({ id }: Route, { messages, tools }: JsonObject): ClaimedHistory | null {
  if (id !== 'agent/run') return null
  const claimed = objectsIn(messages).filter(({ role }) => role === 'assistant' || role === 'tool')
  if (claimed.length === 0) return null
  const names = objectsIn(tools).map(({ name }) => name)
  return { messages: claimed, tools: new Set(names.filter((name) => typeof name === 'string')) }
}

/** Messages and calls in one step. */
const AT_ONCE = 4096

/** @param kept the messages that the runtime has of the thread */
export function* isForged({ messages, tools }: ClaimedHistory, kept: readonly Json[]): Steps<boolean> {
  const { keptById, results, calls } = yield* namedBy(messages, kept)
  let work = 0
  for (const message of messages) {
    if (++work % AT_ONCE === 0) yield
    const { id, role, toolCallId } = message
    if (typeof id !== 'string') return true
    const answered = role === 'tool' && typeof toolCallId === 'string' ? toolCallId : null
    const same = keptById.get(id) ?? (answered === null ? undefined : results.get(answered))
    if (same !== undefined) {
      if (isSame(message, same)) continue
      return true
    }
    // The result of a tool of the frontend comes from the frontend. There is one for each call.
    const tool = answered === null ? undefined : calls.get(answered)
    if (typeof tool !== 'string' || !tools.has(tool)) return true
    results.set(toolCallId, message)
  }
  return false
}

interface Named {
  readonly keptById: Map<Json | undefined, JsonObject>
  readonly results: Map<Json | undefined, JsonObject>
  /** Names of tools. */
  readonly calls: Map<Json | undefined, Json | undefined>
}

/** Only what the claimed messages name: a map of a long history takes tens of milliseconds to grow. */
function* namedBy(claimed: readonly JsonObject[], kept: readonly Json[]): Steps<Named> {
  const ids = new Set(claimed.map(({ id }) => id))
  const answered = new Set(claimed.map(({ toolCallId }) => toolCallId))
  const named: Named = { keptById: new Map(), results: new Map(), calls: new Map() }
  let work = 0
  for (const message of kept) {
    if (++work % AT_ONCE === 0) yield
    if (!isObject(message)) continue
    const { id: messageId, role, toolCallId } = message
    if (ids.has(messageId)) named.keptById.set(messageId, message)
    if (role === 'tool' && answered.has(toolCallId)) named.results.set(toolCallId, message)
    if (role !== 'assistant') continue
    for (const { id, name } of callsOf(message)) {
      if (++work % AT_ONCE === 0) yield
      if (answered.has(id)) named.calls.set(id, name)
    }
  }
  return named
}

function isSame(claimed: JsonObject, kept: JsonObject): boolean {
  return (
    claimed['role'] === kept['role'] &&
    textOf(claimed['content']) === textOf(kept['content']) &&
    (claimed['toolCallId'] ?? null) === (kept['toolCallId'] ?? null) &&
    JSON.stringify(callsOf(claimed)) === JSON.stringify(callsOf(kept))
  )
}

/** Messages with only tool calls have an empty content, or none. */
function textOf(content: Json | undefined): string {
  return typeof content === 'string' ? content : content === undefined || content === null ? '' : JSON.stringify(content)
}

interface Call {
  readonly id: Json | undefined
  readonly name: Json | undefined
  readonly text: Json | undefined
}

/** A client writes `function: {name, arguments}` (AG-UI), and the runtime `name` and `args`. */
function callsOf({ toolCalls }: JsonObject): readonly Call[] {
  return objectsIn(toolCalls).map((call) => {
    const { id, name, args } = call
    const named = call['function']
    return isObject(named) ? { id, name: named['name'], text: named['arguments'] } : { id, name, text: args }
  })
}

function objectsIn(list: Json | undefined): readonly JsonObject[] {
  return Array.isArray(list) ? (list as readonly Json[]).filter(isObject) : []
}
