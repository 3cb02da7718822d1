/**
 * The runtime looks at the last one to four segments of a path only, even with a base path (runtime-behaviour.md, "Targets and ids"), so a path may begin
 * as one route and end as another: `/agent/threads/run/threads/T/messages` reads T, `/threads/info` is info. Literals are
 * matched here from the first segment to the last, and nothing else is forwarded.
 */
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { events, json } from '../../testing/support/upstream.ts'
import { OPEN_POLICY } from './open-policy.ts'

const BASE = '/api/copilotkit'
/** Whose messages the caller is after. */
const VICTIM = 'victim-1'

/** What ends as a route and begins as none: 404. */
const UNKNOWN = [
  'x/info',
  'x/y/info',
  'x/threads/clear',
  'threads/threads/clear',
  'threads/t1/clear',
  'threads/t1/threads/clear',
  'threads/t1/messages/info',
  'threads/clear/info',
  'info/threads/clear',
  'info/info',
  'agent/info',
  'agent/default/info',
  'agent/default/run/info',
  'agent/default/run/threads/clear',
  'agent/x/agent/default/run',
  'agent/run',
  'agent/agent/default/connect',
  `agent/threads/run/threads/${VICTIM}/messages`,
  `agent/default/run/threads/${VICTIM}/messages`,
  `agent/default/connect/threads/${VICTIM}/events`,
  `agent/default/run/agent/default/stop/${VICTIM}`,
  `agent/default/stop/t1/stop/${VICTIM}`,
  `x/agent/default/stop/${VICTIM}`,
  `threads/t1/threads/${VICTIM}/messages`,
  `threads/t1/messages/threads/${VICTIM}/messages`,
  `threads/t1/${VICTIM}/messages`,
  `threads/${VICTIM}/messages/messages`,
  `memories/threads/${VICTIM}/state`,
  `transcribe/threads/${VICTIM}/archive`,
  `x/threads/${VICTIM}`,
  `info/threads/${VICTIM}`,
  'threads/t1/annotate',
  'x/annotate',
  'info/cpk-debug-events',
  'threads/cpk-debug-events/x',
  'memories/recall/info',
  'x/memories/subscribe',
  'inspector-metadata/info',
  'threads/t1/transcribe',
  'copilotkit/info',
  'api/copilotkit/info',
  'api/copilotkit/threads/clear',
] as const

/** What fits a route of this length, but with a word of the router's where an id stands, or with another method. */
const REFUSED: readonly (readonly [method: string, path: string, status: number])[] = [
  ['GET', 'threads/info', 405],
  ['POST', 'threads/info', 405],
  ['PATCH', 'threads/info', 400],
  ['DELETE', 'threads/annotate', 400],
  ['DELETE', 'threads/cpk-debug-events', 400],
  ['PATCH', 'threads/threads', 400],
  ['GET', 'threads/clear/messages', 400],
  ['GET', 'threads/threads/messages', 400],
  ['POST', 'threads/threads/archive', 400],
  ['POST', 'agent/run/run', 400],
  ['POST', 'agent/threads/run', 400],
  ['POST', 'agent/info/connect', 400],
  ['POST', 'agent/default/stop/info', 400],
  ['POST', 'agent/default/stop/clear', 400],
  ['POST', 'agent/threads/stop/archive', 400],
  ['PATCH', 'memories/threads', 400],
  ['DELETE', 'memories/clear', 400],
]

void testFirstPair('a path that ends as a route and begins as another reaches nothing', async (t, pair) => {
  const { gateway, upstream, alice, bob, olga } = await gated(t, events(), { pair })
  const run = JSON.stringify(runInput(VICTIM))
  t.equal((await gateway.ask({ target: `${BASE}/agent/default/run`, token: bob, body: run })).status, 200)
  for (const path of UNKNOWN) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      for (const token of [alice, olga]) {
        const answer = await gateway.ask({ method, target: `${BASE}/${path}`, token })
        t.match(answer, { status: 404, body: '"code":"not-found"' }, `${method} ${path}`)
      }
    }
    t.equal((await gateway.ask({ target: `${BASE}/${path}` })).status, 401, 'and is no way round the credential')
  }
  t.equal(upstream.beginnings(), 1, 'the owner’s run, and nothing else')
})

void testFirstPair('nor does one without the base path, or with more before it', async (t, pair) => {
  const { gateway, upstream, olga } = await gated(t, undefined, { pair })
  for (const path of ['threads/clear', 'info', `threads/${VICTIM}/messages`, 'agent/default/run']) {
    for (const prefix of [
      '',
      '/x',
      '/api',
      '/api/copilotkitx',
      '/api/x/copilotkit',
      '/copilotkit',
      '/x/api/copilotkit',
      '/API/copilotkit',
      '/api/CopilotKit',
      '/api/copilotkit.',
    ]) {
      // oxfmt-ignore
      for (const method of ['GET', 'POST']) {
        const answer = await gateway.ask({ method, target: `${prefix}/${path}`, token: olga })
        t.match(answer, { status: 404, body: '"code":"not-found"' }, `${method} ${prefix}/${path}`)
      }
    }
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('words of the router are no ids, whatever the policy opens', async (t, pair) => {
  const { gateway, upstream, olga } = await gated(t, undefined, { pair, policy: OPEN_POLICY })
  for (const [method, path, status] of REFUSED) {
    const body = /\/(?:run|connect)$/.test(path) ? { body: JSON.stringify(runInput('t1')) } : {}
    const answer = await gateway.ask({ method, target: `${BASE}/${path}`, token: olga, ...body })
    t.equal(answer.status, status, `${method} ${path}`)
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('the routes themselves arrive, each as the one that it is', async (t, pair) => {
  const { gateway, upstream, olga } = await gated(t, json({}), { pair, policy: OPEN_POLICY })
  const paths = [
    ['POST', 'agent/agent/run'],
    ['GET', `threads/${VICTIM}/messages`],
    ['POST', `agent/default/stop/${VICTIM}`],
    ['GET', 'info'],
    ['POST', 'threads/clear'],
  ] as const
  for (const [method, path] of paths) {
    const body = path.endsWith('/run') ? { body: JSON.stringify(runInput(VICTIM)) } : {}
    t.equal((await gateway.ask({ method, target: `${BASE}/${path}`, token: olga, ...body })).status, 200, path)
  }
  t.same(
    upstream.requests.map(({ method, target }) => [method, target.slice(BASE.length + 1)]),
    paths,
  )
})
