/** The inner parts of a run: what a client of AG-UI sends, and then keys and values that no version of it has. */
import fc from 'fast-check'
import type { Member } from './grammar-body.ts'

type Value = null | boolean | number | string | Value[] | { [key: string]: Value }

const SOURCES: readonly Value[] = [
  { type: 'data', value: 'eA==', mimeType: 'image/png' },
  { type: 'url', value: 'https://example.com/x', mimeType: 'image/png' },
  { type: 'file', value: 'file-1', provider: 'p', mimeType: 'image/png' },
]

const PARTS: readonly Value[] = [
  { type: 'text', text: 'hello', id: 'p1', metadata: { secret: 1 } },
  ...SOURCES.map((source, at) => ({ type: ['image', 'audio', 'video'][at] ?? '', source, metadata: [{ secret: 1 }] })),
  { type: 'document', source: { type: 'url', value: 'x' } },
  { type: 'binary', mimeType: 'image/png', id: 'i', url: 'u', data: 'd', filename: 'f' },
]

const CALL: Value = {
  id: 'c1',
  type: 'function',
  function: { name: 'f', arguments: '{"secret":1}' },
  encryptedValue: 'e',
  metadata: { secret: 1 },
}

const MESSAGES: readonly Value[] = [
  { id: 'm1', role: 'user', content: 'hello', name: 'n', metadata: { secret: { secret: 1 } }, subagentRunId: 's' },
  { id: 'm2', role: 'user', content: [...PARTS] },
  { id: 'm3', role: 'assistant', content: 'x', toolCalls: [CALL], encryptedValue: 'e' },
  { id: 'm4', role: 'tool', toolCallId: 'c1', content: 'x', error: 'e' },
  { id: 'm5', role: 'tool', toolCallId: 'c1', content: [...PARTS] },
  { id: 'm6', role: 'activity', activityType: 'a', content: { secret: [{ secret: 1 }] } },
  { id: 'm7', role: 'reasoning', content: 'x', encryptedValue: 'e' },
  { id: 'm8', role: 'system', content: 'x' },
  { id: 'm9', role: 'developer', content: 'x' },
]

const INNER: Readonly<Record<string, readonly Value[]>> = {
  messages: MESSAGES,
  tools: [{ name: 'chart', description: 'd', parameters: { type: 'object', secret: 1 }, metadata: { secret: 1 } }],
  context: [{ description: 'd', value: 'v' }],
  resume: [{ interruptId: 'i', status: 'resolved', payload: { secret: 1 }, metadata: { secret: 1 } }],
}

// oxfmt-ignore
const KEYS = [
  'secret', 'user_id', 'tool_calls', 'toolCalls', 'tool_call_id', 'Role', 'role ', 'TYPE', 'content', 'metadata', 'parameters', 'payload', 'source',
  'function', 'toString', 'constructor', 'hasOwnProperty', 'length', 'name', 'id', '', '0', '\u0000', 'ünknown', 'encryptedvalue', 'generativeUI',
]

const VALUES: readonly Value[] = [
  ...[null, true, 1, 'x', [], {}, { secret: 1 }, [{ secret: 1 }], [[{ secret: 1 }]], [null, 'x', { role: 'user', secret: 1 }]],
  ...['user', 'assistant', 'tool', 'activity', 'operator', 'User', 'image', 'binary', 'url', 'toString', '__proto__', ['user']],
  ...PARTS,
  ...MESSAGES,
]

interface Edit {
  readonly at: number
  readonly key: string
  readonly value: Value
  /** `plant` adds a key; `replace` replaces the value of a key or an item. */
  readonly how: 'plant' | 'replace' | 'wrap'
}

const edit: fc.Arbitrary<Edit> = fc.record({
  at: fc.nat({ max: 10_000 }),
  key: fc.constantFrom(...KEYS),
  value: fc.constantFrom(...VALUES),
  how: fc.constantFrom('plant', 'plant', 'plant', 'replace', 'wrap'),
})

/** Everything in a value that has members or items. */
function containersIn(value: Value, into: (Value[] | { [key: string]: Value })[] = []): typeof into {
  if (typeof value !== 'object' || value === null) return into
  into.push(value)
  for (const inner of Object.values(value)) containersIn(inner, into)
  return into
}

function apply(root: Value, { at, key, value, how }: Edit): void {
  const containers = containersIn(root)
  const container = containers[at % containers.length]
  if (container === undefined) return
  if (how === 'plant' && !Array.isArray(container)) {
    container[key] = structuredClone(value)
    return
  }
  const names = Object.keys(container)
  const name = names[at % (names.length || 1)]
  if (name === undefined) return
  const members = container as { [key: string]: Value }
  members[name] = how === 'wrap' ? [structuredClone(members[name] ?? null)] : structuredClone(value)
}

/** Another spelling of the same text. */
const escaped = (text: string): string => text.replaceAll('"secret":', '"\\u0073ecret":')

export const innerMembers: fc.Arbitrary<readonly Member[]> = fc
  .record({
    chosen: fc.array(fc.nat({ max: MESSAGES.length - 1 }), { minLength: 1, maxLength: 4 }),
    edits: fc.array(edit, { maxLength: 6 }),
    isEscaped: fc.nat({ max: 19 }).map((one) => one === 0),
    version: fc.constantFrom('"1.0"', '"1.0"', '"1"', 'null', '{"secret":1}'),
  })
  .map(({ chosen, edits, isEscaped, version }) => {
    const root: { [key: string]: Value } = structuredClone({
      ...(INNER as Record<string, Value[]>),
      messages: chosen.map((at) => MESSAGES[at] ?? null),
    })
    for (const one of edits) apply(root, one)
    const members = Object.keys(INNER).map((key): Member => {
      const text = JSON.stringify(root[key] ?? [])
      return [JSON.stringify(key), isEscaped ? escaped(text) : text]
    })
    return [...members, ['"protocolVersion"', version]]
  })
