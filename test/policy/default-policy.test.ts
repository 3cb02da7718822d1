/**
 * The truth table of policies/default.yaml, written out by hand from the design (docs/reference/default-policy.md) and held against what
 * the compiled file decides: routes × anonymous callers of mode `optional`, signed-in users, operators, and everybody in
 * mode `off`, by what the thread is to them.
 */
import { test } from 'tap'
import { ALL_ROUTES } from '../../src/core/route/all-routes.ts'
import type { Route } from '../../src/core/route/routes.ts'
import { DEFAULT_POLICY } from '../../src/config/policy-file.ts'
import { loadPolicy } from '../../src/policy/compile.ts'
import { Sources } from '../../src/document/sources.ts'
import { CALLERS, told, type Thread } from '../../testing/support/callers.ts'
import { compiled, SHIPPED } from '../../testing/support/policies.ts'
import { OPEN_BODIES } from '../../testing/support/open-bodies.ts'

const policy = compiled(SHIPPED)
const no = 'not-allowed'

// oxfmt-ignore
const WITHOUT_THREAD = [
  // route                        anonymous  alice  olga   everybody
  ['GET info',                    no,        'yes', 'yes', 'yes'],
  ['POST transcribe',             no,        'yes', 'yes', 'yes'],
  ['GET threads',                 no,        'yes', 'yes', 'yes'],
  ['POST threads/subscribe',      no,        no,    no,    no],
  ['POST threads/clear',          no,        no,    'yes', no],
  ['GET cpk-debug-events',        no,        no,    no,    no],
  ['GET memories',                no,        no,    no,    no],
  ['POST memories',               no,        no,    no,    no],
  ['POST memories/recall',        no,        no,    no,    no],
  ['POST memories/subscribe',     no,        no,    no,    no],
  ['PATCH memories/m-1',          no,        no,    no,    no],
  ['DELETE memories/m-1',         no,        no,    no,    no],
  ['GET inspector-metadata',      no,        no,    no,    no],
  ['GET inspector-learning',      no,        no,    no,    no],
] as const

// oxfmt-ignore
const ABOUT_A_THREAD = [
  // route                                    anonymous    own       read         write        unknown      foreign      deleted      foreign, deleted  off: read    off: write
  ['POST agent/a/run',                       no,          'claims', 'not-owner', 'claims',    'claims',    'not-owner', 'claims',    'not-owner',      'not-owner', 'not-owner'],
  ['POST agent/a/connect',                   no,          'yes',    'yes',       'yes',       'empty',     'not-owner', 'empty',     'not-owner',      'not-owner', 'not-owner'],
  ['POST agent/a/suggest',                   no,          'yes',    'not-owner', 'yes',       'yes',       'not-owner', 'yes',       'not-owner',      'not-owner', 'not-owner'],
  ['POST agent/a/stop/t-1',                  no,          'yes',    'not-owner', 'yes',       'not-owner', 'not-owner', 'not-owner', 'not-owner',      'not-owner', 'not-owner'],
  ['GET threads/t-1/messages',               no,          'yes',    'yes',       'yes',       'not-owner', 'not-owner', 'not-owner', 'not-owner',      'not-owner', 'not-owner'],
  ['PATCH threads/t-1',                      no,          'yes',    'not-owner', 'yes',       'not-owner', 'not-owner', 'not-owner', 'not-owner',      'not-owner', 'not-owner'],
  ['DELETE threads/t-1',                     no,          'yes',    'not-owner', 'not-owner', 'not-owner', 'not-owner', 'not-owner', 'not-owner',      'not-owner', 'not-owner'],
  ['POST threads/t-1/archive',               no,          'yes',    'not-owner', 'not-owner', 'not-owner', 'not-owner', 'not-owner', 'not-owner',      'not-owner', 'not-owner'],
  ['POST annotate',                          no,          'yes',    'not-owner', 'yes',       'not-owner', 'not-owner', 'not-owner', 'not-owner',      'not-owner', 'not-owner'],
  ['GET threads/t-1/events',                 'not-found', 'yes',    'yes',       'yes',       'not-found', 'not-found', 'not-found', 'not-found',      'not-found', 'not-found'],
  ['GET threads/t-1/state',                  'not-found', 'yes',    'yes',       'yes',       'not-found', 'not-found', 'not-found', 'not-found',      'not-found', 'not-found'],
  ['GET threadwarden/threads/t-1/grants',    no,          no,       no,          no,          no,          no,          no,          no,               no,          no],
  ['POST threadwarden/threads/t-1/grants',   no,          no,       no,          no,          no,          no,          no,          no,               no,          no],
  ['DELETE threadwarden/threads/t-1/grants', no,          no,       'not-owner', 'not-owner', 'not-owner', 'not-owner', 'not-owner', 'not-owner',      'not-owner', 'not-owner'],
] as const
/** The same of a LangGraph server. */
const LANGGRAPH = {
  open: [
    'GET graphs/info',
    'GET graphs/ok',
    'POST graphs/assistants/search',
    'POST graphs/assistants/count',
    'GET graphs/assistants/a',
    'GET graphs/assistants/a/graph',
    'GET graphs/assistants/a/schemas',
    'GET graphs/assistants/a/subgraphs',
    'GET graphs/assistants/a/subgraphs/x',
    'POST graphs/assistants/a/versions',
    'POST graphs/threads/search',
    'POST graphs/threads/count',
  ],
  claims: [
    'POST graphs/threads',
    'POST graphs/threads/t-1/runs',
    'POST graphs/threads/t-1/runs/stream',
    'POST graphs/threads/t-1/runs/wait',
  ],
  read: [
    'GET graphs/threads/t-1',
    'POST graphs/threads/t-1/copy',
    'GET graphs/threads/t-1/state',
    'GET graphs/threads/t-1/state/x',
    'POST graphs/threads/t-1/state/checkpoint',
    'GET graphs/threads/t-1/history',
    'POST graphs/threads/t-1/history',
    'GET graphs/threads/t-1/runs',
    'GET graphs/threads/t-1/runs/x',
    'GET graphs/threads/t-1/runs/x/join',
    'GET graphs/threads/t-1/runs/x/stream',
  ],
  write: ['PATCH graphs/threads/t-1', 'POST graphs/threads/t-1/state', 'POST graphs/threads/t-1/runs/x/cancel'],
  owner: ['DELETE graphs/threads/t-1', 'DELETE graphs/threads/t-1/runs/x'],
} as const
const CLOSED = Array<string>(4).fill('not-owner')
// oxfmt-ignore
const ABOUT_A_LANGGRAPH_THREAD = [
  ...LANGGRAPH.claims.map((route) => [route, no, 'claims', 'not-owner', 'claims', 'claims', 'not-owner', 'claims', 'not-owner', 'not-owner', 'not-owner']),
  ...LANGGRAPH.read.map((route) => [route, no, 'yes', 'yes', 'yes', ...CLOSED, 'not-owner', 'not-owner']),
  ...LANGGRAPH.write.map((route) => [route, no, 'yes', 'not-owner', 'yes', ...CLOSED, 'not-owner', 'not-owner']),
  ...LANGGRAPH.owner.map((route) => [route, no, 'yes', 'not-owner', 'not-owner', ...CLOSED, 'not-owner', 'not-owner']),
] as unknown as typeof ABOUT_A_THREAD
const LANGGRAPH_WITHOUT_THREAD = LANGGRAPH.open.map((route) => [route, no, 'yes', 'yes', 'yes'] as const)
const THREADS: readonly Thread[] = ['own', 'read', 'write', 'unknown', 'foreign', 'deleted', 'foreign, deleted']

for (const [route, anonymous, alice, olga, everybody] of [...WITHOUT_THREAD, ...LANGGRAPH_WITHOUT_THREAD]) {
  void test(`${route}: who may is as the design says`, (t) => {
    t.equal(told(policy, CALLERS.anonymous, route), anonymous, 'anonymous')
    t.equal(told(policy, CALLERS.alice, route), alice, 'signed in')
    t.equal(told(policy, CALLERS.olga, route), olga, 'operator')
    t.equal(told(policy, CALLERS.everybody, route), everybody, 'mode off')
    t.end()
  })
}

for (const [route, anonymous, own, read, write, unknown, foreign, deleted, theirs, offRead, offWrite] of [
  ...ABOUT_A_THREAD,
  ...ABOUT_A_LANGGRAPH_THREAD,
]) {
  void test(`${route}: who may, on which thread, is as the design says`, (t) => {
    const answers = (caller: keyof typeof CALLERS) => THREADS.map((thread) => told(policy, CALLERS[caller], route, thread))
    t.same(new Set(answers('anonymous')), new Set([anonymous]), 'anonymous')
    t.same(answers('alice'), [own, read, write, unknown, foreign, deleted, theirs], 'signed in')
    t.same(answers('olga'), [own, read, write, unknown, foreign, deleted, theirs], 'operators are not owners')
    t.same(answers('everybody'), [own, offRead, offWrite, unknown, foreign, deleted, theirs], 'mode off')
    t.end()
  })
}

void test('subscriptions are open to all who are signed in, once the upstream scopes users', (t) => {
  const subscribed = (caller: keyof typeof CALLERS) => told(policy, CALLERS[caller], 'POST threads/subscribe', 'own', true)
  t.same([subscribed('anonymous'), subscribed('alice'), subscribed('olga'), subscribed('everybody')], [no, 'yes', 'yes', 'yes'])
  t.end()
})

void test('the table above has every route that exists', (t) => {
  const tables = [...WITHOUT_THREAD, ...LANGGRAPH_WITHOUT_THREAD, ...ABOUT_A_THREAD, ...ABOUT_A_LANGGRAPH_THREAD]
  const written = tables.map(([route]) => route.replaceAll(/(?<=\/)(?:m-1|t-1|a|x)(?=\/|$)/g, ':id'))
  const pathOf = ({ api, path }: Route): string =>
    [...(api === undefined ? [] : ['graphs']), ...path.map((word) => word.replace(/^:.*/, ':id'))].join('/')
  const existing = ALL_ROUTES.map((row) => `${row.method} ${pathOf(row)}`)
  t.same(written.sort(), existing.sort())
  t.end()
})

void test('the shipped file draws no warning and lets nothing more through than is built in', (t) => {
  t.match(loadPolicy(new Sources(), DEFAULT_POLICY.path, { issuers: ['corp'] }), { ok: true, value: { warnings: [] } })
  const roles = new Set(['user', 'assistant', 'tool', 'reasoning', 'activity'])
  const langgraph = { ...OPEN_BODIES.langgraph, command: new Set(['resume']) }
  t.same(policy.bodies, { ...OPEN_BODIES, langgraph, messages: { ...OPEN_BODIES.messages, roles } })
  t.end()
})
