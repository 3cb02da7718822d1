/** Parts of a run's body, each with a key inside that AG-UI does not have. */

export const USER = { id: 'm1', role: 'user', content: 'hello' }

/** Each plants `EVIL` as a key somewhere. */
export const NESTED_KEY_ATTACKS: readonly Record<string, unknown>[] = [
  { messages: [{ ...USER, EVIL: 1 }] },
  { messages: [USER, { ...USER, EVIL: { role: 'system' } }] },
  { messages: [{ ...USER, role: 'system', EVIL: 1 }] },
  { messages: [{ ...USER, role: 'admin', EVIL: 1 }] },
  { messages: [{ ...USER, role: ['user'], EVIL: 1 }] },
  { messages: [{ ...USER, role: { EVIL: 1 } }] },
  { messages: [{ id: 'm1', EVIL: 1 }] },
  { messages: [[{ ...USER, EVIL: 1 }]] },
  { messages: { 0: { ...USER, EVIL: 1 } } },
  { messages: { EVIL: 1 } },
  { messages: [{ ...USER, id: { EVIL: 1 } }] },
  { messages: [{ ...USER, name: [{ EVIL: 1 }] }] },
  { messages: [{ ...USER, subagentRunId: { EVIL: 1 } }] },
  { messages: [{ ...USER, content: { EVIL: 1 } }] },
  { messages: [{ ...USER, content: [{ type: 'text', text: 'x', EVIL: 1 }] }] },
  { messages: [{ ...USER, content: [{ type: 'text', text: { EVIL: 1 } }] }] },
  { messages: [{ ...USER, content: [{ type: 'tool_use', EVIL: 1 }] }] },
  { messages: [{ ...USER, content: [{ EVIL: 1 }] }] },
  { messages: [{ ...USER, content: [[{ EVIL: 1 }]] }] },
  { messages: [{ ...USER, content: [{ type: 'image', source: { type: 'url', value: 'v', EVIL: 1 } }] }] },
  { messages: [{ ...USER, content: [{ type: 'image', source: { type: 'EVIL', EVIL: 1 } }] }].map(renamed) },
  { messages: [{ ...USER, content: [{ type: 'image', source: [{ EVIL: 1 }] }] }] },
  { messages: [{ ...USER, content: [{ type: 'binary', mimeType: 'm', EVIL: 1 }] }] },
  { messages: [{ ...USER, toolCalls: [{ EVIL: 1 }] }] },
  { messages: [{ ...USER, role: 'assistant', toolCalls: [{ id: 'c', EVIL: 1 }] }] },
  { messages: [{ ...USER, role: 'assistant', toolCalls: [{ function: { name: 'f', EVIL: 1 } }] }] },
  { messages: [{ ...USER, role: 'assistant', toolCalls: [{ function: { arguments: { EVIL: 1 } } }] }] },
  { messages: [{ ...USER, role: 'assistant', toolCalls: { EVIL: 1 } }] },
  { messages: [{ ...USER, role: 'assistant', content: [{ type: 'text', text: 'x', EVIL: 1 }] }] },
  { messages: [{ ...USER, role: 'tool', toolCallId: 'c', error: { EVIL: 1 } }] },
  { messages: [{ ...USER, role: 'tool', content: [{ type: 'text', EVIL: 1 }] }] },
  { messages: [{ ...USER, role: 'activity', EVIL: 1 }] },
  { messages: [{ ...USER, role: 'reasoning', content: { EVIL: 1 } }] },
  { tools: [{ name: 'n', description: 'd', parameters: {}, EVIL: 1 }] },
  { tools: [{ name: { EVIL: 1 } }] },
  { tools: { EVIL: [{ name: 'n' }] } },
  { context: [{ description: 'd', value: 'v', EVIL: 1 }] },
  { context: [{ description: 'd', value: { EVIL: 1 } }] },
  { resume: [{ interruptId: 'i', status: 'resolved', EVIL: 1 }] },
  { resume: [{ interruptId: { EVIL: 1 } }] },
  { resume: { EVIL: 1 } },
  { lastSeenEventId: { EVIL: 1 } },
]

function renamed(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replace('"type":"EVIL"', '"type":"other"'))
}

/** All keys of a value, at every level. */
export function keysIn(value: unknown, into = new Set<string>()): ReadonlySet<string> {
  if (typeof value !== 'object' || value === null) return into
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value)) into.add(key)
    keysIn(inner, into)
  }
  return into
}
