/** What a comparison tells of two policies: what opens, what closes, what passes otherwise; and that it was cut. */
import { test } from 'tap'
import type { Policy } from '../../src/policy/compile.ts'
import { BOUNDS, compare, type Bounds } from '../../src/tools/simulate/diff.ts'
import type { Changes } from '../../testing/support/configuration.ts'
import { accepted } from '../../testing/support/configuration.ts'
import { load, ruled } from '../../testing/support/policies.ts'

interface Made {
  readonly config?: Changes
  readonly bounds?: Bounds
}

/** Compares policies of these rules. */
function differences(
  before: readonly object[],
  after: readonly object[],
  { config = {}, bounds = BOUNDS }: Made = {},
  more: readonly [object?, object?] = [],
) {
  const { config: loaded } = accepted(config)
  const { mode, issuers } = loaded.authentication
  const policy = (rules: readonly object[], at: 0 | 1): Policy => {
    const outcome = load(ruled(rules, more[at]), Object.keys(issuers), { mode, forwardHeaders: loaded.forwardHeaders })
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.faults))
    return outcome.value.policy
  }
  return compare(policy(before, 0), policy(after, 1), loaded, bounds)
}

const SIGNED_IN = { routes: ['info'], allow: ['signed-in'] }

void test('other names, places and orders of rules are no difference', (t) => {
  const chat = { routes: ['agent/run'], allow: ['signed-in'], threads: ['own'] }
  t.same(
    differences(
      [
        { name: 'a', ...SIGNED_IN },
        { name: 'b', ...chat },
      ],
      [
        { name: 'c', ...chat },
        { name: 'd', ...SIGNED_IN },
      ],
    ).differences,
    [],
  )
  t.end()
})

void test('what opens, what closes and what looks otherwise', (t) => {
  const state = { routes: ['threads/state'], allow: ['signed-in'], threads: ['own'] }
  const { differences: told } = differences(
    [SIGNED_IN, state],
    [
      { ...state, refusal: 404 },
      { routes: ['transcribe'], allow: ['signed-in'] },
    ],
  )
  t.match(told, [
    { routes: ['POST transcribe'], before: { outcome: 'refused', code: 'not-allowed' }, after: { outcome: 'permitted' } },
    { routes: ['GET info'], before: { outcome: 'permitted' }, after: { outcome: 'refused' } },
    {
      routes: ['GET threads/state'],
      threads: ['unknown', 'own, deleted'],
      before: { code: 'not-owner' },
      after: { code: 'not-found' },
    },
    { routes: ['GET threads/state'], threads: ['foreign', 'foreign, deleted'] },
  ])
  t.equal(told.length, 4)
  t.end()
})

void test('shared threads are told apart by what was granted, where grants count for one of the policies', (t) => {
  const read = (threads: readonly string[]) => ({ routes: ['threads/messages', 'annotate'], allow: ['signed-in'], threads })
  const [own, shared] = [read(['own']), read(['own', 'shared'])]
  const on = { sharing: true }
  t.same(differences([own], [shared]).differences, [], 'without the switch nothing changes')
  t.same(differences([own], [own], {}, [{}, on]).differences, [], 'nor with the switch alone')
  const opened = differences([own], [shared], {}, [on, on]).differences
  t.match(opened, [
    { routes: ['GET threads/messages'], threads: ['shared for reading', 'shared for writing'], after: { outcome: 'permitted' } },
    { routes: ['POST annotate'], threads: ['shared for writing'], after: { outcome: 'permitted' } },
  ])
  t.equal(opened.length, 2)
  const switched = differences([shared], [shared], {}, [on, {}]).differences
  t.match(switched, [
    {
      threads: ['shared for reading', 'shared for writing'],
      before: { outcome: 'permitted' },
      after: { reason: 'thread-foreign' },
    },
    { threads: ['shared for writing'], before: { outcome: 'permitted' }, after: { outcome: 'refused' } },
  ])
  const grants = { routes: ['threads/grants'], allow: ['signed-in'], threads: ['own'] }
  const owners = differences([own], [own, grants], {}, [on, on]).differences.filter(({ after }) => after.outcome === 'permitted')
  t.match(owners, [{ routes: ['GET', 'POST', 'DELETE'].map((method) => `${method} threads/grants`), threads: ['own'] }])
  t.equal(owners.length, 1, 'on what stays with the owner a grant makes no difference')
  t.end()
})

void test('what passes and which limits apply', (t) => {
  const run = { name: 'run', routes: ['agent/run'], allow: ['signed-in'], threads: ['own'] }
  const passing = {
    ...run,
    state: 'drop',
    tools: ['show'],
    interrupts: 'refuse',
    headers: ['x-locale'],
    forwardedProps: [{ name: 'a2ui' }],
    limits: { runs: '10/m', streams: 2, body: '2KiB' },
  }
  const { differences: told } = differences([run], [passing], { config: { forwardHeaders: ['X-Locale', 'x-tenant'] } })
  t.equal(told.length, 1)
  t.match(told[0], {
    routes: ['POST agent/run'],
    threads: ['own'],
    before: {
      passes: {
        forwardedProps: 'none',
        state: 'pass',
        tools: 'all',
        interrupts: 'pass',
        headers: 'x-locale, x-tenant',
        'limit of runs': 'off',
        'limit of streams': 'off',
        'limit of body': '64MiB',
      },
    },
    after: {
      passes: {
        forwardedProps: 'a2ui',
        state: 'drop',
        tools: 'show',
        interrupts: 'refuse',
        headers: 'x-locale',
        'limit of runs': '10/m',
        'limit of streams': '2',
        'limit of body': '2KiB',
      },
    },
  })
  const info = { name: 'info', ...SIGNED_IN }
  t.same(
    differences([info], [{ ...info, state: 'drop', tools: 'drop' }]).differences,
    [],
    'on a route without a body nothing of it passes anyway',
  )
  t.match(differences([info], [info], {}, [{}, { state: 'drop' }]).differences, [])
  t.match(
    differences([run], [run], {}, [{}, { state: 'drop' }]).differences,
    [{ after: { passes: { state: 'drop' } } }],
    'also of the whole file',
  )
  t.end()
})

void test('what callers may send as messages', (t) => {
  const run = { name: 'run', routes: ['agent/run'], allow: ['signed-in'], threads: ['own'] }
  const rules = {
    roles: ['user', 'tool'],
    others: 'refuse',
    most: 9,
    size: '2KiB',
    media: [],
    schemes: ['https'],
    history: 'verify',
  }
  const { differences: told } = differences([run], [{ ...run, messages: rules }])
  t.match(told, [
    {
      routes: ['POST agent/run'],
      before: { passes: { messages: 'user, assistant, tool, reasoning, activity; drops others' } },
      after: {
        passes: {
          messages: 'user, tool; refuses others; at most 9; each at most 2KiB; media none; URLs https; history verified',
        },
      },
    },
  ])
  t.equal(told.length, 1, 'nothing else changes')
  for (const one of [
    { most: 9 },
    { size: '2KiB' },
    { media: ['image'] },
    { schemes: ['data'] },
    { history: 'verify' },
    { others: 'refuse' },
  ]) {
    t.equal(differences([run], [run], {}, [{}, { messages: one }]).differences.length, 1, JSON.stringify(one))
  }
  t.end()
})

void test('which agents /info tells of', (t) => {
  const run = (more: object) => ({ routes: ['agent/run'], allow: ['signed-in'], threads: ['own'], ...more })
  const { differences: told } = differences([SIGNED_IN, run({})], [SIGNED_IN, run({ agents: ['default'] })])
  t.match(
    told.find(({ routes }) => routes.includes('GET info')),
    { before: { passes: { agents: 'all' } }, after: { passes: { agents: 'default' } } },
  )
  t.end()
})

void test('callers are those of the mode', (t) => {
  const open = { routes: ['info'], allow: ['anonymous'] }
  const said = (mode: string) =>
    differences([SIGNED_IN], [SIGNED_IN, open], { config: { 'authentication.mode': mode } }).differences
  t.same(said('required'), [], 'nobody comes without a credential')
  t.match(said('optional'), [
    { callers: ['anonymous'], before: { reason: 'anonymous-not-allowed' }, after: { outcome: 'permitted' } },
  ])
  const off = differences([SIGNED_IN], [{ routes: ['transcribe'], allow: ['signed-in'] }], {
    config: { 'authentication.mode': 'off' },
  })
  t.same(
    off.differences.map(({ callers }) => callers),
    [['everybody'], ['everybody']],
  )
  t.end()
})

void test('facts are those of the configuration, but that all is enforced', (t) => {
  const subscribe = { routes: ['threads/subscribe'], allow: ['signed-in'], only: 'user-scoped' }
  t.same(differences([SIGNED_IN], [SIGNED_IN, subscribe]).differences, [])
  t.equal(differences([SIGNED_IN], [SIGNED_IN, subscribe], { config: { 'upstream.userScoped': true } }).differences.length, 1)
  const read = { routes: ['threads/messages'], allow: ['operator'], threads: ['own'] }
  const more = { operators: [{ role: 'operator' }] }
  const observed = differences([read], [{ ...read, threads: ['own', 'foreign'] }], { config: { enforcement: 'observe' } }, [
    more,
    more,
  ])
  t.match(observed.differences, [{ threads: ['foreign'], before: { outcome: 'refused' }, after: { outcome: 'permitted' } }])
  t.end()
})

void test('what is too much is cut, and said to be', (t) => {
  const roles = Array.from({ length: 14 }, (_one, at) => `role-${at}`)
  const rules = roles.map((role) => ({ routes: ['info'], allow: ['signed-in'], roles: [role] }))
  const { cut, decisions, differences: told } = differences(rules, rules.slice(1), { bounds: { decisions: 20_000, agents: 200 } })
  t.same(cut, ['callers'])
  t.ok(decisions <= 20_000, `${decisions}`)
  t.ok(
    told.some(({ callers }) => callers.includes('a user of corp, role role-0')),
    'what is likely is looked at all the same',
  )
  const agents = [{ routes: ['agent/run'], allow: ['signed-in'], threads: ['own'], agents: ['a', 'b', 'c'] }]
  t.same(differences(agents, agents, { bounds: { ...BOUNDS, agents: 3 } }).cut, ['agents'])
  t.same(differences(agents, agents).cut, [])
  t.end()
})

void test('where callers are those of each route, /info is told for those of the runs', (t) => {
  const closed = Array.from({ length: 18 }, (_one, at) => ({
    routes: ['transcribe'],
    allow: ['signed-in'],
    roles: [`role-${at}`],
  }))
  const run = (role: string) => ({
    routes: ['agent/run'],
    allow: ['signed-in'],
    threads: ['own'],
    agents: ['finance'],
    roles: [role],
  })
  const { cut, differences: told } = differences([SIGNED_IN, run('a'), ...closed], [SIGNED_IN, run('b'), ...closed])
  t.same(cut, ['callers'])
  const info = told.filter(({ routes }) => routes.includes('GET info'))
  t.same(
    info
      .map(({ callers }) => callers)
      .flat()
      .sort(),
    ['a user of corp, role a', 'a user of corp, role b'],
  )
  t.end()
})

void test('a rule that only fails for somebody is a difference for them', (t) => {
  const { differences: found } = differences([{ ...SIGNED_IN, roles: ['lead'] }, SIGNED_IN], [SIGNED_IN])
  t.match(
    found.map(({ callers, before, after }) => [callers.join(), before.outcome, after.outcome]),
    [[/\/role \{\}$/, 'refused', 'permitted']],
  )
  t.end()
})
