/** The policy file itself: one schema, every fault at once with its line, and no word that means nothing. */
import { test } from 'tap'
import { loadPolicy } from '../../src/policy/compile.ts'
import { Sources } from '../../src/document/sources.ts'
import { faultsIn, load, ruled } from '../../testing/support/policies.ts'

const RULE = { routes: ['info'], allow: ['signed-in'] }

void test('every fault is reported at once, each at its line', (t) => {
  const text = `version: 2
operator: []
rules:
  - routes: [info]
    allow: [everybody]
  - routes: []
    allow: [signed-in]
    refusal: 401
    only: weekdays
    thread: [own]
state: keep
`
  t.same(
    faultsIn(text)
      .map(({ path, line }) => `${path}:${line}`)
      .sort(),
    [
      'operator:2',
      'rules.0.allow.0:5',
      'rules.1.only:9',
      'rules.1.refusal:8',
      'rules.1.routes:6',
      'rules.1.thread:10',
      'state:11',
      'version:1',
    ],
  )
  t.end()
})

void test('unknown keys are refused with a suggestion', (t) => {
  t.match(faultsIn(ruled([RULE], { operator: [] })), [{ path: 'operator', hint: 'did you mean "operators"?' }])
  t.match(faultsIn(ruled([{ ...RULE, route: ['info'] }])), [{ path: 'rules.0.route', hint: 'did you mean "routes"?' }])
  t.match(faultsIn(ruled([RULE], { operators: [{ roles: 'x' }] })).slice(0, 1), [
    { path: 'operators.0.roles', hint: 'did you mean "role"?' },
  ])
  t.match(faultsIn(ruled([RULE], { forwardedProps: [{ name: 'a', unsave: true }] })), [{ hint: 'did you mean "unsafe"?' }])
  t.end()
})

void test('the words of a rule are the known ones', (t) => {
  t.match(faultsIn(ruled([{ ...RULE, allow: ['owner'] }])), [{ path: 'rules.0.allow.0', message: 'is not a kind of caller' }])
  t.match(faultsIn(ruled([{ routes: ['annotate'], allow: ['signed-in'], threads: ['all'] }])), [
    { path: 'rules.0.threads.0', message: 'is not a relation to a thread', hint: 'write own, shared, unknown or foreign' },
  ])
  t.match(faultsIn(ruled([{ ...RULE, refusal: '404' }])), [{ path: 'rules.0.refusal', message: 'is not a refusal' }])
  t.match(faultsIn(ruled([{ routes: ['info'] }])), [{ path: 'rules.0', message: 'must say allow or deny' }])
  t.end()
})

void test('a policy without a version or a rule is none', (t) => {
  t.match(faultsIn('rules: []\n'), [{ path: 'version' }, { path: 'rules' }])
  t.match(faultsIn(''), [{ path: '' }])
  t.end()
})

void test('a file that is not there, or cannot be read as a document, is a fault of its own', (t) => {
  t.match(loadPolicy(new Sources(), '/nowhere/policy.yaml', { issuers: ['corp'] }), {
    ok: false,
    faults: [{ file: '/nowhere/policy.yaml' }],
  })
  for (const text of ['rules: [', '{', 'a: 1\na: 2', '\t- x']) {
    const outcome = load(text)
    t.equal(outcome.ok, false, text)
    t.ok(!outcome.ok && outcome.faults.length > 0, text)
  }
  t.end()
})
