/** Shared threads end to end: what a right opens and what it does not, on every route; lists; one switch for all of it. */
import { until } from '../../testing/support/until.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { BASE, BODY_ROUTES, codeIn, PATH_ROUTES, type ThreadRoute } from '../security/thread-routes.ts'
import { codeOf, runInput } from '../../testing/support/client.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { owners, rows } from '../../testing/support/rows.ts'
import { OWNERS_SHARE, sharing, type Sharing } from '../../testing/support/sharing.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'

/** What reading opens, and what writing opens besides; the rest stays with the owner. */
const READING = ['threads/messages', 'threads/events', 'threads/state', 'agent/connect']
const WRITING = [...READING, 'agent/run', 'agent/suggest', 'annotate', 'rename', 'agent/stop']

/** PATCH is a route of its own where it asks for what is the owner's. */
const ARCHIVING: readonly ThreadRoute[] = ['{"archived":true}', '{"archived":null}', '{"name":"n","archived":false}'].map(
  (body) => ({
    name: `PATCH ${body}`,
    to: (id) => ({ method: 'PATCH', target: `${BASE}/threads/${id}`, body }),
  }),
)
/** The gateway's own, which no envelope reaches. */
const OWN: readonly ThreadRoute[] = [
  { name: 'GET grants', to: (id) => ({ target: `${BASE}/threadwarden/threads/${id}/grants`, transport: 'multi-route' }) },
  {
    name: 'POST grants',
    to: (id) => ({
      target: `${BASE}/threadwarden/threads/${id}/grants`,
      body: '{"user":"corp:mallory","right":"write"}',
      transport: 'multi-route',
    }),
  },
  {
    name: 'DELETE grants',
    to: (id) => ({
      method: 'DELETE',
      target: `${BASE}/threadwarden/threads/${id}/grants`,
      // Somebody else's: whoever a thread was shared with takes back their own (leaving.test.ts).
      body: '{"user":"corp:carol"}',
      transport: 'multi-route',
    }),
  },
]
const ALL: readonly ThreadRoute[] = [...PATH_ROUTES, ...BODY_ROUTES, ...ARCHIVING, ...OWN]

/** The routes that pass for a caller, each of which has reached the upstream; of the others nothing has. */
async function open(gate: Sharing, token: string, threadId = 't1'): Promise<readonly string[]> {
  const passing: string[] = []
  for (const { name, to } of ALL) {
    const before = gate.upstream.beginnings()
    const answer = await gate.gateway.ask({ ...to(threadId), token })
    if (codeIn(answer) === undefined) passing.push(name)
    if ((codeIn(answer) === undefined) !== gate.upstream.beginnings() > before) throw new Error(`${name}: ${answer.status}`)
  }
  return passing.sort()
}

const sorted = (names: readonly string[]): readonly string[] => [...names].sort()

/** A new name is answered with the record of the thread, and everything else with a short stream. */
const answering: Answering = (request, response) => {
  const isRename = request.method === 'PATCH' || request.body.includes('"threads/update"')
  return (isRename ? json({ id: 't1' }) : events())(request, response)
}

/** What the upstream lists, whoever asks; everything else is answered as above. */
const listing = (...ids: readonly string[]): Answering => {
  const list = json({ threads: ids.map((id) => ({ id, name: id })) })
  return (request, response) =>
    (request.method === 'GET' && /\/threads(?:\?|$)/.test(request.target) ? list : answering)(request, response)
}

/** The threads in a caller's list. */
async function listOf({ base, call }: Sharing, token: string): Promise<readonly string[]> {
  const answer = await call(`${base}/threads`, { token })
  return (answer.json as { threads: readonly { id: string }[] }).threads.map(({ id }) => id)
}

void testEachPair('a right opens its routes and no others, to the grantee and to no other user', async (t, pair) => {
  const gate = await sharing(t, answering, { pair })
  const { alice, bob, signer, run, grants } = gate
  const [eve, mallory] = [
    signer.sign('eve', { groups: ['eng'] }),
    signer.sign('mallory', { groups: ['Eng', 'corp:eng', 'eng '] }),
  ]
  await run(alice)
  await run(alice, 't2')
  t.same(await open(gate, bob), [])
  await grants(alice, { user: 'corp:bob', right: 'read' })
  await grants(alice, { group: 'corp:eng', right: 'read' })
  t.same(await open(gate, bob), sorted(READING))
  t.same(await open(gate, eve), sorted(READING), 'by a group')
  await grants(alice, { user: 'corp:bob', right: 'write' })
  t.same(await open(gate, bob), sorted(WRITING))
  t.same(await open(gate, eve), sorted(READING))
  t.same(await open(gate, mallory), [], 'a group is called to the letter')
  t.same(await open(gate, signer.sign('eve')), [], 'whose token names the group no more is out')
  t.same(await open(gate, bob, 't2'), [], 'another thread is another thread')
  await grants(alice, { user: 'corp:bob' }, 'DELETE')
  await grants(alice, { group: 'corp:eng' }, 'DELETE')
  for (const token of [bob, eve]) t.same(await open(gate, token), [])
  t.same(owners(gate.gateway.folder), ['t1=corp:alice', 't2=corp:alice'], 'whose a thread is has not changed')
})

void test('of several grants the widest counts', async (t) => {
  const gate = await sharing(t, answering)
  const { alice, signer, run, grants } = gate
  const eve = signer.sign('eve', { groups: ['eng', 'ops'] })
  await run(alice)
  await grants(alice, { user: 'corp:eve', right: 'read' })
  await grants(alice, { group: 'corp:ops', right: 'write' })
  t.same(await open(gate, eve), sorted(WRITING))
  await grants(alice, { group: 'corp:ops' }, 'DELETE')
  t.same(await open(gate, eve), sorted(READING))
})

void test('a refusal to a guest looks like any other and shows no grant', async (t) => {
  const gate = await sharing(t, answering)
  const { alice, bob, gateway, run, grants, signer } = gate
  await run(alice)
  const stranger = signer.sign('stranger')
  await grants(alice, { user: 'corp:bob', right: 'read' })
  for (const { name, to } of ALL) {
    const [guest, other] = await Promise.all([bob, stranger].map((token) => gateway.ask({ ...to('t1'), token })))
    if (!READING.includes(name)) t.same([guest?.status, guest?.body], [other?.status, other?.body], name)
  }
})

void testEachPair('a shared thread stands in the list of whom it was granted to, as long as it is', async (t, pair) => {
  const gate = await sharing(t, listing('t1', 't2', 't3', 't4', 'nobodys'), { pair })
  const { alice, call, bob, base, signer, run, grants, operate } = gate
  const eve = signer.sign('eve', { groups: ['eng'] })
  for (const [token, threadId] of [
    [alice, 't1'],
    [alice, 't2'],
    [bob, 't3'],
    [alice, 't4'],
  ] as const) {
    await run(token, threadId)
  }
  const lists = async () => [await listOf(gate, alice), await listOf(gate, bob), await listOf(gate, eve)]
  t.same(await lists(), [['t1', 't2', 't4'], ['t3'], []])
  await grants(alice, { user: 'corp:bob', right: 'read' })
  await operate({ group: 'corp:eng', right: 'write' }, 'POST', 't4')
  t.same(await lists(), [['t1', 't2', 't4'], ['t1', 't3'], ['t4']])
  await operate({ user: 'corp:bob' }, 'DELETE')
  t.equal((await call(`${base}/threads/t4`, { method: 'DELETE', token: alice })).status, 200)
  t.same(await lists(), [['t1', 't2'], ['t3'], []], 'the end of a grant, and of the thread')
})

/** A stream that has begun and does not end by itself. */
const begun: Answering = (_request, response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')

void test('one switch changes access, lists and open streams together, and back', async (t) => {
  const gate = await sharing(t, listing('t1', 't3'))
  const { alice, call, bob, base, gateway, run, grants, upstream } = gate
  await run(alice)
  await run(bob, 't3')
  await grants(alice, { user: 'corp:bob', right: 'write' })
  const both = async () => [await listOf(gate, bob), await open(gate, bob)]
  t.same(await both(), [['t1', 't3'], sorted(WRITING)])
  upstream.answer(begun)
  const before = upstream.beginnings()
  const guests = call(`${base}/agent/default/connect`, { token: bob, body: runInput('t1') })
  const own = call(`${base}/agent/default/connect`, { token: bob, body: runInput('t3') })
  await upstream.arrived(before + 2)
  upstream.answer(listing('t1', 't3'))
  writeFileSync(`${gateway.file}.policy`, OWNERS_SHARE.replace('sharing: true', 'sharing: false'))
  t.match(await gateway.reload('test'), { outcome: 'reloaded' })
  t.same(await both(), [['t3'], []])
  t.match((await guests).text, /"type":"RUN_ERROR".*"code":"not-allowed"/)
  t.match((await grants(alice)).json, { grants: [{ user: 'corp:bob' }] }, 'what was granted is kept, and counts for nothing')
  writeFileSync(`${gateway.file}.policy`, OWNERS_SHARE)
  t.match(await gateway.reload('test'), { outcome: 'reloaded' })
  t.same(await both(), [['t1', 't3'], sorted(WRITING)])
  await gateway.stop(0)
  t.match((await own).text, 'shutting-down', 'the stream on the caller’s own thread went on')
})

void test('a guest’s run changes nothing of whose the thread is', async (t) => {
  const { alice, bob, gateway, run, grants } = await sharing(t)
  await run(alice)
  await grants(alice, { user: 'corp:bob', right: 'write' })
  const [before] = rows(gateway.folder)
  t.equal((await run(bob)).status, 200)
  t.same(rows(gateway.folder), [before])
})

void test('a guest’s run on a thread whose owner deletes it meanwhile does not bring it back', async (t) => {
  const gate = await sharing(t, answering)
  const { alice, call, bob, base, gateway, run, grants, upstream } = gate
  await run(alice)
  await grants(alice, { user: 'corp:bob', right: 'write' })
  let answerRun = (): void => {}
  upstream.answer((request, response) => {
    if (request.method === 'DELETE') return json({})(request, response)
    answerRun = () => void events({ type: 'RUN_FINISHED' })(request, response)
  })
  const before = upstream.beginnings()
  const guests = run(bob)
  await upstream.arrived(before + 1)
  t.equal((await call(`${base}/threads/t1`, { method: 'DELETE', token: alice })).status, 200)
  answerRun()
  t.equal((await guests).status, 403, 'it was begun, and its answer came when the grant was gone')
  t.match(rows(gateway.folder), [{ thread_id: 't1', user_id: 'corp:alice', deleted_at: Number, provisional: 0, pending: 0 }])
  const refused = await run(bob)
  t.same([refused.status, codeOf(refused)], [403, 'not-owner'])
  t.not(rows(gateway.folder)[0]?.deleted_at, null)
  upstream.answer(events())
  t.equal((await run(alice)).status, 200, 'its owner can')
  t.equal((await run(bob)).status, 403, 'and what was granted before is over')
})

void test('a guest’s run that does not start takes nothing from the owner', async (t) => {
  const { alice, bob, gateway, run, grants, upstream } = await sharing(t)
  await run(alice)
  await grants(alice, { user: 'corp:bob', right: 'write' })
  upstream.answer(json({ error: 'no' }, 400))
  t.equal((await run(bob)).status, 400)
  t.same(owners(gateway.folder), ['t1=corp:alice'])
  upstream.answer(events())
  t.equal((await run(bob)).status, 200)
})

void test('a guest’s limits count for the guest, and a thread that is shared is no new one', async (t) => {
  const { alice, bob, run, grants } = await sharing(t, events(), { config: { limits: { runs: '2/h', newThreads: '1/h' } } })
  const statuses = async (token: string, threadId?: string) => (await run(token, threadId)).status
  t.equal(await statuses(alice), 200)
  await grants(alice, { user: 'corp:bob', right: 'write' })
  // 2/h are four in two hours.
  for (let at = 0; at < 4; at += 1) t.equal(await statuses(bob), 200)
  t.equal(await statuses(bob), 429)
  t.equal(await statuses(alice), 200, 'the owner has had one run')
})

void test('a transfer takes the thread from its owner, and an assignment what was granted on it, too', async (t) => {
  const gate = await sharing(t, answering)
  const { alice, bob, gateway, signer, run, grants } = gate
  const carol = signer.sign('carol')
  await run(alice)
  await grants(alice, { user: 'corp:bob', right: 'write' })
  const store = await openSqliteStore(join(gateway.folder, 'ownership.db'))
  t.teardown(() => store.close())
  t.equal(await store.transfer('corp:alice', 'corp:carol', 10), 1)
  t.same(await open(gate, alice), [])
  t.same(await open(gate, bob), sorted(WRITING))
  t.match((await grants(carol)).json, { grants: [{ user: 'corp:bob', grantedBy: 'corp:alice' }] })
  await store.assign({ scope: '', threadId: 't1' }, 'corp:alice', Date.now())
  t.same(await open(gate, carol), [])
  t.same(await open(gate, bob), [])
  t.same((await grants(alice)).json, { grants: [] })
})

void test('under observe, grants are given and listed as they are where the gateway enforces', async (t) => {
  const all = await sharing(t, events(), { config: { enforcement: 'observe' } })
  const store = await openSqliteStore(join(all.gateway.folder, 'ownership.db'))
  await store.assign({ scope: '', threadId: 't1' }, 'corp:alice', 1)
  await store.close()
  const granted = async () => (await all.grants(all.alice)).status
  await until(async () => (await granted()) === 200)
  t.equal((await all.grants(all.alice, { user: 'corp:bob', right: 'read' })).status, 201)
  t.match((await all.grants(all.alice)).json, { grants: [{ user: 'corp:bob' }] })
  t.equal((await all.grants(all.bob, { user: 'corp:carol', right: 'read' })).status, 403)
})
