/** The file decides, and nothing else does: changing one line changes exactly the answer that it speaks of. */
import { test } from 'tap'
import { decide } from '../../src/core/decide/decide.ts'
import { CALLERS, told, type Thread } from '../../testing/support/callers.ts'
import { compiled, descriptor, edited, ruled, SHIPPED } from '../../testing/support/policies.ts'

const shipped = compiled(SHIPPED)
const CHANGES: readonly (readonly [
  from: string,
  to: string,
  who: keyof typeof CALLERS,
  route: string,
  thread: Thread,
  before: string,
  after: string,
])[] = [
  [
    'routes: [cpk-debug-events]\n    allow: []',
    'routes: [cpk-debug-events]\n    allow: [operator]',
    'olga',
    'GET cpk-debug-events',
    'own',
    'not-allowed',
    'yes',
  ],
  ['allow: [operator]', 'allow: []', 'olga', 'POST threads/clear', 'own', 'yes', 'not-allowed'],
  [
    'routes: [info, transcribe]\n    allow: [signed-in]',
    'routes: [info, transcribe]\n    allow: [signed-in, anonymous]',
    'anonymous',
    'GET info',
    'own',
    'not-allowed',
    'yes',
  ],
  [
    'agent/suggest]\n    allow: [signed-in]\n    threads: [own, shared, unknown]',
    'agent/suggest]\n    allow: [signed-in]\n    threads: [own, shared]',
    'alice',
    'POST agent/a/run',
    'unknown',
    'claims',
    'not-owner',
  ],
  ['refusal: 404', 'refusal: 403', 'alice', 'GET threads/t-1/events', 'foreign', 'not-found', 'not-owner'],
  ['only: user-scoped', 'refusal: 404', 'alice', 'POST threads/subscribe', 'own', 'not-allowed', 'yes'],
  ['  - role: operator\n', '', 'olga', 'POST threads/clear', 'own', 'yes', 'not-allowed'],
  ['[info, transcribe]', '[info]', 'alice', 'POST transcribe', 'own', 'yes', 'not-allowed'],
  ['sharing: true', 'sharing: false', 'alice', 'GET threads/t-1/messages', 'read', 'yes', 'not-owner'],
  ['sharing: true', 'sharing: false', 'alice', 'POST agent/a/run', 'write', 'claims', 'not-owner'],
  [
    'allow: []\n    threads: [own]',
    'allow: [signed-in]\n    threads: [own]',
    'alice',
    'POST threadwarden/threads/t-1/grants',
    'own',
    'not-allowed',
    'yes',
  ],
]

for (const [from, to, who, route, thread, before, after] of CHANGES) {
  void test(`${JSON.stringify(from)} → ${JSON.stringify(to)}: ${who} hears ${after} instead of ${before}`, (t) => {
    t.equal(told(shipped, CALLERS[who], route, thread), before)
    t.equal(told(compiled(edited(from, to)), CALLERS[who], route, thread), after)
    t.end()
  })
}

void test('what no rule names is refused', (t) => {
  const policy = compiled(ruled([{ routes: ['info'], allow: ['signed-in'] }]))
  t.equal(told(policy, CALLERS.alice, 'GET info'), 'yes')
  for (const route of ['GET threads', 'POST agent/a/run', 'POST threads/clear', 'GET threads/t-1/messages', 'GET memories']) {
    t.equal(told(policy, CALLERS.alice, route), 'not-allowed', route)
  }
  t.end()
})

void test('rules add up: a second one gives operators what the first gives nobody', (t) => {
  const policy = compiled(
    ruled(
      [
        { routes: ['threads/messages'], allow: ['signed-in'], threads: ['own'] },
        { routes: ['threads/messages'], allow: ['operator'], threads: ['foreign'] },
      ],
      { operators: [{ role: 'operator' }] },
    ),
  )
  t.equal(told(policy, CALLERS.olga, 'GET threads/t-1/messages', 'foreign'), 'yes')
  t.equal(told(policy, CALLERS.alice, 'GET threads/t-1/messages', 'foreign'), 'not-owner')
  t.equal(told(policy, CALLERS.olga, 'GET threads/t-1/messages', 'unknown'), 'not-owner')
  t.end()
})

void test('a rule that allows nobody is as good as none: the reason names no operators, who may not do it either', (t) => {
  const facts = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' } as const
  for (const rules of [[{ routes: ['memories/list'], allow: [] }], [{ routes: ['info'], allow: ['signed-in'] }]]) {
    const policy = compiled(ruled(rules))
    for (const caller of Object.values(CALLERS)) {
      const decision = decide(descriptor('GET', 'memories'), caller, policy.rules, facts)
      t.match(decision, { outcome: 'refused', reason: 'no-rule-allows', code: 'not-allowed' })
    }
  }
  t.end()
})
