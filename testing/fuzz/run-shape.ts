/**
 * What may be left of a run's body, written from the schemas of `@ag-ui/core` 0.0.48, 0.0.59 and 1.0.0 once more: it shares nothing
 * with the table of the gateway. `key` is a text, `key*` any value, `key{object}` an object and `key[object]` a list of objects.
 */
const MESSAGE = 'id role subagentRunId metadata*'
const MEDIA = 'id type source{source} metadata*'

const OBJECTS: Readonly<Record<string, string>> = {
  run: 'threadId runId parentRunId protocolVersion lastSeenEventId messages[message] tools[tool] context[context] resume[resume] state* forwardedProps*',
  tool: 'name description parameters* metadata*',
  context: 'description value',
  resume: 'interruptId status payload* metadata*',
  call: 'id type encryptedValue metadata* function{function}',
  function: 'name arguments',

  'message developer': `${MESSAGE} name encryptedValue content`,
  'message system': `${MESSAGE} name encryptedValue content`,
  'message assistant': `${MESSAGE} name encryptedValue content toolCalls[call]`,
  'message user': `${MESSAGE} name encryptedValue content[part]`,
  'message tool': `${MESSAGE} toolCallId error encryptedValue content[result]`,
  'message activity': `${MESSAGE} activityType content*`,
  'message reasoning': `${MESSAGE} encryptedValue content`,

  part: 'id type',
  'part text': 'id type text metadata*',
  'part image': MEDIA,
  'part audio': MEDIA,
  'part video': MEDIA,
  'part document': MEDIA,
  'part binary': 'id type mimeType url data filename',
  result: 'id type',
  'result text': 'id type text metadata*',
  'result image': MEDIA,
  'result audio': MEDIA,
  'result video': MEDIA,
  'result document': MEDIA,

  source: 'id type',
  'source data': 'type value mimeType',
  'source url': 'type value mimeType',
  'source file': 'type value mimeType provider',
}

/** Every role is allowed where this is used. A message of none is dropped. */
const ROLES: ReadonlySet<unknown> = new Set(['developer', 'system', 'assistant', 'user', 'tool', 'activity', 'reasoning'])

/** Of the objects that have kinds. */
const KIND_KEYS: Readonly<Record<string, string>> = { message: 'role', part: 'type', result: 'type', source: 'type' }

/** The body of a run as it may leave the gateway. */
export function closedRun(body: unknown): Readonly<Record<string, unknown>> {
  return objectOf(body, 'run') as Record<string, unknown>
}

/** One member of it. */
export function closedMember(key: string, value: unknown): unknown {
  return closedRun({ [key]: value })[key]
}

function objectOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return []
  const kind: unknown = Reflect.get(value, KIND_KEYS[name] ?? '')
  const words = (typeof kind === 'string' ? OBJECTS[`${name} ${kind}`] : undefined) ?? OBJECTS[name] ?? ''
  const left: Record<string, unknown> = {}
  for (const word of words.split(' ')) {
    const [, key = '', mark, inner = ''] = /^(\w+)([*{[])?(\w+)?/.exec(word) ?? []
    if (!Object.hasOwn(value, key)) continue
    const member: unknown = Reflect.get(value, key)
    if (mark === '*') left[key] = member
    else if (mark === '{') left[key] = objectOf(member, inner)
    else left[key] = listOf(member, mark === '[' ? inner : null)
  }
  return left
}

/** A text, or a list of objects where that has a name. */
function listOf(value: unknown, name: string | null): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (!Array.isArray(value)) return {}
  if (name === null) return []
  const items: unknown[] = name === 'message' ? value.filter((item) => ROLES.has(roleOf(item))) : value
  return items.map((item) => objectOf(item, name))
}

function roleOf(message: unknown): unknown {
  return typeof message === 'object' && message !== null && !Array.isArray(message) ? Reflect.get(message, 'role') : null
}
