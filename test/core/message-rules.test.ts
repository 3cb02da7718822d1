/** What a caller may send as messages. */
import { test } from 'tap'
import type { Json } from '../../src/core/json/read.ts'
import { atOnce } from '../../src/core/json/steps.ts'
import { applyMessageRules, type MessageRules } from '../../src/core/route/message-rules.ts'
import { OPEN_BODIES } from '../../testing/support/open-bodies.ts'

const user = (content: Json, more: Record<string, Json> = {}): Json => ({ id: 'm', role: 'user', content, ...more })

function apply(messages: readonly Json[], rules: Partial<MessageRules>) {
  const dropped: string[] = []
  const result = atOnce(applyMessageRules(messages, { ...OPEN_BODIES.messages, ...rules }, dropped))
  return 'outcome' in result ? result.reason : { kept: result, dropped }
}

void test('messages of other roles are dropped, or the request is refused', (t) => {
  const roles = new Set(['user', 'tool'])
  const own = user('x')
  const others: Json[] = [
    { id: 's', role: 'system', content: 'x' },
    { id: 's', role: 'System', content: 'x' },
    { id: 's', role: ['user'], content: 'x' },
    { id: 's', content: 'x' },
    'system',
    null,
  ]
  t.strictSame(apply([own, ...others, own], { roles }), {
    kept: [own, own],
    dropped: ['messages[system]', 'messages[]', 'messages[]', 'messages[]', 'messages[]', 'messages[]'],
  })
  for (const other of others)
    t.equal(apply([own, other], { roles, others: 'refuse' }), 'message-role-not-allowed', JSON.stringify(other))
  const all = [own, { id: 't', role: 'tool' }]
  const passed = apply(all, { roles, others: 'refuse' })
  t.ok(typeof passed === 'object' && passed.kept === all, 'the same list where all of it passes')
  t.end()
})

void test('the number of messages is bounded, without those that are dropped', (t) => {
  const roles = new Set(['user'])
  const system = { id: 's', role: 'system' }
  t.match(apply([user('1'), system, user('2')], { roles, most: 2 }), { kept: { length: 2 } })
  t.equal(apply([user('1'), user('2'), user('3')], { roles, most: 2 }), 'messages-too-many')
  t.end()
})

void test('the text of a message is bounded in bytes, wherever it is in the message', (t) => {
  // `m`, `user` and 5 bytes more.
  t.match(apply([user('12345')], { size: 10 }), { kept: { length: 1 } })
  for (const large of [
    user('123456'),
    user('ééé'),
    user([{ type: 'text', text: 'xy' }]),
    user('', { metadata: { a: [{ b: '123456' }] } }),
    user('', { name: '123456' }),
  ])
    t.equal(apply([user('1'), large], { size: 10 }), 'message-too-large', JSON.stringify(large))
  t.end()
})

const at = (value: string, type = 'url'): Json => ({ type: 'image', source: { type, value } })

void test('media of content parts', (t) => {
  const media = new Set(['image'])
  const text = { type: 'text', text: 'x' }
  t.match(apply([user([text, at('https://e.example')]), user('text')], { media }), { kept: { length: 2 } })
  for (const part of [
    { type: 'audio' },
    { type: 'binary', url: 'https://e.example' },
    { type: 'Image' },
    {},
    'image',
    null,
    { type: ['image'] },
  ]) {
    t.equal(apply([user([text, part])], { media }), 'message-part-not-allowed', JSON.stringify(part))
    t.equal(apply([user([part], { role: 'tool' })], { media }), 'message-part-not-allowed', JSON.stringify(part))
  }
  t.match(apply([user([text])], { media: new Set() }), { kept: { length: 1 } })
  t.equal(apply([user([at('x')])], { media: new Set() }), 'message-part-not-allowed')
  t.match(apply([user([{ any: 1 }], { role: 'activity' })], { media }), { kept: { length: 1 } }, "an application's own value")
  t.end()
})

void test('URL schemes of content parts', (t) => {
  const schemes = new Set(['https', 'data'])
  const binary = (more: Record<string, Json>): Json => ({ type: 'binary', mimeType: 'image/png', ...more })
  for (const part of [
    at('https://e.example/a?b#c'),
    at('HTTPS://e.example'),
    at('data:image/png;base64,AA=='),
    at('AA==', 'data'),
    binary({ data: 'AA==' }),
    binary({ url: 'https://e.example', data: null }),
  ])
    t.match(apply([user([part])], { schemes }), { kept: { length: 1 } }, JSON.stringify(part))
  for (const part of [
    at('http://e.example'),
    at('file:///etc/passwd'),
    at('//e.example'),
    at('/etc/passwd'),
    at('e.example'),
    at(' https://e.example'),
    at('https://e.example\\@internal'),
    at('https://e.example\n'),
    at('https\t://e.example'),
    at(''),
    at('f-1', 'file'),
    at('x', 'other'),
    { type: 'image' },
    { type: 'image', source: 'https://e.example' },
    { type: 'image', source: { type: 'url' } },
    binary({}),
    binary({ url: 'http://e.example' }),
    binary({ url: 'http://e.example', data: 'AA==' }),
    binary({ url: ['https://e.example'] }),
    binary({ id: 'f-1' }),
  ])
    t.equal(apply([user([part])], { schemes }), 'message-part-not-allowed', JSON.stringify(part))
  t.match(apply([user([at('f-1', 'file'), binary({ id: 'f-1' })])], { schemes: new Set(['provider']) }), { kept: { length: 1 } })
  t.end()
})
