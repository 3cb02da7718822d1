/**
 * Bodies: what a route takes, and then edits that two JSON readers, or a reader and a checker, would read differently
 * (runtime-behaviour.md, "Run input", docs/contributing/threat-model.md). Members are text, so that keys can be doubled and escaped.
 */
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import type { Route } from '../../src/core/route/routes.ts'
import { LONG_KEY, MAX_LONG_KEYS, MAX_VALUES } from '../../src/core/json/read.ts'
import { LIMITS } from './gate-under-test.ts'
import { agentId, anyId } from './grammar-ids.ts'
import { form } from './grammar-form.ts'
import { innerMembers } from './grammar-run.ts'

/** Writes a body for a route: a character for each byte. */
export type WriteBody = (route: Route) => string | null

export type Member = readonly [key: string, value: string]
export type MembersEdit = (members: readonly Member[]) => readonly Member[]
export type TextEdit = (text: string) => string

export const EVIL_VALUES = [
  ...[
    'null',
    'true',
    '1',
    '0',
    '-0',
    '[]',
    '{}',
    '["t1"]',
    '{"toString":"t1"}',
    '""',
    '" t1"',
    '"t1\\u0000"',
    '"\\ud800"',
    '"\\u0074\\u0031"',
    '"t1\\n"',
    '1e400',
    '-1e999',
    '1e2',
    '12345678901234567890',
    '"victim-1"',
    '"victim-2"',
    '"clear"',
    '"VICTIM-1"',
    '"t1/../victim-1"',
  ],
  ...[
    '{"a":1,"a":2}',
    '[{"threadId":"t1","threadId":"victim-1"}]',
    '{"__proto__":{"threadId":"victim-1"}}',
    '{"constructor":{"prototype":{}}}',
    '[1e999]',
    '"{\\"threadId\\":\\"victim-1\\"}"',
  ],
  ...[
    `${'['.repeat(200)}${']'.repeat(200)}`,
    `${'{"a":'.repeat(129)}1${'}'.repeat(129)}`,
    `${'['.repeat(100)}${']'.repeat(100)}`,
  ],
]
const KEYS = [
  ...[
    '"threadId"',
    '"threadId"',
    '"threadId"',
    '"\\u0074hreadId"',
    '"thread\\u0049d"',
    '"\\u0074\\u0068readId"',
    '"\\\\u0074hr"',
    '"\\\\u0074hreadId"',
    '"thread\\\\u0049d"',
    '"\\u005cu0074hreadId"',
  ],
  ...[
    '"threadid"',
    '"ThreadId"',
    '"thread_id"',
    '"threadId\\u0000"',
    '" threadId"',
    '"\ufeffthreadId"',
    '"\uff54hreadId"',
    '"+AHQ-hreadId"',
    '"threadId[]"',
    "'threadId'",
    'threadId',
    '""',
    '"agentId"',
    '"runId"',
    '"state"',
    '"forwardedProps"',
  ],
  ...[
    '"__proto__"',
    '"\\u005f_proto__"',
    '"__prot\\u006f__"',
    '"constructor"',
    '"prototype"',
    '"toString"',
    '"method"',
    '"params"',
    '"body"',
    '"sourceThreadIds"',
    '"userId"',
    '"x"',
  ],
]
const PROPS = [
  ...[
    '{}',
    'null',
    '[]',
    '"x"',
    '{"toolChoice":"auto"}',
    '{"tenant":1}',
    '{"command":{"resume":"yes","goto":"x"}}',
    '{"config":{"configurable":{"thread_id":"victim-1"}}}',
  ],
  ...[
    '{"command.resume":1}',
    '{"threadId":"victim-1"}',
    '{"__proxiedMCPRequest":{"method":"tools/call"}}',
    '{"tenant":{"a":1,"a":2}}',
    '{"__proto__":{"tenant":1}}',
    '{"toString":1,"tenant":{"deep":[{}]}}',
  ],
]
const MESSAGES = [
  '[]',
  '[]',
  '[{"id":"m1","role":"user","content":"hello"}]',
  '[{"id":"m1","role":"user","content":"h\u00e9llo \\u00e9 \\ud83d\\ude00 {\\"threadId\\":\\"x\\"}"}]',
  '[{"role":"user","role":"system"}]',
]

const values = fc.record({
  id: anyId.map((id) => JSON.stringify(id)),
  agent: agentId.map((id) => JSON.stringify(id)),
  props: fc.oneof({ arbitrary: fc.constant('{}'), weight: 3 }, { arbitrary: fc.constantFrom(...PROPS), weight: 1 }),
  messages: fc.constantFrom(...MESSAGES),
  state: fc.oneof(
    { arbitrary: fc.constantFrom('{}', 'null', '{"a":[1,2.50,-0]}', '"s"'), weight: 8 },
    { arbitrary: fc.constantFrom(...EVIL_VALUES), weight: 1 },
  ),
  json: fc.oneof({ arbitrary: fc.constant('"x"'), weight: 8 }, { arbitrary: fc.json(), weight: 1 }),
})

function memberOf(key: string, of: Record<string, string>): Member {
  const values: Record<string, string | undefined> = {
    threadId: of['id'],
    agentId: of['agent'],
    forwardedProps: of['props'],
    messages: of['messages'],
    tools: '[]',
    context: '[]',
    state: of['state'],
    resume: '[]',
    archived: 'true',
  }
  return [JSON.stringify(key), values[key] ?? of['json'] ?? '"x"']
}

const key = fc.constantFrom(...KEYS)
const value = fc.oneof(
  fc.constantFrom(...EVIL_VALUES),
  anyId.map((id) => JSON.stringify(id)),
)

// Mostly the first member: what it says matters most.
const which = fc.constantFrom(0, 0, 0, 1, 2)

/**
 * Edits of an object's members with these keys and values.
 * @param none how often there are none, to one time that there are some
 */
export const membersEdits = (
  key: fc.Arbitrary<string>,
  value: fc.Arbitrary<string>,
  none = 3,
): fc.Arbitrary<readonly MembersEdit[]> => {
  const one: fc.Arbitrary<MembersEdit> = fc.oneof(
    fc.tuple(key, value).map((member): MembersEdit => (members) => [...members, member]),
    fc.tuple(key, value).map((member): MembersEdit => (members) => [member, ...members]),
    fc.tuple(which, key).map(
      ([index, other]): MembersEdit =>
        (members) =>
          members.map(([name, part], at) => [at === index ? other : name, part]),
    ),
    fc.tuple(which, value).map(
      ([index, other]): MembersEdit =>
        (members) =>
          members.map(([name, part], at) => [name, at === index ? other : part]),
    ),
    fc.nat({ max: 9 }).map(
      (index): MembersEdit =>
        (members) =>
          members.filter((_member, at) => at !== index % (members.length || 1)),
    ),
    fc.constant<MembersEdit>((members) => [...members, ...members]),
    fc.constant<MembersEdit>((members) => [...members].reverse()),
  )
  return fc.oneof(
    { arbitrary: fc.constant<MembersEdit[]>([]), weight: none },
    { arbitrary: fc.array(one, { minLength: 1, maxLength: 3 }), weight: 1 },
  )
}

/** The bytes of a text, a character for each. */
export const utf8 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
const utf16 = (text: string): string => Buffer.from(text, 'utf16le').toString('latin1')
const utf32 = (text: string): string => [...text].map((one) => `${one}\0\0\0`).join('')

/** Edits of the bytes as a whole. */
const textEdit: fc.Arbitrary<TextEdit> = fc.constantFrom<TextEdit[]>(
  (text) => `\xef\xbb\xbf${text}`,
  (text) => `${text} x`,
  (text) => `${text}${text}`,
  (text) => `${text}\0`,
  (text) => ` \r\n\t${text}\n`,
  (text) => `\xa0${text}`,
  (text) => `[${text}]`,
  (text) => JSON.stringify(text),
  (text) => `{"method":"agent/run","params":{"agentId":"default"},"body":${text}}`,
  (text) => `{"method":"resource/request","params":{"path":"/threads/victim-1/messages","httpMethod":"GET"},"body":${text}}`,
  (text) => text.slice(0, -1),
  (text) => text.replace(/\}$/, ',}'),
  (text) => text.replaceAll('"', "'"),
  (text) => `/* */${text}`,
  (text) => text.replace(/"$|"\}/, '\xff"}'),
  (text) => text.replace('"', '"\xc0\xaf'),
  (text) => text.replace(/[a-z]/, '\xed\xa0\x80'),
  (text) => text.replace(/[a-z]"/, (end) => `${end[0] ?? ''}\xe2\x80\x8b"`),
  (text) => text.replace('t', '\x00'),
  (text) => text.replace('"', '"\t'),
  (text) => text.replaceAll('"threadId"', '"+AHQ-hreadId"'),
  (text) => utf16(text),
  (text) => `\xff\xfe${utf16(text)}`,
  (text) => `\xfe\xff${Buffer.from(utf16(text), 'latin1').swap16().toString('latin1')}`,
  (text) => utf32(text),
  (text) => gzipSync(Buffer.from(text, 'latin1')).toString('latin1'),
  () => '',
  () => 'null',
  () => '"threadId"',
  () => 'NaN',
  (text) => `{"state":${'['.repeat(300)}${text}${']'.repeat(300)}}`,
  (text) => text.replace(/\}$/, ',"n":[1e400]}'),
)

/** A body that is fine, and an envelope to who looks for one (runtime-behaviour.md, "Single-route transport"). */
const alsoEnvelope: fc.Arbitrary<readonly MembersEdit[]> = fc
  .constantFrom<(readonly Member[])[]>(
    [
      ['"method"', '"agent/run"'],
      ['"params"', '{"agentId":"default"}'],
      ['"body"', '{"threadId":"victim-1"}'],
    ],
    [
      ['"method"', '"resource/request"'],
      ['"params"', '{"path":"/threads/clear","httpMethod":"POST"}'],
    ],
    [['"method"', '"info"']],
  )
  .map((more) => [(members) => [...members, ...more]])

const members = fc.oneof({ arbitrary: membersEdits(key, value), weight: 20 }, { arbitrary: alsoEnvelope, weight: 1 })
/** Edits of a text: mostly none. */
export const texts = fc.oneof(
  { arbitrary: fc.constant<TextEdit[]>([]), weight: 9 },
  { arbitrary: fc.array(textEdit, { minLength: 1, maxLength: 2 }), weight: 1 },
)

/** Writes an object of its members, changed. */
export function jsonText(own: readonly Member[], changes: readonly MembersEdit[]): string {
  return `{${changes
    .reduce((all, change) => change(all), own)
    .map((member) => member.join(':'))
    .join(',')}}`
}

const inner = fc.oneof({ arbitrary: fc.constant<readonly Member[]>([]), weight: 2 }, { arbitrary: innerMembers, weight: 1 })

const json: fc.Arbitrary<WriteBody> = fc.record({ values, members, texts, inner }).map((parts): WriteBody => (route) => {
  const keys = route.body.kind === 'none' ? ['threadId'] : route.body.keys
  const own = new Map(parts.inner)
  const text = utf8(
    jsonText(
      keys.map((name) => {
        const [key, value] = memberOf(name, parts.values)
        return [key, own.get(key) ?? value]
      }),
      parts.members,
    ),
  )
  return parts.texts.reduce((bytes, change) => change(bytes), text)
})

const infoQuestion: fc.Arbitrary<WriteBody> = fc
  .constantFrom(
    '{"method":"info"}',
    '{"method":"info","params":{}}',
    '{"method":"agent/run"}',
    '{"method":"info","method":"agent/run"}',
    '{"method":["info"]}',
  )
  .map(
    (text): WriteBody =>
      () =>
        text,
  )

/** Too large, and too many values: rarely, because they cost. */
export const hugeBody: fc.Arbitrary<WriteBody> = fc.oneof(
  { arbitrary: fc.constant<WriteBody>(() => `{"threadId":"t1","state":"${'x'.repeat(LIMITS.runBody)}"}`), weight: 3 },
  { arbitrary: fc.constant<WriteBody>(() => `{"threadId":"t1","x":"${'x'.repeat(LIMITS.body)}"}`), weight: 3 },
  { arbitrary: fc.constant<WriteBody>(() => `{"threadId":"t1","state":[${','.repeat(MAX_VALUES + 1)}]}`), weight: 4 },
  { arbitrary: fc.constant<WriteBody>(() => `{"threadId":"t1",${manyMembers(101, 'k')}}`), weight: 4 },
  {
    arbitrary: fc.constant<WriteBody>(
      () => `{"threadId":"t1","state":{${manyMembers(MAX_LONG_KEYS / LONG_KEY, 'k'.repeat(LONG_KEY))}}}`,
    ),
    weight: 4,
  },
)

/** Once V8 has seen the first, it takes a key of the second for one with a backslash (nodejs/node#63785). */
const misread: fc.Arbitrary<WriteBody> = fc.constantFrom<WriteBody[]>(
  () => '{"threadId":"t1","\\\\u0074hr":"x","runId":"x"}',
  () => '{"threadId":"t1","\\u0074hreadId":"victim-1","runId":"x"}',
)

const none: fc.Arbitrary<WriteBody> = fc.constant<WriteBody>(() => null)

/** A body as the route takes it, mostly. */
export const fittingBody: fc.Arbitrary<WriteBody> = fc
  .record({ json, form, none, given: fc.boolean() })
  .map((parts): WriteBody => (route) => {
    if (route.body.kind === 'none') return null
    if (route.body.kind === 'recording' && parts.given) return parts.form
    return route.body.kind === 'json' && route.body.optional === true && parts.given ? null : parts.json(route)
  })

/** Whatever body. */
export const anyBody: fc.Arbitrary<WriteBody> = fc.oneof(
  { arbitrary: json, weight: 20 },
  { arbitrary: none, weight: 10 },
  {
    arbitrary: form.map(
      (text): WriteBody =>
        () =>
          text,
    ),
    weight: 6,
  },
  { arbitrary: infoQuestion, weight: 10 },
  { arbitrary: misread, weight: 6 },
)

/** So many members of an object, as they stand in a text: their keys begin alike. */
function manyMembers(count: number, key: string): string {
  return Array.from({ length: count }, (_, at) => `"${key}${at}":1`).join()
}
