/** Rules that would open more than they say are refused when the file is read, with the place and the way out. */
import { test } from 'tap'
import { faultsIn, ruled } from '../../testing/support/policies.ts'

const OPERATORS = ['threads/clear', 'cpk-debug-events']

void test('a route that does not exist is refused, and the routes are listed', (t) => {
  for (const route of ['agent/runs', 'threads/*', '*', 'GET info', '']) {
    t.match(faultsIn(ruled([{ routes: ['info', route], allow: ['signed-in'] }])), [
      { path: 'rules.0.routes', message: `${route} is not a route`, hint: /^routes: info, agent\/run, / },
    ])
  }
  t.end()
})

void test('a rule about threads says which', (t) => {
  for (const route of ['agent/run', 'agent/stop', 'threads/messages', 'threads/update', 'threads/state', 'annotate']) {
    const fault = {
      path: 'rules.0.routes',
      message: `${route} has a thread, but the rule names no threads`,
      hint: 'add threads: [own]',
    }
    t.match(faultsIn(ruled([{ routes: [route], allow: ['signed-in'] }])), [fault])
    t.same(faultsIn(ruled([{ routes: [route], allow: [] }])), [], 'nobody needs no thread')
  }
  t.match(faultsIn(ruled([{ routes: ['agent/run'], allow: ['signed-in'], threads: [] }])), [{ path: 'rules.0.threads' }])
  t.end()
})

void test('a rule about no thread does not say which', (t) => {
  for (const route of ['info', 'threads/list', 'threads/clear', 'transcribe']) {
    t.match(faultsIn(ruled([{ routes: [route], allow: ['operator'], threads: ['own'] }])), [
      { path: 'rules.0.threads', message: `${route} has no thread`, hint: 'give it a separate rule' },
    ])
  }
  t.end()
})

void test('threads without an owner are opened for run, connect and suggest alone', (t) => {
  const opened = (route: string) => faultsIn(ruled([{ routes: [route], allow: ['signed-in'], threads: ['own', 'unknown'] }]))
  for (const route of ['agent/run', 'agent/connect', 'agent/suggest']) t.same(opened(route), [])
  const others = [
    'agent/stop',
    'threads/messages',
    'threads/events',
    'threads/state',
    'threads/update',
    'threads/archive',
    'annotate',
  ]
  for (const route of others) {
    const hint = 'only agent/run, agent/connect, agent/suggest'
    t.match(opened(route), [
      { path: 'rules.0.threads', message: `${route} cannot be allowed for threads without an owner`, hint },
    ])
  }
  t.end()
})

void test('foreign threads are opened to operators alone', (t) => {
  const opened = (...allow: string[]) => faultsIn(ruled([{ routes: ['threads/messages'], allow, threads: ['own', 'foreign'] }]))
  const fault = {
    path: 'rules.0.threads',
    message: 'foreign threads can be allowed to operators only',
    hint: 'give operators a separate rule',
  }
  t.match(opened('signed-in'), [fault])
  t.match(opened('anonymous'), [fault])
  t.match(opened('operator', 'signed-in'), [fault])
  t.same(opened('operator'), [])
  t.end()
})

void test('what stays with the owner is opened for no shared thread, and denied for none', (t) => {
  const faults = (routes: readonly string[], more: object = {}) =>
    faultsIn(ruled([{ routes, allow: ['signed-in'], threads: ['own', 'shared'], ...more }]))
  const fault = (route: string) => ({
    path: 'rules.0.threads',
    message: `${route} is for the owner only: grants never cover it`,
    hint: 'give it a separate rule without shared',
  })
  for (const [route, more] of [
    ['threads/archive', {}],
    ['threads/grants', { methods: ['GET', 'POST'] }],
  ] as const) {
    t.match(faults(['threads/messages', route], more).slice(-1), [fault(route)])
    t.match(faultsIn(ruled([{ routes: [route], ...more, deny: ['signed-in'], threads: ['shared'] }])), [fault(route)])
  }
  t.same(faults(['threads/grants']), [], 'whoever was let in may leave')
  t.same(faults(['threads/grants'], { methods: ['DELETE'] }), [])
  t.match(faults(['threads/update'], { methods: ['DELETE'] }), [fault('threads/update')])
  t.same(faults(['threads/update']), [], 'a new name may be granted')
  t.same(faults(['threads/update'], { methods: ['PATCH'] }), [])
  t.same(
    faults(['threads/messages'], { methods: ['DELETE'] }).map(({ path }) => path),
    ['rules.0.methods'],
    'a method that it does not have is another fault',
  )
  const guests = ['agent/run', 'agent/connect', 'agent/suggest', 'agent/stop', 'annotate']
  t.same(faults([...guests, 'threads/messages', 'threads/events', 'threads/state']), [])
  t.end()
})

void test('grants are never opened to anonymous: all of them are one owner', (t) => {
  const faults = (...allow: string[]) => faultsIn(ruled([{ routes: ['threads/grants'], allow, threads: ['own'] }]))
  const fault = {
    path: 'rules.0.allow',
    message: 'threads/grants cannot be allowed to anonymous',
    hint: /^all anonymous callers are one owner/,
  }
  t.match(faults('signed-in', 'anonymous'), [fault])
  t.same(faults('signed-in'), [])
  t.match(faultsIn(ruled([{ routes: ['threads/grants'], allow: ['signed-in'], threads: ['unknown'] }])), [
    { path: 'rules.0.threads', message: 'threads/grants cannot be allowed for threads without an owner' },
  ])
  t.end()
})

for (const route of OPERATORS) {
  void test(`${route} is opened to operators alone`, (t) => {
    const opened = (...allow: string[]) => faultsIn(ruled([{ routes: [route], allow }]))
    const fault = {
      path: 'rules.0.allow',
      message: `${route} reaches the threads of all users`,
      hint: 'allow it to operators only',
    }
    for (const who of ['signed-in', 'anonymous']) t.match(opened(who, 'operator'), [fault], who)
    t.same(opened('operator'), [])
    t.same(opened(), [])
    t.end()
  })
}

void test('the list is never opened to anonymous: all of them are one owner', (t) => {
  for (const route of ['threads/list', 'langgraph/threads/search', 'langgraph/threads/count']) {
    t.match(faultsIn(ruled([{ routes: [route], allow: ['signed-in', 'anonymous'] }])), [
      {
        path: 'rules.0.allow',
        message: `${route} cannot be allowed to anonymous`,
        hint: /^all anonymous callers are one owner/,
      },
    ])
  }
  t.end()
})

void test('a rule that breaks the law on several routes says so for each', (t) => {
  const faults = faultsIn(ruled([{ routes: [...OPERATORS, 'threads/list'], allow: ['anonymous'] }]))
  t.same(
    faults.map(({ message }) => message.split(' ')[0]),
    ['threads/clear', 'cpk-debug-events', 'threads/list'],
  )
  t.end()
})
