/** Test files: what they may say, and what is wrong with them, told with its line. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { faultLine } from '../../src/document/fault.ts'
import { runTests } from '../../src/tools/simulate/run-tests.ts'
import { loadTests } from '../../src/tools/simulate/test-file.ts'
import { accepted, type Changes } from '../../testing/support/configuration.ts'
import { compiled, edited, ruled, SHIPPED } from '../../testing/support/policies.ts'
import { makeFolder } from '../../testing/support/gateway.ts'

const POLICY = compiled(SHIPPED)

/** A file with some parts of its own. */
function text(parts: {
  readonly principals?: object
  readonly threads?: object
  readonly facts?: object
  readonly tests: readonly object[]
  readonly policy?: string
}): string {
  return JSON.stringify({ version: 1, principals: { alice: { issuer: 'corp', id: 'alice' } }, ...parts }, null, 1)
}

/** What comes of it: faults, or the failures of each test. */
function outcome(content: string, changes: Changes = {}, policy?: string): readonly (string | readonly string[])[] {
  const { folder, remove } = makeFolder()
  try {
    const file = join(folder, 'a.yaml')
    writeFileSync(file, content)
    if (policy !== undefined) writeFileSync(join(folder, 'policy.yaml'), policy)
    const { config } = accepted(changes)
    const loaded = loadTests(file, config, POLICY)
    if (!loaded.ok) return loaded.faults.map((fault) => faultLine(fault).slice(file.length))
    return runTests(loaded.value, config).map(({ failures }) => failures)
  } finally {
    remove()
  }
}

const INFO = { name: 'a', as: 'alice', route: 'info', expect: 'permitted' }

for (const [what, parts, message] of [
  [
    'an unknown key',
    { tests: [{ ...INFO, expects: 'permitted' }] },
    /:\d+: tests\.0\.expects: is not a known key \(did you mean "expect"\?\)/,
  ],
  ['nobody', { tests: [{ ...INFO, as: ['alice', 'bob'] }] }, /:\d+: tests\.0\.as: bob is not a principal/],
  ['no route', { tests: [{ ...INFO, route: 'agent/runn' }] }, /tests\.0\.route: is not a route/],
  ['no code', { tests: [{ ...INFO, expect: { outcome: 'refused', code: 'nope' } }] }, /tests\.0\.expect/],
  [
    'nothing expected',
    { tests: [{ name: 'a', as: 'alice', route: 'info' }] },
    /tests\.0: must have exactly one of expect, lists, agents/,
  ],
  ['two things expected', { tests: [{ ...INFO, lists: [] }] }, /tests\.0: must have exactly one of expect, lists, agents/],
  ['expect without a route', { tests: [{ name: 'a', as: 'alice', expect: 'refused' }] }, /expect without route/],
  [
    'a list about a thread',
    { tests: [{ name: 'a', as: 'alice', lists: [], thread: 't' }] },
    /method, agent, thread, leaves, messages or answers without route/,
  ],
  ['agents of nothing', { tests: [{ name: 'a', as: 'alice', agents: [] }] }, /agents without of/],
  ['agents of others', { tests: [{ name: 'a', as: 'alice', agents: ['a'], of: ['b'] }] }, /tests\.0\.agents: a is not in of/],
  ['a route without its thread', { tests: [{ ...INFO, route: 'agent/run' }] }, /tests\.0\.route: agent\/run is about a thread/],
  ['a thread for no route', { tests: [{ ...INFO, thread: 't' }] }, /tests\.0\.thread: the route is about no thread/],
  ['an agent for no route', { tests: [{ ...INFO, agent: 'a' }] }, /tests\.0\.agent: the route is about no agent/],
  ['a method that the route does not have', { tests: [{ ...INFO, method: 'POST' }] }, /tests\.0\.method: info has no POST/],
  [
    'a thread in a list that nobody owns',
    { tests: [{ name: 'a', as: 'alice', lists: ['t'] }] },
    /tests\.0\.lists: t is not under threads/,
  ],
  ['an id that is no thread', { threads: { 'a/b': { owner: 'alice' } }, tests: [INFO] }, /threads/],
  ['an owner who is nobody', { threads: { t: { owner: 'bob' } }, tests: [INFO] }, /:\d+: threads\.t\.owner: bob is not a user/],
  [
    'another right',
    { threads: { t: { owner: 'corp:bob', granted: 'all' } }, tests: [INFO] },
    /threads\.t\.granted: is not a right/,
  ],
  [
    'a grant on a thread that was deleted',
    { threads: { t: { owner: 'corp:bob', deleted: true, granted: 'read' } }, tests: [INFO] },
    /:\d+: threads\.t\.granted: has no effect \(a deletion ends all grants\)/,
  ],
  [
    'an owner of no issuer',
    { threads: { t: { owner: 'crop:bob' } }, tests: [INFO] },
    /threads\.t\.owner: crop:bob is not a user/,
  ],
  [
    'an issuer that there is not',
    { principals: { alice: { issuer: 'crop', id: 'alice' } }, tests: [INFO] },
    /:\d+: principals\.alice: the configuration has no issuer crop/,
  ],
  [
    'everybody where people sign in',
    { principals: { alice: 'everybody' }, tests: [INFO] },
    /principals\.alice: is "everybody", but authentication\.mode is not off/,
  ],
  [
    'claims that leave no id',
    { principals: { alice: { issuer: 'corp', id: 'alice', claims: { sub: 7 } } }, tests: [INFO] },
    /principals\.alice: has no user id/,
  ],
  ['a policy that is not there', { policy: './nowhere.yaml', tests: [INFO] }, /does not exist/],
  ['more than there is time for', { tests: [{ ...INFO, as: Array(100_001).fill('alice') }] }, /tests: need 100001 decisions/],
] as const) {
  void test(`${what} is a fault`, (t) => {
    t.match(outcome(text(parts)).join('\n'), message)
    t.end()
  })
}

void test('in mode off all callers are everybody', (t) => {
  const off = { 'authentication.mode': 'off' }
  t.match(outcome(text({ tests: [INFO] }), off)[0], /principals\.alice: is not possible: authentication\.mode is off/)
  t.same(outcome(text({ principals: { alice: 'everybody' }, tests: [INFO] }), off), [[]])
  t.end()
})

void test('whoever is anonymous is refused before any rule where a credential is required', (t) => {
  const principals = { alice: 'anonymous' }
  const about = (code: string) => [{ ...INFO, expect: { outcome: 'refused', code } }]
  t.same(outcome(text({ principals, tests: about('credential-missing') })), [[]])
  t.same(outcome(text({ principals, tests: about('not-allowed') }), { 'authentication.mode': 'optional' }), [[]])
  t.end()
})

void test('a policy beside the file takes the place of the configured one', (t) => {
  const content = text({ policy: './policy.yaml', tests: [INFO, { ...INFO, route: 'transcribe' }] })
  const [info, transcribe] = outcome(content, {}, ruled([{ name: 'only', routes: ['transcribe'], allow: ['signed-in'] }]))
  t.match(info, [/^alice, info \(GET\): expected permitted; got refused: 403 not-allowed \(no-rule-allows\)$/])
  t.same(transcribe, [])
  t.match(outcome(content, {}, 'version: 2')[0], /version: must be 1/)
  t.end()
})

void test("facts are the configuration's, or the file's", (t) => {
  const run = { name: 'a', as: 'alice', route: 'agent/run', thread: 'new', expect: 'permitted' }
  const failing = (facts: object, changes: Changes = {}) => outcome(text({ facts, tests: [run] }), changes)[0]?.length
  t.equal(failing({}), 0)
  t.equal(failing({}, { 'ownership.unknownThread': 'deny' }), 1)
  t.equal(failing({ unknownThread: 'deny' }), 1)
  t.equal(failing({ unknownThread: 'verify' }), 0)
  t.equal(failing({ unknownThread: 'verify', upstreamHistory: 'some' }), 1)
  t.equal(failing({}, { 'ownership.unknownThread': 'deny', enforcement: 'observe' }), 1, 'a policy is tested as enforced')
  const subscribe = { ...INFO, route: 'threads/subscribe' }
  t.equal(outcome(text({ facts: { userScoped: true }, tests: [subscribe] }))[0]?.length, 0)
  t.equal(outcome(text({ tests: [subscribe] }))[0]?.length, 1)
  t.end()
})

void test('each part of an expectation has to be so', (t) => {
  const foreign = { name: 'a', as: 'alice', route: 'threads/messages', thread: 't' }
  const threads = { t: { owner: 'corp:bob' } }
  const failing = (expect: object) => outcome(text({ threads, tests: [{ ...foreign, expect }] }))[0]?.length
  t.equal(failing({ outcome: 'refused', code: 'not-owner', reason: 'thread-foreign' }), 0)
  t.equal(failing({ outcome: 'refused', code: 'not-found' }), 1)
  t.equal(failing({ outcome: 'refused', reason: 'thread-unknown' }), 1)
  t.equal(failing({ outcome: 'refused', rule: 'threads' }), 1, 'no rule denied it')
  const info = (rule: string) => outcome(text({ tests: [{ ...INFO, expect: { outcome: 'permitted', rule } }] }))[0]?.length
  t.same([info('everyone'), info('chat')], [0, 1])
  t.end()
})

void test('what was granted counts for whoever else asks, and for their lists', (t) => {
  const principals = { alice: { issuer: 'corp', id: 'alice' }, bob: { issuer: 'corp', id: 'bob' } }
  const threads = { own: { owner: 'alice' }, read: { owner: 'bob', granted: 'read' }, write: { owner: 'bob', granted: 'write' } }
  const about = (route: string, thread: string, expect: string, more: object = {}) => ({
    name: 'a',
    as: 'alice',
    route,
    thread,
    expect,
    ...more,
  })
  const content = (policy?: string) =>
    text({
      ...(policy === undefined ? {} : { policy }),
      principals,
      threads,
      tests: [
        about('threads/messages', 'read', 'permitted'),
        about('agent/run', 'read', 'refused'),
        about('agent/run', 'write', 'permitted'),
        about('threads/update', 'write', 'refused', { method: 'DELETE' }),
        about('threads/grants', 'write', 'refused'),
        about('threads/update', 'write', 'permitted', { as: 'bob' }),
        { name: 'a', as: 'alice', lists: ['own', 'read', 'write'] },
        { name: 'a', as: 'bob', lists: ['read', 'write'] },
      ],
    })
  t.same(outcome(content()), Array(8).fill([]))
  const off = outcome(content('policy.yaml'), {}, edited('sharing: true', 'sharing: false'))
  t.same(
    off.map((failures) => failures.length),
    [1, 0, 1, 0, 0, 0, 1, 0],
    'one switch for access and lists',
  )
  t.match(off[6], [/^alice: expected a list of own, read, write; got own: read refused: 403 not-owner/])
  t.end()
})

void test('several callers, routes, agents and threads are each looked at', (t) => {
  const principals = { alice: { issuer: 'corp', id: 'alice' }, bob: { issuer: 'corp', id: 'bob' } }
  const threads = { t: { owner: 'alice' } }
  const tests = [
    {
      name: 'a',
      as: ['alice', 'bob'],
      route: ['agent/run', 'threads/update', 'info'],
      agent: ['a', 'b'],
      thread: ['t', 'new'],
      expect: 'permitted',
    },
  ]
  const [failures] = outcome(text({ principals, threads, tests }))
  t.same(
    (failures as readonly string[]).map((one) => one.split(':')[0]),
    [
      ...['PATCH', 'DELETE'].map((method) => `alice, threads/update (${method}), new`),
      ...['a', 'b'].map((agent) => `bob, agent/run (POST), ${agent}, t`),
      ...['PATCH', 'DELETE'].flatMap((method) => ['t', 'new'].map((thread) => `bob, threads/update (${method}), ${thread}`)),
    ],
  )
  t.end()
})

void test('agents are those that /info tells of', (t) => {
  const rules = [
    { routes: ['info'], allow: ['signed-in'] },
    { routes: ['agent/run'], allow: ['signed-in'], threads: ['own'], agents: ['default'] },
  ]
  const tests = [
    { name: 'a', as: 'alice', agents: ['default'], of: ['default', 'finance'] },
    { name: 'b', as: 'alice', agents: ['default', 'finance'], of: ['default', 'finance'] },
  ]
  const [right, wrong] = outcome(text({ policy: 'policy.yaml', tests }), {}, ruled(rules))
  t.same(right, [])
  t.same(wrong, ['alice: expected the agents default, finance; got default'])
  const [closed] = outcome(
    text({ policy: 'policy.yaml', tests: [{ name: 'a', as: 'alice', agents: [], of: ['a'] }] }),
    {},
    ruled(rules.slice(1)),
  )
  t.match(closed, [/expected the agents nothing; got refused: 403 not-allowed/])
  t.end()
})

void test('a test may say that the body answers an interrupt', (t) => {
  const chat = { name: 'chat', routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'], interrupts: 'refuse' }
  const run = { name: 'a', as: 'alice', route: 'agent/run', thread: 't' }
  const expect = { outcome: 'refused', reason: 'interrupt-answer-not-allowed', rule: 'chat' }
  const tests = [
    { ...run, expect: 'permitted' },
    { ...run, answers: true, expect },
    { ...run, answers: true, expect: 'permitted' },
  ]
  t.match(outcome(text({ tests, policy: 'policy.yaml' }), {}, ruled([chat])), [
    [],
    [],
    [/got refused: 403 not-allowed \(interrupt-answer-not-allowed\) by "chat"/],
  ])
  t.match(outcome(text({ tests: [{ ...INFO, answers: true }] })), [/tests\.0\.answers: is only for agent\/run, agent\/connect/])
  t.match(outcome(text({ tests: [{ ...run, answers: false, expect: 'permitted' }] })), [/tests\.0\.answers: must be true/])
  t.end()
})

void test('a test may have messages, and say which are forwarded', (t) => {
  const messages = { roles: ['user'], most: 1 }
  const chat = { name: 'chat', routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'], messages }
  const strict = { ...chat, routes: ['agent/suggest'], name: 'strict', messages: { ...messages, others: 'refuse' } }
  const [system, user] = ['system', 'user'].map((role) => ({ id: role, role, content: 'x' }))
  const run = { name: 'a', as: 'alice', route: 'agent/run', thread: 't', expect: 'permitted' }
  const tests = [
    { ...run, messages: [system, user], forwards: ['user'] },
    { ...run, messages: [system, user], forwards: ['system', 'user'] },
    { ...run, messages: [system], forwards: [] },
    { ...run, messages: [user, user] },
    { ...run, route: 'agent/suggest', messages: [system, user] },
    {
      ...run,
      route: 'agent/suggest',
      messages: [system],
      expect: { outcome: 'refused', reason: 'message-role-not-allowed', rule: 'strict' },
    },
  ]
  t.match(outcome(text({ tests, policy: 'policy.yaml' }), {}, ruled([chat, strict])), [
    [],
    [/expected messages of system, user; forwards user/],
    [],
    [/got refused: 413 body-too-large \(messages-too-many\) by "chat"/],
    [/got refused: 403 not-allowed \(message-role-not-allowed\) by "strict"/],
    [],
  ])
  const onInfo = outcome(text({ tests: [{ ...INFO, messages: [user] }] }))
  t.match(onInfo, [/tests\.0\.messages: is only for agent\/run, agent\/connect/])
  t.match(outcome(text({ tests: [{ ...run, forwards: [] }] })), [/has forwards without messages/])
  t.end()
})
