/** /info where lists come from the table: each client is told, where it looks, that it may ask for lists and change threads. */
import { test } from 'tap'
import { codeOf } from '../../testing/support/client.ts'
import { PAIRS } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { NONE, unlisted, withoutLists } from '../../testing/support/unlisted.ts'
import { json } from '../../testing/support/upstream.ts'

const SERVED = { ...NONE, list: true, mutations: true }
const INFO = { version: '1.75.0', agents: { default: { name: 'default' } }, mode: 'sse' }

/** What a runtime without lists says of itself, by its transport. */
const SAYS = {
  'multi-route': { ...INFO, threadEndpoints: NONE },
  'single-route': { ...INFO, threadEndpoints: NONE, singleRoute: { resourceOperations: true, threadEndpoints: NONE } },
} as const

/** The same where the table serves, by the client's transport. */
const TOLD = {
  'multi-route': { ...INFO, threadEndpoints: SERVED },
  'single-route': { ...INFO, threadEndpoints: NONE, singleRoute: { resourceOperations: true, threadEndpoints: SERVED } },
} as const

for (const lists of ['table', 'auto'] as const) {
  void testEachPair(`${lists}: a runtime without lists gets them added`, async (t, pair) => {
    const { client, upstream } = pair
    const says = json(SAYS[upstream])
    const { base, call, alice } = await unlisted(t, lists, { pair, answering: says, questions: says })
    t.strictSame((await call(`${base}/info`, { token: alice })).json, TOLD[client])
  })

  void testEachPair(`${lists}: so does one of 1.54, which speaks of no endpoints`, async (t, pair) => {
    const { client } = pair
    const old = json({ version: '1.54.1', agents: {}, mode: 'sse' })
    const { base, call, alice } = await unlisted(t, lists, { pair, answering: old, questions: old })
    t.match((await call(`${base}/info`, { token: alice })).json, {
      version: '1.54.1',
      ...(client === 'multi-route'
        ? { threadEndpoints: SERVED }
        : { singleRoute: { resourceOperations: true, threadEndpoints: SERVED } }),
    })
  })
}

void testEachPair(
  'before a single-route runtime without the tunnel the table answers all that it can, and asks nothing',
  async (t, pair) => {
    const old = json({ version: '1.54.1', agents: { default: {} }, mode: 'sse' })
    const { base, call, run, ids, change, alice, bob, asked, gateway } = await unlisted(t, 'auto', { pair, questions: old })
    await run(alice, 'a1', 'a2')
    t.strictSame(await ids(alice), ['a2', 'a1'])
    t.match((await change(alice, 'PATCH', 'a1', { name: 'x' })).json, { id: 'a1', name: 'x' })
    t.strictSame((await change(alice, 'POST', 'a1/archive')).json, { threadId: 'a1', archived: true })
    t.equal((await change(bob, 'DELETE', 'a1')).status, 403)
    t.strictSame((await change(alice, 'DELETE', 'a1')).json, { threadId: 'a1', deleted: true })
    t.equal((await change(alice, 'PATCH', 'a2', { name: 5 })).status, 404, 'what the table can’t do is not there')
    const { text } = await call(`${gateway.healthUrl}/metrics`)
    t.match(text, /threadwarden_decisions_total{[^}]*reason="upstream-lacks-route"[^}]*} 1/, 'it is refused, and counted so')
    t.notMatch(text, /threadwarden_upstream_errors_total{/, 'the upstream is not to blame')
    t.equal((await call(`${base}/threads/a2/messages`, { token: alice })).status, 404, 'nor is what it has not')
    t.strictSame(asked(), [])
  },
  PAIRS.filter(({ upstream }) => upstream === 'single-route'),
)

void test('auto: a runtime that has lists is believed, and its /info passes as it is', async (t) => {
  const says = json({ ...INFO, threadEndpoints: { ...NONE, list: true, inspect: true } })
  const { base, call, alice } = await unlisted(t, 'auto', { answering: says, questions: says })
  const answer = await call(`${base}/info`, { token: alice })
  t.strictSame(answer.json, { ...INFO, threadEndpoints: { ...NONE, list: true, inspect: true } })
})

void test('auto: an upstream that has told the gateway nothing is believed by what it tells the caller', async (t) => {
  const { base, call, alice, upstream } = await unlisted(t, 'auto')
  t.match((await call(`${base}/info`, { token: alice })).json, { threadEndpoints: SERVED }, 'no lists: its 422 is answered here')
  upstream.answer(json({ ...INFO, threadEndpoints: { ...NONE, list: true } }))
  t.match((await call(`${base}/info`, { token: alice })).json, { threadEndpoints: { ...NONE, list: true } })
  upstream.answer(json(INFO))
  t.strictSame((await call(`${base}/info`, { token: alice })).json, INFO, 'nothing is made up')
})

void test('table: what the upstream says of histories and of changes as they happen stays', async (t) => {
  const endpoints = { list: true, inspect: true, mutations: false, realtimeMetadata: true }
  const { base, call, alice, upstream } = await unlisted(t, 'table')
  upstream.answer(json({ ...INFO, threadEndpoints: endpoints }))
  t.match((await call(`${base}/info`, { token: alice })).json, { threadEndpoints: { ...endpoints, mutations: true } })
})

void test('table: what is no /info is no better for it', async (t) => {
  const { base, call, alice, upstream } = await unlisted(t, 'table')
  upstream.answer(json({ error: 'no' }, 500))
  t.strictSame((await call(`${base}/info`, { token: alice })).json, { error: 'no' })
  upstream.answer(json(['x']))
  t.equal((await call(`${base}/info`, { token: alice })).status, 502)
  upstream.answer(withoutLists)
  t.equal((await call(`${base}/info`, { token: alice })).status, 200)
})

void test('/info that is too long to be rewritten in one turn is unusable', async (t) => {
  const agents = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`agent-${at}`, {}]))
  const { base, call, alice } = await unlisted(t, 'table', { answering: json({ ...INFO, agents }), questions: json(INFO) })
  const answer = await call(`${base}/info`, { token: alice })
  t.same([answer.status, codeOf(answer)], [502, 'upstream-unusable'])
})
