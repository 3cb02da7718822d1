/** What counts as an answer to an interrupt, what the audit says of it, and the rule that says who may answer. */
import { test } from 'tap'
import { answersIn, type InterruptAnswer } from '../../src/core/route/interrupt-answers.ts'
import { checkIds } from '../../src/core/route/bodies.ts'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type Facts } from '../../src/core/decide/decide.ts'
import { traceOf } from '../../src/core/decide/trace.ts'
import type { Json, JsonObject } from '../../src/core/json/read.ts'
import { ROUTES } from '../../src/core/route/routes.ts'
import { user } from '../../testing/support/callers.ts'
import { descriptor } from '../../testing/support/policies.ts'
import { rule, rulesOf } from '../../testing/support/rules-of.ts'

const entry = (more: JsonObject): JsonObject => ({ interruptId: 'i-1', status: 'resolved', ...more })
const command = (resume: Json): JsonObject => ({ forwardedProps: { command: { resume } } })
const one = (answer: string, id: string | null = null): unknown[] => [{ id, answer }]
const verdictOf = (payload: Json): unknown =>
  (answersIn({ resume: [entry({ payload })] }, false) as readonly InterruptAnswer[])[0]?.answer

void test('what resumes nothing is no answer', (t) => {
  for (const body of [
    {},
    { resume: null },
    { resume: [] },
    { forwardedProps: {} },
    { forwardedProps: null },
    { forwardedProps: [{ command: { resume: true } }] },
    { forwardedProps: { command: null } },
    { forwardedProps: { command: {} } },
    { forwardedProps: { command: { goto: 'a' } } },
    { forwardedProps: { 'command.resume': true, commands: { resume: true }, resume: true } },
    { forwarded_props: { command: { resume: true } }, Resume: [entry({})], state: { resume: [entry({})] } },
  ] as const) {
    t.same(answersIn(body, true), [], JSON.stringify(body))
  }
  t.end()
})

void test('whatever else is there is an answer, in each form', (t) => {
  for (const resume of ['yes', '', 0, false, true, {}, { interruptId: 'i-1', status: 'resolved', payload: true }] as const) {
    t.same(answersIn({ resume }, false), one('answered'), JSON.stringify(resume))
  }
  for (const item of [null, 'yes', [], {}, true] as const) t.same(answersIn({ resume: [item] }, false), one('answered'))
  for (const resume of [null, '', 0, {}, [], 'yes'] as const) t.same(answersIn(command(resume), false), one('answered'))
  for (const part of ['{"resume":true}', [{ resume: true }], [], true, 0, ''] as const) {
    t.same(answersIn({ forwardedProps: { command: part } }, false), one('answered'), JSON.stringify(part))
  }
  for (const [name, key] of [
    ['Command', 'resume'],
    ['_command', 'resume'],
    ['COMMAND', 'Resume'],
    ['command', 're_sume'],
  ] as const) {
    t.same(answersIn({ forwardedProps: { [name]: { [key]: true } } }, false), one('approved'), `${name}.${key}`)
  }
  const both = { resume: [entry({ payload: false })], ...command(true) }
  t.same(answersIn(both, false), [...one('refused', 'i-1'), ...one('approved')])
  t.end()
})

void test('an entry names its interrupt, and its status counts before its payload', (t) => {
  const ids = (more: JsonObject): unknown => answersIn({ resume: [entry(more)] }, false)
  t.same(ids({ payload: true }), one('approved', 'i-1'))
  t.same(ids({ status: 'cancelled', payload: true }), one('cancelled', 'i-1'))
  for (const status of ['RESOLVED', '', null, 1])
    t.same(ids({ status, payload: true }), one('answered', 'i-1'), JSON.stringify(status))
  for (const interruptId of [null, 1, {}, ['i-1']]) t.same(ids({ interruptId, payload: true }), one('approved'))
  t.same(ids({ interruptId: 'x'.repeat(300), payload: true }), one('approved', 'x'.repeat(256)), 'as much of it as a line takes')
  t.end()
})

void test('an approval, a refusal, and neither', (t) => {
  for (const payload of [
    true,
    'approve',
    'approved',
    'accept',
    'accepted',
    { approved: true },
    { accepted: true, steps: [] },
    { type: 'accept', args: null },
    [{ type: 'accept' }],
    { decisions: [{ type: 'approve' }, { type: 'approve' }] },
  ])
    t.equal(verdictOf(payload), 'approved', JSON.stringify(payload))
  for (const payload of [
    false,
    'reject',
    'denied',
    { approved: false, reason: 'no' },
    { accepted: false },
    { type: 'ignore' },
    { decisions: [{ type: 'reject', message: 'no' }] },
    [{ type: 'ignore', args: null }],
  ])
    t.equal(verdictOf(payload), 'refused', JSON.stringify(payload))
  for (const payload of [
    null,
    1,
    '',
    'yes',
    'Approve',
    {},
    [],
    { approved: 'true' },
    { approved: null },
    { type: 'edit' },
    { type: 'response', args: 'approve' },
    { decisions: [] },
    { decisions: true },
    { decisions: [{ type: 'approve' }, { type: 'reject' }] },
    { decisions: [{ type: 'edit' }] },
    { approved: true, type: 'reject' },
    { approved: true, decisions: [{ type: 'reject' }] },
    [[[true]]],
    { constructor: true },
    Array.from({ length: 101 }, () => true),
  ])
    t.equal(verdictOf(payload), 'answered', JSON.stringify(payload))
  t.end()
})

void test('command.resume is read as the LangGraph agent of the runtime reads it', (t) => {
  const [first, second] = ['a'.repeat(32), '0'.repeat(32)]
  t.same(
    answersIn(command('{"approved":true,"approved":false}'), false),
    one('refused'),
    'JSON text, of which the last name counts',
  )
  t.same(answersIn(command(`{"approved":true${' '.repeat(5000)}}`), false), one('answered'), 'a long text')
  t.same(answersIn(command({ __agui_cancelled__: true, interrupt_id: 'i-1' }), false), one('cancelled', 'i-1'))
  t.same(answersIn(command({ __agui_resume_map__: { x: entry({ payload: true }), y: { status: 'cancelled' } } }), false), [
    { id: 'x', answer: 'approved' },
    { id: 'y', answer: 'cancelled' },
  ])
  t.same(answersIn(command({ __agui_resume_map__: {} }), false), one('answered'))
  t.same(answersIn(command({ [first]: true, [second]: { approved: false } }), false), [
    { id: first, answer: 'approved' },
    { id: second, answer: 'refused' },
  ])
  t.same(answersIn(command({ [first]: true, other: true }), false), one('answered'), 'a map with another name is none')
  t.end()
})

void test('content comes where it is asked for, within a bound for all answers together', (t) => {
  t.same(answersIn({ resume: [entry({ payload: { a: 'x' } })], ...command('"free"') }, true), [
    { id: 'i-1', answer: 'answered', content: '{"a":"x"}' },
    { id: null, answer: 'answered', content: '"free"' },
  ])
  const long = 'x'.repeat(4000)
  t.match(answersIn({ resume: [entry({ payload: long }), entry({ payload: long }), entry({ payload: 1 })] }, true), [
    { content: `"${long}"` },
    { content: null },
    { content: '1' },
  ])
  for (const payload of ['x'.repeat(4095), '\u0000'.repeat(1000), [...Array(3000).keys()], { ['k'.repeat(5000)]: 1 }] as const) {
    t.match(answersIn({ resume: [entry({ payload })] }, true), [{ content: null }])
  }
  t.match(answersIn({ resume: [entry({ status: 'cancelled' })] }, true), [{ content: 'null' }])
  t.end()
})

void test('a run with more than 100 answers is refused: the audit would not have all', (t) => {
  const about = { ...descriptor('POST', 'agent/a/run') }
  const asked = (body: JsonObject) => checkIds(about, { threadId: 't-1', ...body })
  const entries = (count: number): Json => Array.from({ length: count }, (_one, at) => entry({ interruptId: `i-${at}` }))
  t.match(asked({ resume: entries(100) }), { descriptor: { answers: { length: 100 } } })
  for (const body of [{ resume: entries(101) }, { resume: entries(100), ...command(true) }, { resume: entries(20_000) }]) {
    t.match(asked(body), { reason: 'interrupt-answers-too-many', code: 'body-too-large' })
  }
  const map = Object.fromEntries(Array.from({ length: 101 }, (_one, at) => [String(at).padStart(32, '0'), true]))
  for (const resume of [map, { __agui_resume_map__: map }]) {
    t.match(asked(command(resume)), { reason: 'interrupt-answers-too-many' })
  }
  t.end()
})

void test('a descriptor says what its body answers, on the routes that take a run', (t) => {
  for (const route of ROUTES) {
    const found = checkIds({ outcome: 'classified', route, ids: {}, query: [] }, { threadId: 't-1', ...command(true) })
    const isRun = ['agent/run', 'agent/connect', 'agent/suggest'].includes(route.id)
    t.same(found.outcome === 'checked' && found.descriptor.answers, isRun ? one('approved') : undefined, route.id)
  }
  t.notOk('answers' in (checkIds(descriptor('POST', 'agent/a/run'), { threadId: 't-1' }) as { descriptor: object }).descriptor)
  t.end()
})

const FACTS: Facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' }
const alice = user('alice')
const lead = user('lead', { roles: ['approver'] })
const refusing = { ...rule().passes, interrupts: 'refuse' } as const
const APPROVERS = { name: 'approvers', threads: ['own', 'shared'], when: { roles: ['approver'] } } as const
const CHAT = { name: 'chat', threads: ['own', 'shared', 'unknown'], passes: refusing } as const
const RULES = rulesOf({ 'agent/run': [APPROVERS, CHAT], 'agent/connect': [CHAT] })
const run: RouteDescriptor = { ...descriptor('POST', 'agent/a/run'), ids: { agentId: 'a', threadId: 't-1' } }
const answering: RouteDescriptor = { ...run, answers: [{ id: null, answer: 'answered' }] }
const REFUSED = { outcome: 'refused', reason: 'interrupt-answer-not-allowed', code: 'not-allowed', rule: { name: 'chat' } }

void test('the first matching allow rule says who may answer, on own and shared threads', (t) => {
  for (const record of [
    { owner: 'corp:alice', deleted: false },
    { owner: 'corp:bob', deleted: false, granted: 'write' },
  ] as const) {
    t.match(decide(answering, alice, RULES, { ...FACTS, record }), REFUSED)
    t.match(
      decide(run, alice, RULES, { ...FACTS, record }),
      { outcome: 'permitted', rule: { name: 'chat' } },
      'another run passes',
    )
  }
  const shared = { owner: 'corp:alice', deleted: false, granted: 'write' } as const
  t.match(decide(answering, lead, RULES, { ...FACTS, record: shared }), { outcome: 'permitted', rule: { name: 'approvers' } })
  t.match(decide(answering, lead, RULES, { ...FACTS, record: { ...shared, granted: 'read' } }), { reason: 'thread-foreign' })
  t.match(decide(answering, lead, RULES, { ...FACTS, record: null }), REFUSED, 'a rule of other threads is not asked')
  t.match(decide(answering, alice, RULES, { ...FACTS, record: shared, enforcement: 'enforce' }), REFUSED)
  t.end()
})

void test('ownership comes first: a refusal tells nothing of a foreign thread', (t) => {
  const record = { owner: 'corp:bob', deleted: false }
  t.match(decide(answering, alice, RULES, { ...FACTS, record }), { reason: 'thread-foreign', code: 'not-owner' })
  t.match(decide(answering, alice, RULES, FACTS), { outcome: 'needs', fact: 'record' })
  t.end()
})

void test('observe mode enforces it, and the upstream is not asked for what is refused', (t) => {
  for (const owner of ['corp:alice', 'corp:bob']) {
    const facts = { ...FACTS, enforcement: 'observe', record: { owner, deleted: false } } as const
    t.match(decide(answering, alice, RULES, facts), REFUSED, owner)
  }
  t.match(decide(answering, alice, RULES, { ...FACTS, unknownThread: 'verify', record: null }), REFUSED)
  t.match(
    decide({ ...answering, route: descriptor('POST', 'agent/a/connect').route }, alice, RULES, { ...FACTS, record: null }),
    REFUSED,
  )
  t.end()
})

void test('a hidden route stays hidden, and explain names the rule', (t) => {
  const hidden = rulesOf({ 'agent/run': [CHAT] }, { hide: true })
  const record = { owner: 'corp:alice', deleted: false }
  t.match(decide(answering, alice, hidden, { ...FACTS, record }), { ...REFUSED, code: 'not-found' })
  const { tried, decision } = traceOf(answering, alice, RULES, { ...FACTS, record })
  t.match(decision, REFUSED)
  t.match(tried, [{ decides: false }, { rule: { name: 'chat' }, verdict: 'applies', decides: true }])
  t.end()
})
