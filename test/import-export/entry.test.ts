/** What a line may say of a thread, whatever it is written in: each field is checked, and nothing is guessed. */
import { test } from 'tap'
import { faults, NOW, one, READING } from './sources.ts'

const THREAD = { thread: 't-1', user: 'corp:alice' }

void test('a line with a thread and a user is enough: it is live, and of now', async (t) => {
  t.same(await one(THREAD), {
    kind: 'row',
    line: 1,
    scope: '',
    threadId: 't-1',
    owner: 'corp:alice',
    facts: { agentId: '', name: null, archived: false, createdAt: NOW, lastUsedAt: NOW, deletedAt: null },
  })
})

void test('all that is said is taken', async (t) => {
  const times = { created: '2026-01-01T00:00:00Z', used: '2026-01-02T01:00:00+01:00', deleted: '2026-01-03T00:00:00.5Z' }
  t.match(await one({ ...THREAD, agent: 'default', name: ' Käse, 🧀 ', archived: true, ...times }), {
    facts: {
      agentId: 'default',
      name: ' Käse, 🧀 ',
      archived: true,
      createdAt: Date.parse('2026-01-01T00:00:00Z'),
      lastUsedAt: Date.parse('2026-01-02T00:00:00Z'),
      deletedAt: Date.parse('2026-01-03T00:00:00.500Z'),
    },
  })
})

void test('of two times that are not both said, one stands for the other', async (t) => {
  const time = Date.parse('2026-01-01T00:00:00Z')
  t.match(await one({ ...THREAD, created: '2026-01-01T00:00:00Z' }), { facts: { createdAt: time, lastUsedAt: time } })
  t.match(await one({ ...THREAD, used: '2026-01-01T00:00:00Z' }), { facts: { createdAt: time, lastUsedAt: time } })
})

void test('null and an empty text say nothing', async (t) => {
  t.same(await one({ ...THREAD, agent: '', name: null, archived: null, created: '', deleted: '' }), await one(THREAD))
})

void test('nobody is the owner that was taken away', async (t) => {
  t.match(await one({ ...THREAD, user: 'nobody' }), { kind: 'row', owner: '' })
})

void test('the scope is that of an upstream that there is; of a line without one it is the usual one, if there is one', async (t) => {
  t.match(await one({ ...THREAD, scope: 'legal' }), { kind: 'row', scope: 'legal', threadId: 't-1' })
  t.match(await one({ ...THREAD, scope: '' }, { ...READING, scope: 'legal' }), { kind: 'row', scope: 'legal' })
  const alone = { ...READING, scopes: ['research'], scope: null }
  t.match(await one({ ...THREAD, scope: 'research' }, alone), { kind: 'row', scope: 'research' })
  t.match(await one(THREAD, alone), {
    kind: 'fault',
    threadId: null,
    reason: /^it has no scope: .*--scope KEY \(research\)$/,
  })
  for (const [scope, reason] of [
    ['lega', /^the scope "lega" is not valid: the configuration has no upstream with this key: did you mean "legal"\?$/],
    ['elsewhere', /no upstream with this key: it has: legal, research$/],
    ['LEGAL', /a key of upstreams or agents has/],
    [5, /^5 is not a key of an upstream$/],
  ] as const)
    t.match(await one({ ...THREAD, scope }), { kind: 'fault', threadId: null, reason })
})

void test('anonymous is a user where callers may come in without a credential, and there alone', async (t) => {
  t.match(await one({ ...THREAD, user: 'anonymous' }), { kind: 'fault', reason: /there are no anonymous callers/ })
  const reading = { ...READING, users: { ...READING.users, anonymous: true } }
  t.match(await one({ ...THREAD, user: 'anonymous' }, reading), { kind: 'row', owner: 'anonymous' })
})

for (const [name, fields, reason] of [
  ['no thread', { user: 'corp:a' }, /^it has no thread/],
  ['no user', { thread: 't' }, /^it has no user/],
  ['an empty user', { thread: 't', user: '' }, /^it has no user/],
  ['a thread with a space', { ...THREAD, thread: 't 1' }, /^"t 1" is not a thread id/],
  ['a thread that is a number', { ...THREAD, thread: 5 }, /^5 is not a thread id/],
  ['a UUID in capitals', { ...THREAD, thread: '0F8FAD5B-D9CB-469F-A165-70867728950E' }, /is not a thread id/],
  ['a word of the routes', { ...THREAD, thread: 'clear' }, /is not a thread id/],
  ['a user that is a number', { ...THREAD, user: 5 }, /^5 is not a user id/],
  ['a user without an issuer', { ...THREAD, user: 'alice' }, /write issuer:name/],
  ['a user without a subject', { ...THREAD, user: 'corp:' }, /write issuer:name/],
  ['a user with a newline', { ...THREAD, user: 'corp:a\nb' }, /write issuer:name/],
  ['an issuer that is nearly one', { ...THREAD, user: 'crop:a' }, /no issuer "crop": did you mean "corp"\?/],
  ['an issuer that is none', { ...THREAD, user: 'elsewhere:a' }, /no issuer "elsewhere": it has: corp, staff/],
  ['an issuer in capitals', { ...THREAD, user: 'Corp:a' }, /no issuer "Corp"/],
  ['an agent id that is none', { ...THREAD, agent: 'a b' }, /^"a b" is not an agent id/],
  ['a name of 1001 characters', { ...THREAD, name: 'x'.repeat(1001) }, /^its name/],
  ['a name with half a character', { ...THREAD, name: '\ud83e' }, /^its name/],
  ['a name with NUL', { ...THREAD, name: 'a\0b' }, /^its name/],
  ['a name that is a number', { ...THREAD, name: 1 }, /^its name/],
  ['archived: yes', { ...THREAD, archived: 'yes' }, /^archived must be true or false, not "yes"/],
  ['a time without a zone', { ...THREAD, used: '2026-01-31T12:00:00' }, /^used must be a time with its zone/],
  ['a time in seconds', { ...THREAD, created: 1769860800 }, /^created must be a time with its zone.* not 1769860800/],
  ['a day that is not there', { ...THREAD, deleted: '2026-02-30T00:00:00Z' }, /^deleted must be a time/],
  // Found by the fuzz: an export would write them as years that no import takes.
  ['a time after the year 9999', { ...THREAD, used: '9999-12-31T23:59:00-00:01' }, /^used must be a time/],
  ['a time before the year 0', { ...THREAD, created: '0000-01-01T00:00:00+00:01' }, /^created must be a time/],
] as const) {
  void test(`${name} is a fault`, async (t) => {
    t.match(await one(fields), { kind: 'fault', line: 1, reason })
  })
}

void test('a name of 1000 characters is none', async (t) => {
  t.match(await one({ ...THREAD, name: 'x'.repeat(1000) }), { kind: 'row' })
})

void test('what a message repeats of a line is cut', async (t) => {
  const [fault = ''] = await faults(JSON.stringify({ thread: 'x'.repeat(50_000), user: 'corp:a' }), 'jsonl')
  t.ok(fault.length < 150, fault)
})

void test('of what can be read in a line with a fault it is told whose it says that a thread is', async (t) => {
  t.match(await one({ ...THREAD, used: 'bad' }), { kind: 'fault', threadId: 't-1', owner: 'corp:alice' })
  t.match(await one({ ...THREAD, user: 'crop:x' }), { kind: 'fault', threadId: 't-1', owner: 'crop:x' })
  t.match(await one({ ...THREAD, thread: 'a b' }), { kind: 'fault', threadId: null })
})
