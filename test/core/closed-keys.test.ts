/** Inside a run, keys that are not in the table are dropped, and everything else stays as it was. */
import { test } from 'tap'
import { atOnce } from '../../src/core/json/steps.ts'
import type { Json, JsonObject } from '../../src/core/json/read.ts'
import { closeKeys, type DroppedKeys } from '../../src/core/route/closed-keys.ts'
import { RUN_INPUT, type ValueRule } from '../../src/core/route/run-input.ts'

interface Closed {
  readonly passes: Json
  readonly names: readonly string[]
  readonly count: number
}

function closed(key: string, value: Json): Closed {
  const dropped: DroppedKeys = { count: 0, names: new Set() }
  const rule = RUN_INPUT.get(key)?.value as ValueRule
  const passes = atOnce(closeKeys(value, rule, key, dropped))
  return { passes, names: [...dropped.names], count: dropped.count }
}

// oxfmt-ignore
const COMPLETE: Readonly<Record<string, Json>> = {
  messages: [
    { id: '1', role: 'developer', content: 'c', name: 'n', encryptedValue: 'e', subagentRunId: 's', metadata: { any: { thing: [1] } } },
    { id: '2', role: 'system', content: 'c' },
    { id: '3', role: 'user', content: 'c' },
    { id: '4', role: 'user', content: [
      { type: 'text', text: 't', id: 'p', metadata: { any: 1 } },
      { type: 'image', source: { type: 'url', value: 'v', mimeType: 'm' }, metadata: [{ any: 1 }] },
      { type: 'audio', source: { type: 'data', value: 'v', mimeType: 'm' } },
      { type: 'video', source: { type: 'file', value: 'v', provider: 'p', mimeType: 'm' } },
      { type: 'document', id: 'p', source: { type: 'url', value: 'v' } },
      { type: 'binary', mimeType: 'm', id: 'i', url: 'u', data: 'd', filename: 'f' },
    ] },
    { id: '5', role: 'assistant', toolCalls: [
      { id: 'c', type: 'function', function: { name: 'f', arguments: '{"any":1}' }, encryptedValue: 'e', metadata: { any: 1 } },
    ] },
    { id: '6', role: 'tool', toolCallId: 'c', content: 'r', error: 'e', encryptedValue: 'e', subagentRunId: 's', metadata: {} },
    { id: '7', role: 'tool', toolCallId: 'c', content: [{ type: 'text', text: 't' }] },
    { id: '8', role: 'activity', activityType: 'a', content: { any: { thing: 1 } } },
    { id: '9', role: 'reasoning', content: 'c', encryptedValue: 'e' },
  ],
  tools: [{ name: 'n', description: 'd', parameters: { type: 'object', any: [{}] }, metadata: { any: 1 } }],
  context: [{ description: 'd', value: 'v' }],
  resume: [{ interruptId: 'i', status: 'resolved', payload: { any: { thing: 1 } }, metadata: { any: 1 } }],
}

void test('what AG-UI knows passes as the same value', (t) => {
  for (const [key, value] of Object.entries(COMPLETE)) {
    const { passes, count } = closed(key, value)
    t.equal(passes, value, key)
    t.equal(count, 0)
  }
  for (const value of [null, 'text', 1, true, [], {}, [null, 1, 'text', {}, []]]) {
    const { passes, count } = closed('messages', value)
    t.equal(passes, value, JSON.stringify(value))
    t.equal(count, 0)
  }
  t.end()
})

// oxfmt-ignore
const STRANGE = ['secret', 'Role', 'tool_calls', 'tool_call_id', 'encrypted_value', 'thread_id', 'toString', 'constructor', 'hasOwnProperty', '', '0', 'length', 'size', ' id']

/** Plants a key into each object of a value that is not the application's own, one at a time. */
function* planted(value: Json, rule: ValueRule, key: string): Generator<Json> {
  if (typeof rule === 'string' || typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const [at, item] of (value as readonly Json[]).entries()) {
      for (const other of planted(item, rule.kind === 'list' ? rule.items : rule, key)) yield value.with(at, other) as Json
    }
    return
  }
  const object = value as JsonObject
  if (rule.kind === 'list') return
  const keys = rule.kind === 'object' ? rule.keys : rule.variants.get(object[rule.by] as string)?.keys
  yield { [key]: { any: 1 }, ...object }
  for (const [name, { value: inner }] of keys ?? []) {
    if (!Object.hasOwn(object, name)) continue
    for (const other of planted(object[name] as Json, inner, key)) yield { ...object, [name]: other }
  }
}

void test('a key that AG-UI does not know is dropped wherever it is, and the rest stays', (t) => {
  let places = 0
  for (const [top, value] of Object.entries(COMPLETE)) {
    const rule = RUN_INPUT.get(top)?.value as ValueRule
    for (const key of STRANGE) {
      for (const body of planted(value, rule, key)) {
        places += 1
        const { passes, names, count } = closed(top, body)
        t.strictSame(passes, value)
        t.equal(count, 1)
        t.ok(names[0]?.endsWith(`.${key}`), names[0] ?? '')
      }
    }
  }
  t.equal(places, 25 * STRANGE.length)
  t.end()
})

void test('names say where a key was', (t) => {
  const strange = (top: string, value: Json): readonly string[] => closed(top, value).names
  t.same(strange('messages', [{ role: 'user', x: 1, content: [{ type: 'image', x: 1, source: { type: 'url', x: 1 } }] }]), [
    'messages[user].x',
    'messages[user].content[image].x',
    'messages[user].content[image].source[url].x',
  ])
  t.same(strange('messages', [{ role: 'assistant', toolCalls: [{ x: 1, function: { x: 1 } }] }]), [
    'messages[assistant].toolCalls[].x',
    'messages[assistant].toolCalls[].function.x',
  ])
  t.same(strange('tools', [{ x: 1 }]), ['tools[].x'])
  t.same(strange('resume', [{ x: 1 }, { x: 2 }]), ['resume[].x'])
  t.same(strange('context', [{ ['x'.repeat(200_000)]: 1 }]), [`context[].${'x'.repeat(100)}`])
  t.end()
})

void test('of a message or part of an unknown kind, its id and kind pass', (t) => {
  for (const role of ['operator', 'User', 'user ', '', 'constructor', 'toString', null, 1, undefined]) {
    const message = { id: '1', ...(role === undefined ? {} : { role }), content: 'c', toolCalls: [{ id: 'c' }] }
    const { passes, names } = closed('messages', [message])
    t.strictSame(passes, [{ id: '1', ...(role === undefined ? {} : { role }) }], String(role))
    t.same(names, ['messages[].content', 'messages[].toolCalls'])
  }
  t.strictSame(closed('messages', [{ id: '1', role: ['user'], content: 'c' }]).passes, [{ id: '1', role: [] }])
  t.strictSame(closed('messages', [{ role: 'tool', content: [{ type: 'binary', url: 'u' }] }]).passes, [
    { role: 'tool', content: [{ type: 'binary' }] },
  ])
  t.strictSame(closed('messages', [{ role: 'user', content: [{ type: 'image', source: { type: 'ftp', value: 'v' } }] }]).passes, [
    { role: 'user', content: [{ type: 'image', source: { type: 'ftp' } }] },
  ])
  t.end()
})

void test('a value of another type keeps its type and loses its content', (t) => {
  const cases: readonly (readonly [top: string, value: Json, passes: Json, name: string])[] = [
    ['messages', { role: 'user', x: 1 }, {}, 'messages'],
    ['messages', [[{ role: 'user', x: 1 }]], [[]], 'messages[]'],
    ['messages', [{ role: 'user', content: { x: 1 } }], [{ role: 'user', content: {} }], 'messages[user].content'],
    [
      'messages',
      [{ role: 'system', content: [{ type: 'text', x: 1 }] }],
      [{ role: 'system', content: [] }],
      'messages[system].content',
    ],
    ['messages', [{ role: 'user', name: { x: 1 } }], [{ role: 'user', name: {} }], 'messages[user].name'],
    ['messages', [{ role: 'user', content: [[{ x: 1 }]] }], [{ role: 'user', content: [[]] }], 'messages[user].content[]'],
    [
      'messages',
      [{ role: 'assistant', toolCalls: { x: 1 } }],
      [{ role: 'assistant', toolCalls: {} }],
      'messages[assistant].toolCalls',
    ],
    [
      'messages',
      [{ role: 'assistant', toolCalls: [{ function: [{ x: 1 }] }] }],
      [{ role: 'assistant', toolCalls: [{ function: [] }] }],
      'messages[assistant].toolCalls[].function',
    ],
    ['tools', { 0: { x: 1 } }, {}, 'tools'],
    ['context', [{ value: { x: 1 } }], [{ value: {} }], 'context[].value'],
    ['threadId', ['t1'], [], 'threadId'],
    ['protocolVersion', { x: 1 }, {}, 'protocolVersion'],
  ]
  for (const [top, value, passes, name] of cases) {
    t.strictSame(closed(top, value), { passes, names: [name], count: 1 }, JSON.stringify(value))
  }
  t.end()
})

void test('all dropped keys are counted, a bounded number is named', (t) => {
  const message = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`k${at}`, at]))
  const { passes, names, count } = closed('messages', [{ ...message, id: '1', role: 'user' }, { ...message }])
  t.strictSame(passes, [{ id: '1', role: 'user' }, {}])
  t.same([names.length, count], [100, 10_000])
  t.end()
})

void test('long lists are examined and copied in steps', (t) => {
  const parts = Array.from({ length: 20_000 }, () => ({ type: 'text', text: 't', x: 1 }))
  const dropped: DroppedKeys = { count: 0, names: new Set() }
  const steps = closeKeys([{ role: 'user', content: parts }], RUN_INPUT.get('messages')?.value as ValueRule, 'messages', dropped)
  let turns = 0
  while (steps.next().done !== true) turns += 1
  t.ok(turns > 60, `${turns}`)
  t.equal(dropped.count, 20_000)
  t.end()
})
