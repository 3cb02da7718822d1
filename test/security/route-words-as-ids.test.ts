/**
 * An id that is spelled as a word of the router: a thread called `clear` makes `PATCH /threads/clear` two things at once, and
 * the runtime, which matches from the last segment backwards, reads `/threads/clear/messages` as it likes (runtime-behaviour.md, "Targets and ids"). Such
 * ids are refused wherever they stand, in any case, before a row is written: a claim on `info` would be somebody's for ever.
 */
import { test } from 'tap'
import { ROUTE_WORDS } from '../../src/core/route/ids.ts'
import { ROUTES } from '../../src/core/route/routes.ts'
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testEachPair, testUnbridged } from '../../testing/support/pairs.ts'
import type { RawRequest } from '../../testing/support/raw.ts'
import { owners, rows } from '../../testing/support/rows.ts'
import { events } from '../../testing/support/upstream.ts'
import { OPEN_POLICY } from './open-policy.ts'

const BASE = '/api/copilotkit'
const BODY_ROUTES = ['agent/default/run', 'agent/default/connect', 'agent/default/suggest', 'annotate']

/** Spellings that some comparison takes for the same word. */
const spellings = (word: string): readonly string[] => [
  word,
  word.toUpperCase(),
  word[0]!.toUpperCase() + word.slice(1),
  word.slice(0, -1) + word.at(-1)!.toUpperCase(),
]

/** A request about a thread, the id in its body. */
const inBody = (path: string, threadId: unknown): RawRequest => ({
  target: `${BASE}/${path}`,
  body: JSON.stringify({ ...runInput(threadId), type: 'x', payload: {} }),
})

/** The requests about a thread whose id is in the path. */
const inPath = (id: string): readonly RawRequest[] => [
  { target: `${BASE}/threads/${id}/messages` },
  { target: `${BASE}/threads/${id}/events` },
  { target: `${BASE}/threads/${id}/state` },
  { method: 'POST', target: `${BASE}/threads/${id}/archive` },
  { method: 'POST', target: `${BASE}/agent/default/stop/${id}` },
]

void test('no word of the route table is missing from the words', (t) => {
  const literals = ROUTES.flatMap((route) => route.path.filter((word) => !word.startsWith(':')))
  for (const word of literals) t.ok(ROUTE_WORDS.has(word), word)
  t.end()
})

void testEachPair('as a thread id in a body: refused, and nothing is claimed', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, events(), { pair, policy: OPEN_POLICY })
  for (const word of ROUTE_WORDS) {
    for (const id of spellings(word)) {
      for (const path of BODY_ROUTES) {
        const answer = await gateway.ask({ ...inBody(path, id), token: alice })
        t.match(answer, { status: 400, body: '"code":"thread-id-invalid"' }, `${path} ${id}`)
      }
    }
  }
  for (const id of [
    'threads/clear',
    '../clear',
    'clear ',
    ' clear',
    'clear.',
    'clear\u0000',
    'clear\n',
    'clear#',
    'clear?',
    'ｃlear',
    'cle\u00adar',
    '%63lear',
    ['clear'],
    { clear: 1 },
    '',
    null,
    0,
    true,
  ]) {
    // oxfmt-ignore
    for (const path of BODY_ROUTES) {
      const answer = await gateway.ask({ ...inBody(path, id), token: alice })
      t.match(answer, { status: 400, body: '"code":"thread-id-invalid"' }, `${path} ${JSON.stringify(id)}`)
    }
  }
  t.equal(upstream.beginnings(), 0)
  t.same(rows(gateway.folder), [])
})

void testUnbridged('as a thread id in a path: refused, whoever asks and whatever the policy opens', async (t, pair) => {
  const { client } = pair
  const { gateway, upstream, olga } = await gated(t, undefined, { pair, policy: OPEN_POLICY })
  for (const word of ROUTE_WORDS) {
    for (const id of spellings(word)) {
      for (const request of inPath(id)) {
        const answer = await gateway.ask({ ...request, token: olga })
        t.match(answer, { status: 400, body: '"code":"thread-id-invalid"' }, request.target)
      }
      // Where a fixed path has the same length it wins, for every method (runtime-behaviour.md, "Targets and ids"): it has no such method, then.
      const fixed = ROUTES.some((route) => route.path.join('/') === `threads/${id}`)
      for (const method of ['PATCH', 'DELETE']) {
        const answer = await gateway.ask({ method, target: `${BASE}/threads/${id}`, token: olga, body: '{"name":"n"}' })
        t.equal(answer.status, fixed ? 405 : 400, `${method} threads/${id}`)
      }
    }
    const hidden = `%${word.charCodeAt(0).toString(16)}${word.slice(1)}`
    for (const request of inPath(hidden)) {
      const answer = await gateway.ask({ ...request, token: olga })
      // The envelope of a stop has no path: there the encoded word is an id that is none.
      const inParams = client === 'single-route' && request.target.includes('/stop/')
      const code = inParams ? 'thread-id-invalid' : 'target-malformed'
      t.match(answer, { status: 400, body: `"code":"${code}"` }, request.target)
    }
  }
  t.equal(upstream.beginnings(), 0)
  t.same(rows(gateway.folder), [])
})

void testUnbridged('as an agent id: refused before the thread beside it is claimed', async (t, pair) => {
  const { gateway, upstream, olga } = await gated(t, events(), { pair, policy: OPEN_POLICY })
  const names = Object.getOwnPropertyNames(Object.prototype).filter((name) => /^[a-z]/i.test(name))
  const ids = [...ROUTE_WORDS].flatMap(spellings).filter((id) => id !== 'agent')
  for (const id of [...ids, ...names]) {
    for (const path of ['run', 'connect', 'suggest']) {
      const answer = await gateway.ask({ ...inBody(`agent/${id}/${path}`, 't1'), token: olga })
      t.match(answer, { status: 400, body: '"code":"agent-id-invalid"' }, `agent/${id}/${path}`)
    }
    const list = await gateway.ask({ target: `${BASE}/threads?agentId=${id}`, token: olga })
    t.match(list, { status: 400, body: '"code":"agent-id-invalid"' }, `list of ${id}`)
  }
  t.equal(upstream.beginnings(), 0)
  t.same(rows(gateway.folder), [])
})

void testEachPair('as a memory id: refused', async (t, pair) => {
  const { gateway, upstream, olga } = await gated(t, undefined, { pair, policy: OPEN_POLICY })
  for (const id of [...ROUTE_WORDS].flatMap(spellings)) {
    const fixed = ROUTES.some((route) => route.path.join('/') === `memories/${id}`)
    const answer = await gateway.ask({ method: 'DELETE', target: `${BASE}/memories/${id}`, token: olga })
    t.equal(answer.status, fixed ? 405 : 400, id)
  }
  t.equal(upstream.beginnings(), 0)
})

void testEachPair('ids that only hold such a word are ids like others, and so is the agent called agent', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, events(), { pair })
  const ids = ['clear-1', 'information', 'my.info', 'threads2', 'a:clear', 'run_', 'stop-agent']
  for (const id of ids) {
    t.equal((await gateway.ask({ ...inBody('agent/agent/run', id), token: alice })).status, 200, id)
    t.equal((await gateway.ask({ target: `${BASE}/threads/${id}/messages`, token: alice })).status, 200, id)
  }
  t.same(
    owners(gateway.folder),
    [...ids].sort().map((id) => `${id}=corp:alice`),
  )
  t.same(
    upstream.requests.filter(({ method }) => method === 'POST').map(({ target, json }) => [target, (json as { threadId: string }).threadId]), // oxfmt-ignore
    ids.map((id) => [`${BASE}/agent/agent/run`, id]),
  )
})
