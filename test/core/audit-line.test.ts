/** The line of a decision: exactly these fields, nothing else of a person, and enough to make the decision again. */
import { test } from 'tap'
import { auditLine, makeAuditText, type AuditLine } from '../../src/audit/line.ts'
import { readAuditLine, type Replay } from '../../src/audit/replay.ts'
import type { RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type Facts, type OwnerRecord } from '../../src/core/decide/decide.ts'
import type { Json } from '../../src/core/json/read.ts'
import { ANONYMOUS, EVERYBODY, type Principal } from '../../src/core/decide/principal.ts'
import { refuse, type Refusal } from '../../src/core/reasons.ts'
import { ALL_ROUTES } from '../../src/core/route/all-routes.ts'
import type { Route } from '../../src/core/route/routes.ts'
import { compiled, ruled } from '../../testing/support/policies.ts'
import { user } from '../../testing/support/callers.ts'
import { audited, READING, type FlatDecision } from '../../testing/support/audited.ts'

const FACTS: Facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' }
const ALICE = user('alice', {
  name: 'Alice Secret',
  roles: ['writer'],
  permissions: ['chat'],
  claims: { email: 'secret@example.com', tenant: 'north', jti: 'secret' },
})
const RUN = {
  outcome: 'classified',
  route: ALL_ROUTES.find(({ id }) => id === 'agent/run')!,
  ids: { agentId: 'default', threadId: 't1' },
  query: [['secret', 'secret']],
} as const

const decision = (more: Partial<FlatDecision> = {}) =>
  audited({
    ...READING,
    time: Date.UTC(2026, 0, 31, 12),
    id: 'r1',
    client: '192.0.2.1',
    principal: ALICE,
    claimPointers: ['/tenant'],
    descriptor: RUN,
    facts: { ...FACTS, record: { owner: 'corp:secret', deleted: false } },
    outcome: refuse('thread-foreign', { code: 'not-found' }),
    rule: { name: 'chat', file: '/etc/secret/policy.yaml', line: 7 },
    policy: 'abc',
    generation: 2,
    latency: 1.23456,
    ...more,
  })

void test('a line has these fields and no other', (t) => {
  const line = auditLine(decision())
  t.strictSame(line, {
    audit: 1,
    time: '2026-01-31T12:00:00.000Z',
    requestId: 'r1',
    client: '192.0.2.1',
    principal: { id: 'corp:alice', roles: ['writer'], permissions: ['chat'], claims: { '/tenant': 'north' } },
    credential: 'header',
    route: 'agent/run',
    method: 'POST',
    agent: 'default',
    thread: 't1',
    interrupts: null,
    transport: 'multi-route',
    scope: '',
    facts: { record: 'foreign', userScoped: false, unknownThread: 'claim', enforcement: 'enforce', upstreamHistory: null },
    decision: 'refused',
    reason: 'thread-foreign',
    code: 'not-found',
    status: 404,
    rule: { name: 'chat', line: 7, file: 'policy.yaml' },
    observed: null,
    hidden: 0,
    policy: 'abc',
    generation: 2,
    latencyMs: 1.235,
  })
  t.match(JSON.stringify(line), /^\{"audit":1,/, 'with what tells it from a line of the log in front')
  t.notMatch(JSON.stringify(line), /secret/i)
  t.end()
})

const lineIn = (text: string): AuditLine => JSON.parse(text) as AuditLine

void test('what is written once for many lines is that of each of them', (t) => {
  const textOf = makeAuditText()
  const bob = user('bob', { claims: { tenant: 'south', email: 'bob@example.com' } })
  const rules = [
    { name: 'chat', file: 'a.yaml', line: 7 },
    { name: 'read', file: 'b.yaml' },
  ]
  const decisions = [ALICE, bob, ANONYMOUS, EVERYBODY, undefined].flatMap((principal) =>
    [['/tenant'], ['/email'], []].flatMap((claimPointers) =>
      [...rules, undefined].map((rule, at) => decision({ principal, claimPointers, rule, time: Date.UTC(2026, 0, 31, at) })),
    ),
  )
  for (const one of [...decisions, ...decisions]) t.equal(textOf(one), `${JSON.stringify(auditLine(one))}\n`)
  const { principal, rule, time } = lineIn(textOf(decision({ principal: bob, claimPointers: ['/email'], rule: rules[1] })))
  t.match(
    { principal, rule, time },
    { principal: { claims: { '/email': 'bob@example.com' } }, rule: { name: 'read', line: null } },
  )
  t.equal(time, '2026-01-31T12:00:00.000Z')
  t.end()
})

void test('a line is one line of JSON, whatever the ids of a request are', (t) => {
  for (const odd of ['"', '\\', '\n{"audit":1}', '\u2028', '\ud800', '","thread":"t2', '\u0000', 'é']) {
    const ids = { agentId: odd, threadId: odd }
    const answers = [{ id: odd, answer: 'approved' }] as const
    const strange = decision({
      id: odd,
      scope: odd,
      descriptor: { ...RUN, ids, answers },
      client: odd,
      principal: user('alice', { roles: [odd], permissions: [odd], claims: { tenant: odd } }),
      rule: { name: odd, file: odd, line: 1 },
    })
    const text = makeAuditText()(strange)
    t.equal(text, `${JSON.stringify(auditLine(strange))}\n`)
    t.match(lineIn(text), { requestId: odd, agent: odd, thread: odd, interrupts: answers, client: null, rule: { name: odd } })
  }
  t.end()
})

void test('what is not known is null', (t) => {
  const line = auditLine(
    decision({
      principal: undefined,
      descriptor: null,
      client: undefined,
      facts: FACTS,
      outcome: refuse('http-unreadable'),
      rule: undefined,
      latency: null,
    }),
  )
  t.match(line, {
    principal: null,
    route: 'none',
    method: null,
    agent: null,
    thread: null,
    client: null,
    rule: null,
    latencyMs: null,
  })
  t.match(line, {
    decision: 'refused',
    reason: 'http-unreadable',
    code: 'header-malformed',
    status: 400,
    facts: { record: null },
  })
  t.match(auditLine(decision({ outcome: 'permitted' })), { decision: 'permitted', reason: 'permitted', code: null, status: null })
  t.end()
})

void test('an address is one, or null: a proxy may hand on what its callers write', (t) => {
  const client = (text: string) => auditLine(decision({ client: text })).client
  for (const address of ['127.0.0.1', '::1', 'fe80::1%eth0', '::ffff:192.0.2.1', '192.0.2.1:99', '[2001:db8::1]:99']) {
    t.equal(client(address), address)
  }
  for (const text of ['eyJhbGciOiJub25lIn0', 'Bearer a', '', 'a'.repeat(65), '1.2.3.4\n']) t.equal(client(text), null, text)
  t.end()
})

const POLICY = compiled(
  ruled(
    [
      {
        routes: ['agent/run', 'agent/connect'],
        allow: ['signed-in'],
        threads: ['own', 'unknown'],
        interrupts: 'refuse',
        claims: [{ at: '/tenant', equals: 'north' }],
      },
      { name: 'foreign', routes: ['threads/messages'], allow: ['operator'], threads: ['foreign'], issuers: ['corp'] },
      { routes: ['threads/messages'], allow: ['signed-in'], threads: ['own', 'shared'] },
      { routes: ['threads/update'], allow: ['signed-in'], threads: ['own', 'shared'] },
      { routes: ['annotate'], allow: ['signed-in'], threads: ['own', 'shared'] },
      { name: 'no-guests', routes: ['annotate'], deny: ['operator'], threads: ['shared'] },
      { routes: ['threads/grants'], allow: ['signed-in'], threads: ['own'] },
      { routes: ['agent/run'], allow: ['anonymous'], threads: ['unknown'] },
      { name: 'no-robots', routes: ['agent/run'], deny: ['signed-in'], permissions: { any: ['robot'] }, threads: ['own'] },
      { routes: ['threads/list'], allow: ['signed-in'] },
    ],
    { operators: [{ role: 'operator' }] },
  ),
)

const PRINCIPALS: readonly Principal[] = [
  ANONYMOUS,
  EVERYBODY,
  ALICE,
  user('south', { claims: { tenant: 'south' } }),
  user('odd', { claims: { tenant: ['north'] } }),
  user('robot', { permissions: ['robot'], claims: { tenant: 'north' } }),
  user('a:b', { claims: { tenant: 'north' }, roles: ['operator'] }),
]

const recordsOf = ({ id }: Principal): readonly (OwnerRecord | undefined)[] => [
  undefined,
  null,
  ...[id, 'corp:other'].flatMap((owner) => [
    ...[true, false].map((deleted) => ({ owner, deleted })),
    { owner, deleted: false, seen: true as const },
    ...(['read', 'write'] as const).map((granted) => ({ owner, deleted: false, granted })),
    ...[true, false].map((deleted) => ({ owner, deleted, provisional: true as const })),
    ...(['read', 'write'] as const).map((granted) => ({ owner, deleted: false, provisional: true as const, granted })),
  ]),
  { owner: '', deleted: false },
  { owner: '', deleted: false, seen: true },
]

/** What a body asks for that stays with the owner is not in the line. */
const DESCRIPTORS: readonly RouteDescriptor[] = ALL_ROUTES.flatMap((route) => {
  const about = { outcome: 'classified', route, ids: { agentId: 'default', threadId: 't1' }, query: [] } as const
  const answers = [{ id: 'i-1', answer: 'approved' }] as const
  if (route.id === 'agent/run' || route.id === 'agent/connect') return [about, { ...about, answers }]
  return route.id === 'threads/update' && route.method === 'PATCH' ? [about, { ...about, ownerOnly: true as const }] : [about]
})

const shown = (made: ReturnType<typeof decide>): object => {
  if (made.outcome === 'permitted') {
    const { rule, begins, claim, answerEmpty, observed } = made
    return { rule: rule.name, begins, claim, answerEmpty, observed }
  }
  return made.outcome === 'needs' ? { needs: made.fact } : { reason: made.reason, code: made.code, rule: made.rule?.name }
}

void test('every decision can be made again from its line', (t) => {
  const outcomes = new Set<string>()
  const textOf = makeAuditText()
  for (const [descriptor, sharing] of DESCRIPTORS.flatMap((one) => [[one, true] as const, [one, false] as const])) {
    const rules = { ...POLICY.rules, sharing }
    for (const principal of PRINCIPALS) {
      for (const record of recordsOf(principal)) {
        for (const threadAccess of [
          FACTS,
          { ...FACTS, unknownThread: 'verify', upstreamHistory: 'some' },
          { ...FACTS, enforcement: 'observe', userScoped: true },
        ] as const) {
          const facts: Facts = { ...threadAccess, ...(record === undefined ? {} : { record }) }
          const made = decide(descriptor, principal, rules, facts)
          const outcome: Refusal | 'permitted' = made.outcome === 'refused' ? made : 'permitted'
          const decided = decision({
            descriptor,
            principal,
            facts,
            outcome,
            rule: made.outcome === 'needs' ? undefined : made.rule,
            claimPointers: POLICY.claimPointers,
          })
          const line = auditLine(decided)
          const text = textOf(decided)
          if (text !== `${JSON.stringify(line)}\n`) t.fail(text)
          const replay = readAuditLine(JSON.parse(text) as Json) as Replay
          const again = decide(replay.descriptor!, replay.principal!, rules, replay.facts)
          outcomes.add(made.outcome === 'refused' ? made.reason : made.outcome)
          if (JSON.stringify(shown(again)) === JSON.stringify(shown(made))) continue
          t.fail(JSON.stringify({ line, made: shown(made), again: shown(again) }))
        }
      }
    }
  }
  for (const one of [
    'permitted',
    'needs',
    'rule-failed',
    'denied-by-rule',
    'thread-foreign',
    'thread-has-history',
    'thread-unconfirmed',
    'no-rule-allows',
  ]) {
    t.ok(outcomes.has(one), one)
  }
  t.end()
})

void test('of a grant a line says for what it was, where it could have counted', (t) => {
  const word = (about: Partial<RouteDescriptor>, record: OwnerRecord, principal: Principal = ALICE) =>
    auditLine(decision({ descriptor: { ...RUN, ...about }, principal, facts: { ...FACTS, record } })).facts.record
  const granted = { owner: 'corp:bob', deleted: false, granted: 'write' } as const
  t.equal(word({}, granted), 'shared-write')
  t.equal(word({}, { ...granted, granted: 'read' }), 'shared-read', 'also where it was not enough')
  t.equal(word({}, { owner: 'corp:bob', deleted: false }), 'foreign')
  t.equal(word({}, { ...granted, owner: ALICE.id }), 'own')
  t.equal(word({}, { ...granted, deleted: true }), 'foreign-deleted')
  for (const route of ALL_ROUTES.filter(({ right }) => right === 'owner')) t.equal(word({ route }, granted), 'foreign', route.id)
  const update = ALL_ROUTES.find(({ id }) => id === 'threads/update')!
  t.equal(word({ route: update }, granted), 'shared-write')
  t.equal(word({ route: update, ownerOnly: true }, granted), 'foreign')
  t.end()
})

void test('that no run is confirmed a line says where it counts', (t) => {
  const read = ALL_ROUTES.find(({ id }) => id === 'threads/messages')!
  const word = (route: Route, record: NonNullable<OwnerRecord>) =>
    auditLine(decision({ descriptor: { ...RUN, route }, principal: ALICE, facts: { ...FACTS, record } })).facts.record
  const own = { owner: ALICE.id, deleted: false, provisional: true } as const
  const bobs = { ...own, owner: 'corp:bob', granted: 'write' } as const
  t.same([word(read, own), word(RUN.route, own)], ['own-provisional', 'own'])
  t.same([word(read, bobs), word(RUN.route, bobs)], ['foreign-provisional', 'shared-write'])
  t.same([word(read, { ...own, deleted: true }), word(read, { ...bobs, deleted: true })], ['own-deleted', 'foreign-deleted'])
  t.end()
})

/** A line as a file has it. */
const asWritten = (line: unknown): Json => JSON.parse(JSON.stringify(line)) as Json

void test('what was decided is read with it', (t) => {
  const read = (more: Partial<FlatDecision>): Replay => readAuditLine(asWritten(auditLine(decision(more)))) as Replay
  t.strictSame(read({}).decided, { outcome: 'refused', reason: 'thread-foreign', rule: 'chat' })
  t.strictSame(read({ outcome: 'permitted', rule: undefined }).decided, { outcome: 'permitted', reason: 'permitted' })
  t.strictSame(read({ descriptor: null, principal: undefined }), {
    scope: '',
    descriptor: null,
    principal: null,
    facts: FACTS,
    decided: { outcome: 'refused', reason: 'thread-foreign', rule: 'chat' },
    policy: 'abc',
  })
  t.end()
})

void test('what is no line is refused with what is wrong with it', (t) => {
  const good = asWritten(auditLine(decision())) as Record<string, Json>
  const facts = good['facts'] as Record<string, Json>
  const principal = good['principal'] as Record<string, Json>
  const bad: readonly [Json, RegExp][] = [
    [null, /no line of the audit/],
    [[good], /no line of the audit/],
    [{ ...good, audit: 2 }, /no line of the audit/],
    [{ level: 'info', msg: 'request' }, /no line of the audit/],
    [{ ...good, route: 'toString' }, /route or method/],
    [{ ...good, method: 'GET' }, /route or method/],
    [{ ...good, agent: 'a/b' }, /agent id/],
    [{ ...good, thread: '' }, /thread id/],
    [{ ...good, principal: { ...principal, id: 'alice' } }, /who asked/],
    [{ ...good, principal: { ...principal, roles: 'operator' } }, /who asked/],
    [{ ...good, principal: { ...principal, claims: [] } }, /who asked/],
    [{ ...good, principal: 'corp:alice' }, /who asked/],
    [{ ...good, principal: { ...principal, claims: { tenant: 'north' } } }, /JSON pointer/],
    [{ ...good, facts: { ...facts, record: 'toString' } }, /lacks the facts/],
    [{ ...good, facts: { ...facts, record: 1 } }, /lacks the facts/],
    [{ ...good, facts: { ...facts, unknownThread: 'maybe' } }, /lacks the facts/],
    [{ ...good, facts: { ...facts, enforcement: 'off' } }, /lacks the facts/],
    [{ ...good, facts: { ...facts, userScoped: 1 } }, /lacks the facts/],
    [{ ...good, facts: { ...facts, upstreamHistory: 1 } }, /lacks the facts/],
    [{ ...good, facts: null }, /lacks the facts/],
    [{ ...good, decision: 'yes' }, /lacks the decision/],
    [{ ...good, policy: null }, /lacks the decision/],
  ]
  for (const [line, says] of bad) t.match(readAuditLine(line), { fault: says }, JSON.stringify(line))
  t.end()
})
