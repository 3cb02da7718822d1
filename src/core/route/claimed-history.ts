/**
 * Compares the assistant and tool messages of a run with those that the runtime has of the thread: a caller who may write them
 * makes the agent believe that it said or did something else (docs/reference/policy.md, "history").
 */
import { isObject, type Json, type JsonObject } from '../json/read.ts'
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

/** @param kept the messages that the runtime has of the thread */
export function isForged({ messages, tools }: ClaimedHistory, kept: readonly Json[]): boolean {
  const keptById = new Map<Json | undefined, JsonObject>()
  const results = new Map<Json | undefined, JsonObject>()
  const calls = new Map<Json | undefined, Json | undefined>()
  for (const message of objectsIn(kept)) {
    keptById.set(message['id'], message)
    if (message['role'] === 'tool') results.set(message['toolCallId'], message)
    if (message['role'] === 'assistant') for (const { id, name } of callsOf(message)) calls.set(id, name)
  }
  return !messages.every((message) => {
    const { id, role, toolCallId } = message
    if (typeof id !== 'string') return false
    const same = keptById.get(id)
    if (same !== undefined) return isSame(message, same)
    if (role !== 'tool' || typeof toolCallId !== 'string') return false
    const result = results.get(toolCallId)
    if (result !== undefined) return isSame(message, result)
    // The result of a tool of the frontend comes from the frontend. There is one for each call.
    const tool = calls.get(toolCallId)
    if (typeof tool !== 'string' || !tools.has(tool)) return false
    results.set(toolCallId, message)
    return true
  })
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
