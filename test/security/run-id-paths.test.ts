/**
 * A run id that is a path. The LangGraph SDK writes it unencoded into `POST /threads/OWN/runs/{runId}/cancel` when a run is
 * stopped or a suggestion is left, with the runtime's own credentials: `../../OTHER/runs/R` ended another user's run through
 * this gateway until it looked at run ids, and `../../OTHER/copy#` copied a thread (client-side path traversal, CWE-22;
 * test/security/langgraph.test.ts shows it at a real server).
 */
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { owners } from '../../testing/support/rows.ts'

const BASE = '/api/copilotkit'

const HOSTILE: readonly unknown[] = [
  '../../other/runs/r1',
  '../../other/copy#',
  '..',
  '.',
  '../..',
  '..%2f..%2fother',
  '%2e%2e',
  'r1/../../other',
  'r1?x=1',
  'r1#x',
  'r1/cancel',
  'r1\\..\\other',
  '/r1',
  'r1/',
  'r1.',
  ' r1',
  'r1 ',
  'r1\n',
  'r1\u0000',
  'ｒ１',
  'r1;x',
  '',
  'a'.repeat(129),
  1,
  true,
  {},
  { toString: 'r1' },
  ['r1'],
  [],
]

void testEachPair('a run id that is no plain name reaches nothing, in any place', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  for (const id of HOSTILE) {
    for (const route of ['run', 'connect', 'suggest']) {
      for (const key of ['runId', 'parentRunId']) {
        const body = JSON.stringify({ ...runInput('t1'), [key]: id })
        const answer = await gateway.ask({ target: `${BASE}/agent/default/${route}`, token: alice, body })
        t.match(answer, { status: 400, body: '"code":"body-malformed"' }, `${route} ${key} ${JSON.stringify(id)}`)
      }
    }
  }
  t.equal(upstream.beginnings(), 0)
  t.same(owners(gateway.folder), [], 'nothing was claimed')

  await gateway.ask({ target: `${BASE}/agent/default/run`, token: alice, body: JSON.stringify(runInput('t1')) })
  for (const id of HOSTILE) {
    const target = `${BASE}/agent/default/stop/t1`
    const answer = await gateway.ask({ target, token: alice, body: JSON.stringify({ runId: id }) })
    t.match(answer, { status: 400, body: '"code":"body-malformed"' }, `stop ${JSON.stringify(id)}`)
  }
  for (const id of HOSTILE) {
    // The runtime writes it into a path of the managed platform: `..` would leave the route.
    const body = JSON.stringify({ threadId: 't1', type: 'like', payload: {}, clientEventId: id })
    const answer = await gateway.ask({ target: `${BASE}/annotate`, token: alice, body })
    t.match(answer, { status: 400, body: '"code":"body-malformed"' }, `annotate ${JSON.stringify(id)}`)
  }
  t.equal(upstream.beginnings(), 1, 'the honest run alone')
  const like = JSON.stringify({ threadId: 't1', type: 'like', payload: {}, clientEventId: crypto.randomUUID() })
  t.equal((await gateway.ask({ target: `${BASE}/annotate`, token: alice, body: like })).status, 200)
})

void testEachPair('the run ids that clients make pass as they are', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  const ids = ['r1', crypto.randomUUID(), crypto.randomUUID().toUpperCase(), 'run_01HX.a:b-c', 'a'.repeat(128)]
  for (const runId of ids) {
    const body = JSON.stringify({ ...runInput('t1'), runId, parentRunId: runId })
    t.equal((await gateway.ask({ target: `${BASE}/agent/default/run`, token: alice, body })).status, 200, runId)
  }
  const without = JSON.stringify({ ...runInput('t1'), runId: undefined, parentRunId: null })
  t.equal((await gateway.ask({ target: `${BASE}/agent/default/run`, token: alice, body: without })).status, 200)
  const sent = upstream.requests.map((request) => request.json as { runId?: unknown; parentRunId?: unknown })
  t.strictSame(
    sent.map((body) => [body.runId, body.parentRunId]),
    [...ids.map((id) => [id, id]), [undefined, null]],
  )
})
