/**
 * What `validate` warns of in a policy: rules that can never match, or never count, routes nobody may use, operators nobody
 * can be. Each case has its opposite beside it: a rule that differs by a little, and draws no warning.
 */
import { test, type Test } from 'tap'
import { ROUTE_IDS } from '../../src/core/route/all-routes.ts'
import { faultLine } from '../../src/document/fault.ts'
import type { PolicySurroundings } from '../../src/policy/faults.ts'
import { load, ruled, SHIPPED } from '../../testing/support/policies.ts'

type Mode = NonNullable<PolicySurroundings['mode']>
type Part = Readonly<Record<string, unknown>>

const OPERATORS = [{ issuer: 'corp', role: 'operator' }]

/** The routes that no rule here names, closed on purpose. */
function closed(rules: readonly Part[]): Part {
  const named = rules.flatMap(({ routes }) => routes as readonly string[])
  return { name: 'closed', routes: ROUTE_IDS.filter((id) => !named.includes(id)), allow: [] }
}

/** The warnings of these rules, as `validate` prints them, without file and line. */
function warned(rules: readonly Part[], more: Part = {}, mode: Mode = 'required'): readonly string[] {
  return linesOf(ruled([...rules, closed(rules)], { operators: OPERATORS, ...more }), mode).map((line) =>
    line.replace(/^\S+ /, ''),
  )
}

function linesOf(text: string, mode: Mode = 'required', issuers: readonly string[] = ['corp', 'partner']): readonly string[] {
  const outcome = load(text, issuers, { mode })
  if (!outcome.ok) throw new Error(outcome.faults.map(faultLine).join('\n'))
  return outcome.value.warnings.map(faultLine)
}

/** The warnings are these, and no other. */
function says(t: Test, warnings: readonly string[], expected: readonly RegExp[], message = 'the warnings'): void {
  t.match(warnings, expected, message)
  t.equal(warnings.length, expected.length, `${message}: no other`)
}

const INFO = { routes: ['info'], allow: ['signed-in'] }
const CHAT = { routes: ['agent/run'], allow: ['signed-in'], threads: ['own', 'unknown'] }
const CLEAR = { routes: ['threads/clear'], allow: ['operator'] }
const claims = (...tests: readonly Part[]): Part => ({ ...INFO, claims: tests })

void test('the shipped policy draws none, whether people must sign in or may', (t) => {
  for (const mode of ['required', 'optional'] as const) t.same(linesOf(SHIPPED, mode, ['corp']), [], mode)
  t.end()
})

// Each draws the warning and no other but that its route is closed then; and the second, which differs a little, draws none.
const NEVER: Readonly<Record<string, readonly [never: Part, why: RegExp, sometimes: Part, mode?: Mode]>> = {
  'anonymous where everybody signs in': [
    { ...INFO, allow: ['anonymous'] },
    /^rules\.0: never matches: authentication\.mode is required, so no caller is anonymous \(/,
    { ...INFO, allow: ['anonymous', 'signed-in'] },
  ],
  'conditions on issuers where nobody is asked': [
    { ...INFO, issuers: ['corp'] },
    /^rules\.0: never matches: authentication\.mode is off, so callers have no issuer, role/,
    INFO,
    'off',
  ],
  'conditions on claims where nobody is asked': [
    claims({ at: '/tenant', exists: false }),
    /^rules\.0: never matches: authentication\.mode is off, so callers have/,
    { ...INFO, unless: { roles: ['guest'] } },
    'off',
  ],
  'an exception of everybody, by issuer': [
    { ...INFO, issuers: ['corp'], unless: { issuers: ['corp', 'partner'] } },
    /^rules\.0: never matches: unless exempts every caller that the rule selects \(/,
    { ...INFO, issuers: ['corp', 'partner'], unless: { issuers: ['corp'] } },
  ],
  'an exception of every issuer that there is': [
    { ...INFO, unless: { issuers: ['partner', 'corp'] } },
    /^rules\.0: never matches: unless exempts/,
    { ...INFO, unless: { issuers: ['partner', 'corp'], roles: ['guest'] } },
  ],
  'an exception of everybody, by role': [
    { ...INFO, roles: ['guest'], unless: { roles: ['guest', 'visitor'] } },
    /^rules\.0: never matches: unless exempts/,
    { ...INFO, roles: ['guest', 'member'], unless: { roles: ['guest'] } },
  ],
  'an exception of everybody, by permission': [
    { ...INFO, permissions: { all: ['a', 'b'] }, unless: { permissions: { any: ['b', 'c'] } } },
    /^rules\.0: never matches: unless exempts/,
    { ...INFO, permissions: { any: ['a', 'b'] }, unless: { permissions: { any: ['b', 'c'] } } },
  ],
  'an exception of everybody, by claim': [
    { ...claims({ at: '/plan', in: ['free', 'trial'] }), unless: { claims: [{ at: '/plan', exists: true }] } },
    /^rules\.0: never matches: unless exempts/,
    { ...claims({ at: '/plan', in: ['free', 'trial'] }), unless: { claims: [{ at: '/plan', equals: 'free' }] } },
  ],
  'an exception of all operators': [
    { ...CLEAR, unless: { roles: ['operator'] } },
    /^rules\.0: never matches: unless exempts/,
    { ...CLEAR, unless: { roles: ['trainee'] } },
  ],
  'operators of an issuer that has none': [
    { ...CLEAR, issuers: ['partner'] },
    /^rules\.0: never matches: no caller can meet all of its conditions \(/,
    { ...CLEAR, issuers: ['partner', 'corp'] },
  ],
  'a claim of two values at once': [
    claims({ at: '/plan', equals: 'free' }, { at: '/plan', in: ['pro', 'team'] }),
    /^rules\.0: never matches: no caller can meet/,
    claims({ at: '/plan', equals: 'pro' }, { at: '/plan', in: ['pro', 'team'] }),
  ],
  'a claim that is there and is not': [
    claims({ at: '/plan', exists: false }, { at: '/plan', equals: 'free' }),
    /^rules\.0: never matches: no caller can meet/,
    claims({ at: '/plan', exists: true }, { at: '/plan', equals: 'free' }),
  ],
  'a number between two that have none between': [
    claims({ at: '/level', atLeast: 4 }, { at: '/level', atMost: 3 }),
    /^rules\.0: never matches: no caller can meet/,
    claims({ at: '/level', atLeast: 3 }, { at: '/level', atMost: 3 }),
  ],
}

for (const [what, [never, why, sometimes, mode]] of Object.entries(NEVER)) {
  void test(`a rule that can never match: ${what}`, (t) => {
    const more = mode === 'off' ? { operators: [] } : {}
    const [first, ...rest] = warned([never], more, mode)
    t.match(first, why)
    const [route = ''] = never['routes'] as readonly string[]
    says(t, rest, [new RegExp(`^rules: no caller may use ${route}: the rules that allow it never match`)])
    t.same(warned([sometimes], more, mode), [])
    t.end()
  })
}

void test('rules for operators where the policy names none', (t) => {
  const [first, ...rest] = warned([CLEAR], { operators: [] })
  t.match(first, /^rules\.0: never matches: the policy has no operators \(add them under operators/)
  t.match(rest, [/^rules: no caller may use threads\/clear: /])
  t.same(warned([{ ...INFO, allow: ['operator', 'signed-in'] }], { operators: [] }), [], 'others are spoken of, too')
  t.end()
})

void test('a selector of operators of whom no rule for operators speaks', (t) => {
  const operators = [...OPERATORS, { issuer: 'partner', role: 'operator' }]
  const idle = /^operators\.1: selects operators that no rule for operators can match \(/
  says(t, warned([{ ...CLEAR, issuers: ['corp'] }], { operators }), [idle])
  says(t, warned([{ ...CLEAR, unless: { issuers: ['partner'] } }], { operators }), [idle])
  says(t, warned([{ ...CLEAR, issuers: ['corp'] }], { operators }, 'off'), [/^operators: no caller is an operator/])
  says(t, warned([CLEAR], { operators }), [])
  const debug = { routes: ['cpk-debug-events'], allow: ['operator'], issuers: ['partner'] }
  says(t, warned([{ ...CLEAR, issuers: ['corp'] }, debug], { operators }), [], 'another rule speaks of them')
  says(t, warned([INFO], { operators }), [], 'where there is no such rule, none is idle')
  t.end()
})

void test('a rule that denies and can never match is no help, and is said', (t) => {
  says(t, warned([INFO, { routes: ['info'], deny: ['operator'] }], { operators: [] }), [/^rules\.1: never matches: the policy/])
  t.same(warned([INFO, { routes: ['info'], deny: ['operator'] }]), [])
  t.end()
})

void test('in mode off one warning says that nobody is an operator, and which rules that is about', (t) => {
  const rules = [INFO, { ...CLEAR, name: 'wipe' }]
  says(t, warned(rules, {}, 'off'), [
    /^operators: no caller is an operator while authentication\.mode is off, .*: wipe \(line \d+\) \(/,
  ])
  says(t, warned([INFO], {}, 'off'), [/^operators: no caller is an operator while authentication\.mode is off \(/])
  t.same(warned(rules), [])
  t.same(warned([INFO], { operators: [] }, 'off'), [])
  t.end()
})

void test('agents that no request can name', (t) => {
  const path = /^rules\.0\.agents\.1: never matches: no request can name this agent \(/
  for (const id of ['fin ance', 'a/b', 'run', 'toString', 'finance.', 'x'.repeat(129)]) {
    says(t, warned([{ ...CHAT, agents: ['finance', id] }]), [path], id)
  }
  t.same(warned([{ ...CHAT, agents: ['finance', 'agent', 'a.b-c_9'] }]), [])
  t.end()
})

const deny = (more: Part): readonly Part[] => [CHAT, { name: 'wall', routes: ['agent/run'], deny: ['signed-in'], ...more }]

void test('a rule that allows nothing, because others deny it all', (t) => {
  const message = /^rules\.0: allows nothing: wall \(line \d+\) denies all of it \(/
  says(t, warned(deny({})), [message])
  says(t, warned(deny({ deny: ['signed-in', 'anonymous'] })), [message])
  t.match(
    warned([
      { ...CLEAR, roles: ['a'] },
      { name: 'wall', routes: ['threads/clear'], deny: ['operator'] },
    ]),
    [message],
  )
  t.match(
    warned([{ ...CLEAR }, { name: 'wall', routes: ['threads/clear'], deny: ['signed-in'] }]),
    [message],
    'operators sign in',
  )
  says(t, warned([{ ...CHAT, agents: ['a'] }, ...deny({ agents: ['a', 'b'] }).slice(1)]), [message])
  says(t, warned([{ ...CHAT, issuers: ['corp'] }, ...deny({ unless: { issuers: ['partner'] } }).slice(1)]), [message])
  says(t, warned([{ ...CHAT, unless: { roles: ['a'] } }, ...deny({ unless: { roles: ['a'], issuers: ['corp'] } }).slice(1)]), [
    message,
  ])
  t.end()
})

void test('operators are known by what the policy selects them by', (t) => {
  const operators = [{ issuer: 'corp', permission: 'ops' }]
  const wall = { name: 'wall', routes: ['threads/clear'], deny: ['signed-in'], permissions: { any: ['ops', 'root'] } }
  says(t, warned([CLEAR, wall], { operators }), [/^rules\.0: allows nothing: wall/])
  says(t, warned([CLEAR, wall], { operators: OPERATORS }), [])
  t.end()
})

void test('in mode off a rule with conditions speaks of nobody, and takes nothing away', (t) => {
  const wall = { name: 'wall', routes: ['info'], deny: ['signed-in'] }
  const off = (more: Part): readonly string[] => warned([INFO, { ...wall, ...more }], { operators: [] }, 'off')
  says(t, off({ roles: ['guest'] }), [/^rules\.1: never matches/])
  says(t, off({}), [/^rules\.0: allows nothing: wall/])
  says(t, off({ unless: { roles: ['member'] } }), [/^rules\.0: allows nothing: wall/], 'nobody has the role')
  t.end()
})

void test('a rule that leaves something is no cause', (t) => {
  for (const more of [
    { roles: ['guest'] },
    { unless: { roles: ['member'] } },
    { agents: ['a'] },
    { threads: ['own', 'unknown', 'foreign'] },
    { only: 'user-scoped' },
    { deny: ['operator'] },
    { permissions: { any: ['x'] } },
    { claims: [{ at: '/x', equals: 1 }] },
  ]) {
    t.same(warned(deny(more)), [], JSON.stringify(more))
  }
  const rename = { routes: ['threads/update'], allow: ['signed-in'], threads: ['own'] }
  const noDelete = { routes: ['threads/update'], deny: ['signed-in'], methods: ['DELETE'] }
  t.same(warned([rename, noDelete]), [])
  says(t, warned([{ ...rename, methods: ['DELETE'] }, noDelete]), [/^rules\.0: allows nothing: rule 2/])
  t.same(warned([{ ...CHAT, unless: { roles: ['a'], issuers: ['corp'] } }, ...deny({ unless: { roles: ['a'] } }).slice(1)]), [])
  t.end()
})

void test('where only some routes of a rule are denied, they are named', (t) => {
  const rules = [
    { ...INFO, routes: ['info', 'transcribe'] },
    { routes: ['info'], deny: ['signed-in'] },
  ]
  says(t, warned(rules), [/^rules\.0: allows nothing on info: rule 2 \(line \d+\) denies all of it \(/])
  const twice = [{ ...INFO, routes: ['transcribe'] }, { ...rules[0] }, rules[1] ?? {}]
  says(t, warned(twice), [/^rules\.1: allows nothing on info: rule 3/, /^rules\.1: allows nothing on transcribe that rule 1/])
  says(t, warned([{ ...INFO, allow: ['signed-in'] }, INFO, rules[1] ?? {}]), [
    /^rules\.0: allows nothing: rule 3/,
    /^rules\.1: allows nothing: rule 3/,
  ])
  t.end()
})

void test('a rule of which what passes never counts, because an earlier one allows all of it', (t) => {
  const message = /^rules\.1: allows nothing that rule 1 \(line \d+\) does not already allow, .* \(the first matching allow rule/
  const after = (more: Part): readonly string[] => warned([CHAT, { ...CHAT, ...more }])
  says(t, after({ tools: 'drop' }), [message])
  says(t, after({ roles: ['member'], limits: { runs: '5/m' } }), [message])
  says(t, after({ allow: ['operator'], threads: ['own'] }), [message])
  says(t, after({ agents: ['a'] }), [message])
  says(t, warned([CHAT, CLEAR, { ...CHAT, roles: ['member'] }]), [/^rules\.2: allows nothing that rule 1/])
  const both = [{ ...CHAT, threads: ['own'] }, { ...CHAT, threads: ['unknown'] }, CHAT]
  says(t, warned(both), [/^rules\.2: allows nothing that rule 1/], 'two rules together')
  t.end()
})

void test('interrupts that are refused on one route, and can be answered on another', (t) => {
  const threads = { threads: ['own', 'unknown'] }
  const on = (routes: readonly string[], more: Part = {}): Part => ({ routes, allow: ['signed-in'], ...threads, ...more })
  const refuse = { interrupts: 'refuse' }
  const message = (routes: string) =>
    new RegExp(
      `^rules: interrupts are refused on other routes, but no rule refuses them on ${routes} \\(write interrupts: refuse for`,
    )
  says(t, warned([on(['agent/run'], refuse), on(['agent/suggest'])]), [message('agent/suggest')])
  says(t, warned([on(['agent/run'], refuse), on(['agent/connect', 'agent/suggest'])]), [message('agent/connect, agent/suggest')])
  t.same(warned([on(['agent/run', 'agent/suggest'], refuse)]), [], 'refused on both')
  t.same(warned([on(['agent/run'], refuse), INFO]), [], 'another route carries none')
  t.same(warned([on(['agent/run'], refuse), on(['agent/suggest'], { allow: [] })]), [], 'a closed one neither')
  const approvers = on(['agent/run'], { roles: ['approver'], interrupts: 'pass' })
  t.same(warned([approvers, on(['agent/run', 'agent/suggest'])], refuse), [], 'refused by the file')
  t.end()
})

void test('a verified history beside suggestions that anybody may write', (t) => {
  const on = (routes: readonly string[], more: Part = {}): Part => ({ routes, allow: ['signed-in'], threads: ['own'], ...more })
  const verify = { messages: { history: 'verify' } }
  const message = (at: number) => new RegExp(`^rules\\.${at}: messages.history is verify, but messages of agent/suggest are not`)
  says(t, warned([on(['agent/run', 'agent/suggest'])], verify), [message(0)])
  says(t, warned([on(['agent/run']), on(['agent/suggest'])], verify), [message(1)])
  t.same(warned([on(['agent/run']), on(['agent/suggest'], { messages: { roles: ['user'] } })], verify), [], 'only of users')
  t.same(warned([on(['agent/run'])], verify), [], 'closed')
  t.same(warned([on(['agent/run', 'agent/suggest'])]), [], 'nothing is verified')
  t.end()
})

void test('a rule that comes first, or opens something more, is no cause', (t) => {
  const narrow = { ...CHAT, roles: ['member'], tools: 'drop' }
  t.same(warned([narrow, CHAT]), [], 'the narrow one first')
  t.same(warned([CHAT, { ...CHAT, allow: ['operator'], threads: ['own', 'foreign'] }]), [], 'foreign threads, too')
  t.same(warned([narrow, { ...CHAT, roles: ['guest'] }]), [])
  t.same(
    warned([
      { ...CHAT, agents: ['a'] },
      { ...CHAT, agents: ['a', 'b'] },
    ]),
    [],
  )
  t.same(
    warned([
      { ...CHAT, unless: { roles: ['guest'] } },
      { ...CHAT, roles: ['guest'] },
    ]),
    [],
  )
  t.same(warned([{ ...CHAT, only: 'user-scoped' }, CHAT]), [])
  t.same(warned([INFO, { ...INFO, allow: ['anonymous'] }], {}, 'optional'), [])
  says(t, warned([INFO, { ...INFO, allow: ['anonymous'] }], { operators: [] }, 'off'), [/^rules\.1: allows nothing/])
  t.end()
})

void test('routes that no rule opens are named, unless a rule says allow: [] for them', (t) => {
  const [first, ...rest] = linesOf(ruled([INFO]))
  const others = ROUTE_IDS.filter((id) => id !== 'info').join(', ')
  t.ok(
    first?.endsWith(
      ` rules: no caller may use ${others}: no rule allows it (for routes that are closed on purpose, add a rule with allow: [])`,
    ),
  )
  t.same(rest, [])
  t.same(warned([INFO]), [])
  t.same(warned([INFO, { routes: ['transcribe'], deny: ['signed-in'] }]).length, 1, 'a rule that denies opens nothing')
  t.end()
})

void test('only: user-scoped is no cause for a warning', (t) => {
  t.same(warned([{ routes: ['threads/subscribe'], allow: ['signed-in'], only: 'user-scoped' }]), [])
  t.end()
})

void test('every warning has its line', (t) => {
  const text = `version: 1
rules:
  - routes: [info]
    allow: [anonymous]
`
  says(t, linesOf(text), [
    /policy\.yaml:3: rules\.0: never/,
    /policy\.yaml:2: rules: no caller/,
    /policy\.yaml:2: rules: no caller/,
  ])
  t.end()
})

const READ = { routes: ['threads/messages', 'agent/connect'], allow: ['signed-in'], threads: ['own', 'shared'] }
const GRANTS = { routes: ['threads/grants'], allow: ['signed-in'], threads: ['own'] }

void test('a switch for sharing without rules, and rules without the switch', (t) => {
  const on = { sharing: true }
  t.same(warned([READ, GRANTS], on), [])
  t.same(warned([{ ...READ, threads: ['own'] }]), [])
  says(t, warned([{ ...READ, threads: ['own'] }], on), [/^sharing: no rule allows shared threads \(add shared to the threads/])
  says(t, warned([READ]), [
    /^rules\.0\.threads: grants have no effect while sharing is false, so shared never matches \(write sharing: true\)$/,
  ])
  says(t, warned([{ ...READ, threads: ['own'] }, GRANTS]), [
    /^rules\.1\.routes: grants have no effect while sharing is false, so owners cannot share \(write sharing: true\)$/,
  ])
  t.same(
    warned([
      { ...READ, threads: ['own'] },
      { ...GRANTS, allow: [] },
    ]),
    [],
    'closed on purpose',
  )
  const denied = { routes: ['threads/messages'], deny: ['signed-in'], threads: ['shared'] }
  t.same(warned([{ ...READ, threads: ['own'] }, denied]), [], 'a rule that denies them opens none')
  t.end()
})

void test('shared threads are opened for the list and for a chat, or for neither', (t) => {
  const on = { sharing: true }
  const only = (...routes: string[]) => [
    { ...READ, threads: ['own'] },
    { ...READ, routes, threads: ['shared'] },
  ]
  says(t, warned(only('threads/messages'), on), [/^sharing: shared threads are listed, but no rule allows agent\/connect/])
  says(t, warned(only('agent/connect'), on), [/^sharing: a chat can show shared threads, but no rule allows threads\/messages/])
  t.same(warned(only('agent/connect', 'threads/messages'), on), [])
  t.end()
})

void test('a rule for shared threads is opened before by one for them, or for everybody’s', (t) => {
  const on = { sharing: true }
  const operators = (...threads: string[]) => ({ ...READ, allow: ['operator'], threads })
  const opensNothing = /^rules\.1: allows nothing that rule 1 .* does not already allow/
  says(t, warned([operators('foreign'), operators('shared')], on), [opensNothing], 'who may have all may have these')
  says(t, warned([operators('shared', 'foreign'), operators('foreign')], on), [opensNothing])
  t.same(warned([operators('own'), operators('shared')], on), [])
  t.same(warned([operators('own', 'shared'), operators('foreign')], on), [])
  const both = [operators('own'), operators('own', 'shared')]
  t.same(warned(both, on), [])
  says(
    t,
    warned(both),
    [/^rules\.1\.threads: grants have no effect while sharing is false/, opensNothing],
    'without the switch there are none',
  )
  const deletions = { routes: ['threads/update'], allow: ['signed-in'], methods: ['DELETE'] }
  const renames = { ...deletions, methods: undefined }
  says(
    t,
    warned(
      [READ, { ...deletions, threads: ['own'] }, { ...renames, methods: ['PATCH', 'DELETE'], threads: ['own', 'shared'] }],
      on,
    ),
    [],
    'a new name of a shared one was not open',
  )
  const named = { ...deletions, methods: ['PATCH'], threads: ['own', 'shared'] }
  const all = { ...deletions, methods: ['PATCH', 'DELETE'], threads: ['own', 'shared'] }
  says(
    t,
    warned([READ, { ...deletions, threads: ['own'] }, named, all], on),
    [/^rules\.3: allows nothing that /],
    'of a deletion there is no shared one',
  )
  t.end()
})
