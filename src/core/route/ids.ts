/** The grammars of ids, which mean the same to gateway, store and upstream (runtime-behaviour.md, "Targets and ids"). */

/** The router matches paths from the end (runtime-behaviour.md, "Targets and ids"): these ids could turn a route into another. */
// oxfmt-ignore
export const ROUTE_WORDS: ReadonlySet<string> = new Set([
  'agent', 'annotate', 'archive', 'clear', 'connect', 'cpk-debug-events', 'events', 'info', 'inspector-learning',
  'inspector-metadata', 'memories', 'messages', 'recall', 'run', 'state', 'stop', 'subscribe', 'suggest', 'threads',
  'transcribe',
])

const OPAQUE_ID = /^[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,126}[A-Za-z0-9_:-])?$/
const AGENT_ID = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/** What Python's int() takes for digits, in 32 characters. */
const HEX_32 = /^(?=.{32}$)(?:0x)?[0-9a-f_]+$/
/** Java and .NET read each of five groups as a separate number: with fewer digits, or with 0x. */
const FIVE_NUMBERS = /^(?:(?:0x)?[0-9a-f]+-){4}(?:0x)?[0-9a-f]+$/

/** In any case, as servers read it. */
export function isUuid(value: unknown): boolean {
  return typeof value === 'string' && value.length === 36 && UUID.test(value.toLowerCase())
}

/** The length comes first: examining a 60 MB string that was read in steps would join its parts. */
function isOpaqueId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 128 && OPAQUE_ID.test(value)
}

/** Names that every object has: `agents[agentId]` in the runtime finds them (runtime-behaviour.md, "Run input"). */
const OBJECT_NAMES: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype))

/** Requires canonical UUIDs: two spellings would be one thread in a uuid column, and two in the ownership table. */
export function isThreadId(value: unknown): value is string {
  if (typeof value === 'string' && value.length === 36 && UUID.test(value)) return true
  if (!isOpaqueId(value)) return false
  const lower = value.toLowerCase()
  if (ROUTE_WORDS.has(lower)) return false
  // PostgreSQL ignores hyphens, Python removes `urn:` and `uuid:` anywhere, Go reads the middle 36 of 38 characters, Java pads.
  const bare = lower.replaceAll('urn:', '').replaceAll('uuid:', '').replaceAll('-', '')
  return !HEX_32.test(bare) && !FIVE_NUMBERS.test(lower) && !UUID.test(lower.slice(1, -1))
}

/** Of the route words only `agent` passes. */
export function isAgentId(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > 128 || !AGENT_ID.test(value)) return false
  if (OBJECT_NAMES.has(value)) return false
  return value === 'agent' || !ROUTE_WORDS.has(value.toLowerCase())
}

/** True for a scope of the ownership table: the key of an upstream, or `''` for the first upstream. */
export function isScope(value: string): boolean {
  return /^[a-z0-9-]{0,128}$/.test(value)
}

export function isMemoryId(value: unknown): value is string {
  return isOpaqueId(value) && !ROUTE_WORDS.has(value.toLowerCase())
}

/** Clients write UUIDs in either case. */
export const isRunId = isOpaqueId

// Code points, without the controls of ASCII and Latin-1: an id with a control could forge a log line or cut a header.
const USER_ID = /^[^\u0000-\u001f\u007f-\u009f]{1,255}$/u

export function isUserId(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && USER_ID.test(value)
}
