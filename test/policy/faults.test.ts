/** Every fault of the rules of a policy, each at its line, and what stands close to it without being one. */
import { test } from 'tap'
import { ROUTE_IDS } from '../../src/core/route/all-routes.ts'
import { faultsIn, ruled } from '../../testing/support/policies.ts'

const INFO = { routes: ['info'], allow: ['signed-in'] }
const RUN = { routes: ['agent/run'], allow: ['signed-in'], threads: ['own'] }
const DENY = { routes: ['info'], deny: ['signed-in'] }
const claim = (one: object) => ({ ...INFO, claims: [one] })

/** What is wrong, with the text that stands in its line. */
type Expected = readonly [path: string, at: string, message: string, hint?: string]

/** Faults of rules for two issuers, where one header of the callers is let through. */
const found = (...rules: readonly object[]) => faultsIn(ruled(rules), ['corp', 'partner'], { forwardHeaders: ['X-Tenant'] })

const ONE_OF = 'write one of equals, in, contains, atLeast, atMost, exists'
const POINTER = 'write /sub or /realm_access/roles'
const RATE = 'write 60/m, 10/s, 1000/h or off'
const ROUTES_HINT = `routes: ${ROUTE_IDS.join(', ')}; a rule that denies may say all`

// oxfmt-ignore
const FAULTY: readonly (readonly [what: string, rule: object, ...Expected[]])[] = [
  ['a name that is none', { ...INFO, name: 'a b' }, ['name', '"name"', 'is not a name', 'letters, digits, . _ -']],
  ['no route', { ...INFO, routes: [] }, ['routes', '"routes"', 'must name a route']],
  ['a route instead of a list', { ...INFO, routes: 'info' }, ['routes', '"routes"', 'must be a list', 'write [info]']],
  ['one role instead of a list', { ...INFO, roles: 'accounting' }, ['roles', '"roles"', 'must be a list', 'write [accounting]']],
  ['a text that is no list of routes', { ...INFO, routes: 'every' }, ['routes', '"routes"', 'is not a list of routes', ROUTES_HINT]],
  ['all for a rule that allows', { ...INFO, routes: 'all' }, ['routes', '"routes"', 'all is for deny rules only', 'name the routes to allow']],
  ['threads of all routes', { ...DENY, routes: 'all', threads: ['own'] }, ['threads', '"threads"', 'all includes routes without a thread', 'name the routes']],
  ['agents of all routes', { ...DENY, routes: 'all', agents: ['a'] }, ['agents', '"agents"', 'all includes routes without an agent', 'name the routes']],
  ['allow and deny', { ...INFO, deny: ['operator'] }, ['', '{', 'must say allow or deny', 'one of them']],
  ['neither of them', { routes: ['info'] }, ['', '{', 'must say allow or deny', 'one of them']],
  ['to deny nobody', { ...DENY, deny: [] }, ['deny', '"deny"', 'must name a kind of caller']],
  ['to deny a stranger', { ...DENY, deny: ['owner'] }, ['deny.0', '"owner"', 'is not a kind of caller', 'write anonymous, signed-in or operator']],
  ['a method of no route', { ...INFO, methods: ['PUT'] }, ['methods.0', '"PUT"', 'is not a method of a route', 'write GET, POST, PATCH or DELETE']],
  ['no method', { ...INFO, methods: [] }, ['methods', '"methods"', 'must name a method']],
  ['a method of other routes', { ...INFO, methods: ['POST'] }, ['methods', '"methods"', 'info has none of these methods', 'it has GET; or give it a separate rule']],
  ['agents where none is named', { ...INFO, agents: ['a'] }, ['agents', '"agents"', 'info has no agent', 'only agent/run, agent/connect, agent/suggest, agent/stop']],
  ['no agent', { ...RUN, agents: [] }, ['agents', '"agents"', 'must name an agent']],
  ['no thread', { ...RUN, threads: undefined }, ['routes', '"routes"', 'agent/run has a thread, but the rule names no threads', 'add threads: [own]']],
  ['another relation', { ...RUN, threads: ['public'] }, ['threads.0', '"public"', 'is not a relation to a thread', 'write own, shared, unknown or foreign']],
  ['another condition', { ...INFO, only: 'weekdays' }, ['only', '"only"', 'is not a condition', 'write user-scoped']],
  ['another refusal', { ...INFO, refusal: 401 }, ['refusal', '"refusal"', 'is not a refusal', 'write 403 or 404']],

  ['no issuer', { ...INFO, issuers: [] }, ['issuers', '"issuers"', 'must name an issuer']],
  ['an unknown issuer', { ...INFO, issuers: ['corp', 'crop'] }, ['issuers', '"issuers"', 'there is no issuer crop', 'configured: corp, partner']],
  ['no role', { ...INFO, roles: [] }, ['roles', '"roles"', 'must name a role']],
  ['a role without a name', { ...INFO, roles: ['a', ''] }, ['roles.1', '""', 'must not be empty']],
  ['no permission', { ...INFO, permissions: {} }, ['permissions', '"permissions"', 'names no permission', 'write any: or all:']],
  ['none of any, and none of all', { ...INFO, permissions: { any: [], all: [] } }, ['permissions.any', '"any"', 'must name a permission'], ['permissions.all', '"all"', 'must name a permission']],
  ['permissions in a list', { ...INFO, permissions: ['a'] }, ['permissions', '"permissions"', 'must be a mapping', 'write { any: [a] }']],
  ['no permissions', { ...INFO, permissions: 1 }, ['permissions', '"permissions"', 'must be a mapping', 'write any: or all:']],
  ['no claim', { ...INFO, claims: [] }, ['claims', '"claims"', 'must name a claim']],
  ['unless of nobody', { ...INFO, unless: {} }, ['unless', '"unless"', 'exempts no user', 'name issuers, roles, permissions or claims']],
  ['unless without a role', { ...INFO, unless: { roles: [] } }, ['unless.roles', '"roles"', 'must name a role']],
  ['unless with an unknown issuer', { ...INFO, unless: { issuers: ['crop'] } }, ['unless', '"unless"', 'there is no issuer crop', 'configured: corp, partner']],
  ['unless with a bad claim', { ...INFO, unless: { claims: [{ at: '/a' }] } }, ['unless.claims.0', '{ claim', 'compares with one thing', ONE_OF]],

  ['a claim by name', claim({ at: 'sub', equals: 'a' }), ['claims.0.at', '"at"', 'is not a JSON pointer', POINTER]],
  ['all claims at once', claim({ at: '', exists: true }), ['claims.0.at', '"at"', 'is not a JSON pointer', POINTER]],
  ['a pointer with a stray ~', claim({ at: '/a~2', exists: true }), ['claims.0.at', '"at"', 'is not a JSON pointer', POINTER]],
  ['a claim compared with nothing', claim({ at: '/a' }), ['claims.0', '{ claim', 'compares with one thing', ONE_OF]],
  ['a claim compared twice', claim({ at: '/a', atLeast: 1, atMost: 2 }), ['claims.0', '{ claim', 'compares with one thing', ONE_OF]],
  ['equal to null', claim({ at: '/a', equals: null }), ['claims.0.equals', '"equals"', 'is not a value to compare with', 'a string, number or boolean']],
  ['equal to a list', claim({ at: '/a', equals: ['a'] }), ['claims.0.equals', '"equals"', 'is not a value to compare with', 'a string, number or boolean']],
  ['containing a list', claim({ at: '/a', contains: [1] }), ['claims.0.contains', '"contains"', 'is not a value to compare with', 'a string, number or boolean']],
  ['in nothing', claim({ at: '/a', in: [] }), ['claims.0.in', '"in"', 'must name a value']],
  ['in values of two types', claim({ at: '/a', in: ['1', 1] }), ['claims.0.in', '"in"', 'has values of several types', 'a rule for each']],
  ['at least a text', claim({ at: '/a', atLeast: '1' }), ['claims.0.atLeast', '"atLeast"', 'must be a number']],
  ['at most a text', claim({ at: '/a', atMost: '1' }), ['claims.0.atMost', '"atMost"', 'must be a number']],
  ['a number with neighbours', claim({ at: '/a', equals: 2 ** 53 }), ['claims.0.equals', '"equals"', 'is too large to be compared exactly', 'use a claim that is a string']],
  ['a list with such a number', claim({ at: '/a', in: [1, -(2 ** 53)] }), ['claims.0.in.1', '-9007', 'is too large to be compared exactly', 'use a claim that is a string']],
  ['a bound of that size', claim({ at: '/a', atMost: 2 ** 60 }), ['claims.0.atMost', '"atMost"', 'is too large to be compared exactly', 'use a claim that is a string']],
  ['there, in words', claim({ at: '/a', exists: 'yes' }), ['claims.0.exists', '"exists"', 'must be a boolean']],

  ['anonymous callers of an issuer', { ...INFO, allow: ['anonymous'], issuers: ['corp'] }, ['issuers', '"issuers"', 'anonymous callers have no issuer', 'give them a separate rule']],
  ['anonymous callers with a role', { ...INFO, allow: ['signed-in', 'anonymous'], roles: ['a'] }, ['roles', '"roles"', 'anonymous callers have no roles', 'give them a separate rule']],
  ['denied, too', { ...DENY, deny: ['anonymous'], roles: ['a'] }, ['roles', '"roles"', 'anonymous callers have no roles', 'give them a separate rule']],
  ['anonymous callers with permissions', { ...INFO, allow: ['anonymous'], permissions: { any: ['a'] } }, ['permissions', '"permissions"', 'anonymous callers have no permissions', 'give them a separate rule']],
  ['anonymous callers with claims', { ...INFO, allow: ['anonymous'], claims: [{ at: '/a', exists: false }] }, ['claims', '"claims"', 'anonymous callers have no claims', 'give them a separate rule']],

  ['a property that is unsafe', { ...INFO, forwardedProps: [{ name: 'a' }, { name: 'config' }] }, ['forwardedProps.1.name', '"config"', "config reaches the agent's configuration, identity or storage", 'to accept this, add unsafe: true to the entry']],
  ['a property without a name', { ...INFO, forwardedProps: [{ name: '' }] }, ['forwardedProps.0.name', '""', 'must not be empty']],
  ['a tool without a name', { ...INFO, tools: [''] }, ['tools.0', '""', 'must not be empty']],
  ['a header without a name', { ...INFO, headers: [''] }, ['headers.0', '""', 'must not be empty']],
  ['another state', { ...INFO, state: 'keep' }, ['state', '"state"', 'is not a choice', 'write pass or drop']],
  ['other answers', { ...INFO, interrupts: 'drop' }, ['interrupts', '"interrupts"', 'is not a choice', 'write pass or refuse']],
  ['other tools', { ...INFO, tools: 'none' }, ['tools', '"tools"', 'is not a choice', 'write pass, drop or a list of the names that pass']],
  ['a header that does not pass', { ...INFO, headers: ['x-tenant', 'X-Other'] }, ['headers', '"headers"', 'X-Other is not in forwardHeaders', 'add it there, or remove it']],
  ['requests without a time', { ...INFO, limits: { requests: 60 } }, ['limits.requests', '"requests"', 'is not a rate', RATE]],
  ['no run', { ...INFO, limits: { runs: '0/m' } }, ['limits.runs', '"runs"', 'is not a rate', RATE]],
  ['new threads a day', { ...INFO, limits: { newThreads: '60/d' } }, ['limits.newThreads', '"newThreads"', 'is not a rate', RATE]],
  ['no stream', { ...INFO, limits: { streams: 0 } }, ['limits.streams', '"streams"', 'is not a number of streams', 'write 20 or off']],
  ['half a stream', { ...INFO, limits: { streams: 1.5 } }, ['limits.streams', '"streams"', 'is not a number of streams', 'write 20 or off']],
  ['a body that no text holds', { ...INFO, limits: { body: '1GiB' } }, ['limits.body', '"body"', 'is too large']],
  ['a group of no issuer', { ...INFO, limits: { runs: { rate: '1/m', per: 'group', groups: ['other:a'] } } }, ['limits', '"limits"', 'other:a is a group of no configured issuer']],
  ['another limit', { ...INFO, limits: { body: '1MiB', run: '1/m' } }, ['limits.run', '"run"', 'is not a known key', 'did you mean "runs"?']],
]

for (const [what, rule, ...expected] of FAULTY) {
  void test(`${what} is a fault, at its line`, (t) => {
    const text = ruled([rule]).split('\n')
    /** The line of a rule or claim is that of its brace; of all else, the first one with its text. */
    const lineOf = (at: string): number =>
      at === '{'
        ? 4
        : at === '{ claim'
          ? text.findIndex((line) => line.includes('"claims"')) + 2
          : text.findIndex((line) => line.includes(at)) + 1
    const told = found(rule).map(({ path, line, message, hint }) => ({ path, line, message, hint }))
    t.equal(told.length, expected.length, JSON.stringify(told))
    for (const [at, [path, mark, message, hint]] of expected.entries()) {
      t.match(told[at], {
        path: path === '' ? 'rules.0' : `rules.0.${path}`,
        line: lineOf(mark),
        message,
        ...(hint === undefined ? {} : { hint }),
      })
    }
    t.end()
  })
}

for (const [key, value] of [
  ['forwardedProps', []],
  ['state', 'pass'],
  ['tools', 'pass'],
  ['langgraph', { options: ['webhook'] }],
  ['interrupts', 'refuse'],
  ['headers', []],
  ['limits', {}],
] as const) {
  void test(`${key} is for rules that allow: what is denied passes nothing`, (t) => {
    t.match(found({ ...DENY, [key]: value }), [
      { path: `rules.0.${key}`, message: 'is for allow rules only', hint: 'a denied request forwards nothing' },
    ])
    t.same(found({ ...INFO, [key]: value }), [])
    t.end()
  })
}

void test('give each rule its own name', (t) => {
  const named = (name: string) => ({ ...INFO, name })
  const fault = { message: 'a is also the name of another rule', hint: 'give each rule its own name' }
  t.match(found(named('a'), named('b'), named('a'), named('a')), [
    { path: 'rules.2.name', ...fault },
    { path: 'rules.3.name', ...fault },
  ])
  t.same(found(named('a'), named('b'), INFO, INFO), [])
  t.end()
})

void test('rules that are close to a fault, and none', (t) => {
  for (const rule of [
    { ...DENY, routes: 'all' },
    { ...DENY, routes: 'all', methods: ['DELETE'], refusal: 404, unless: { roles: ['a'] }, only: 'user-scoped' },
    { ...DENY, routes: ['agent/run', 'threads/update'] },
    { ...DENY, routes: ['threads/clear', 'threads/list'], deny: ['anonymous', 'signed-in', 'operator'] },
    { ...DENY, routes: ['threads/messages'], threads: ['unknown', 'foreign'] },
    { ...DENY, deny: ['anonymous'], unless: { roles: ['a'] } },
    { ...INFO, name: 'a-Rule_1.x', methods: ['GET'], issuers: ['partner'], roles: ['a'], headers: ['x-TENANT'] },
    { ...RUN, routes: ['agent/run', 'agent/stop'], agents: ['a'], permissions: { all: ['p'], any: ['q'] } },
    { ...RUN, limits: { requests: '10/s', runs: 'off', newThreads: '1/h', streams: 'off', body: '256MiB' } },
    { ...RUN, limits: { streams: 1 }, tools: [], state: 'drop', forwardedProps: [{ name: 'config', unsafe: true }] },
    claim({ at: '/a~1b/0', equals: '' }),
    claim({ at: '/a', equals: 2 ** 53 - 1 }),
    claim({ at: '/a', atLeast: 0.5 }),
    claim({ at: '/a', in: [true, false] }),
  ]) {
    t.same(found(rule), [], JSON.stringify(rule))
  }
  t.end()
})
