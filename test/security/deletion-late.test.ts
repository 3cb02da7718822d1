/**
 * Attack: a deletion whose answer comes late, or that overtakes a run, leaves a tombstone where the upstream holds something
 * (CWE-362, CWE-367). The owner is locked out of the thread, and once the tombstone is forgotten by its age, the next user who
 * runs that id is its owner and reads what is there.
 */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore, gated, type Gated } from '../../testing/support/gated.ts'
import { head, openRaw } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'
import { events, json, startUpstream, type Answering } from '../../testing/support/upstream.ts'

/** An upstream whose answers to deletions the test gives, in their order; runs begin at once and end when the test says so. */
function playing() {
  const deletions: (() => void)[] = []
  const runs: ServerResponse[] = []
  const answering: Answering = (request, response) => {
    if (request.method === 'DELETE') {
      deletions.push(() => void json({})(request, response))
      return
    }
    if (request.method === 'GET') return json({ messages: [] })(request, response)
    runs.push(response)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
  }
  return { deletions, runs, answering }
}

/** Forgets every tombstone that may be forgotten, as retention does once its time has come. */
async function forget({ gateway }: Pick<Gated, 'gateway'>): Promise<number> {
  const store = await openSqliteStore(join(gateway.folder, 'ownership.db'))
  try {
    return await store.prune({ deletedBefore: Date.now() + 60_000 }, 100)
  } finally {
    await store.close()
  }
}

const run = ({ base }: Gated, token: string) => call(`${base}/agent/default/run`, { token, body: runInput('t1') })
const remove = ({ base }: Gated, token: string) => call(`${base}/threads/t1`, { method: 'DELETE', token })
const read = ({ base }: Gated, token: string) => call(`${base}/threads/t1/messages`, { token })

/** A gateway on which t1 is alice's, with a run that is over. */
async function scene(t: Test) {
  const upstream = playing()
  const gate = await gated(t, events())
  t.equal((await run(gate, gate.alice)).status, 200)
  gate.upstream.answer(upstream.answering)
  return { ...gate, ...upstream }
}

void test('a late answer to a deletion buries nothing that was deleted again and revived meanwhile', async (t) => {
  const gate = await scene(t)
  const { alice, bob, deletions, runs } = gate
  const late = remove(gate, alice)
  await until(() => deletions.length === 1)
  const second = remove(gate, alice)
  await until(() => deletions.length === 2)
  deletions[1]!()
  await second
  const revived = run(gate, alice)
  await until(() => runs.length === 1)
  runs[0]!.end()
  t.equal((await revived).status, 200)
  deletions[0]!()
  await late
  t.equal((await read(gate, alice)).status, 200, 'its owner has it')
  t.equal(await forget(gate), 0)
  t.same([(await run(gate, bob)).status, (await read(gate, bob)).status], [403, 403])
})

void test('a deletion that a run has overtaken buries nothing', async (t) => {
  const gate = await scene(t)
  const { alice, bob, deletions, runs } = gate
  const late = remove(gate, alice)
  await until(() => deletions.length === 1)
  const overtaking = run(gate, alice)
  await until(() => runs.length === 1)
  runs[0]!.end()
  await overtaking
  deletions[0]!()
  await late
  t.equal((await read(gate, alice)).status, 200)
  t.equal(await forget(gate), 0)
  t.equal((await run(gate, bob)).status, 403)
})

void test('a thread that is deleted while a run is executing is never another’s: the run may write to it afterwards', async (t) => {
  const gate = await scene(t)
  const { alice, bob, deletions, runs } = gate
  const executing = run(gate, alice)
  await until(() => runs.length === 1)
  const removed = remove(gate, alice)
  await until(() => deletions.length === 1)
  deletions[0]!()
  await removed
  runs[0]!.end()
  await executing
  t.equal(await forget(gate), 0)
  const stolen = await run(gate, bob)
  t.same([stolen.status, codeOf(stolen)], [403, 'not-owner'])
})

void test('nor is one whose run ended between the deletion and its answer: it may have written behind it', async (t) => {
  const gate = await scene(t)
  const { alice, bob, deletions, runs } = gate
  const executing = run(gate, alice)
  await until(() => runs.length === 1)
  const removed = remove(gate, alice)
  await until(() => deletions.length === 1)
  runs[0]!.end()
  await executing
  deletions[0]!()
  await removed
  t.equal(await forget(gate), 0)
  t.equal((await run(gate, bob)).status, 403)
})

void test('nor is one whose caller left a run: nobody knows when that ends', async (t) => {
  const gate = await scene(t)
  const { alice, bob, deletions, runs } = gate
  const leaving = await openRaw(gate.gateway.url)
  const body = JSON.stringify(runInput('t1'))
  const lines = ['Host: a', `Authorization: Bearer ${alice}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
  leaving.write(head('POST /api/copilotkit/agent/default/run HTTP/1.1', ...lines) + body)
  await leaving.until('RUN_STARTED')
  leaving.destroy()
  await until(() => runs[0]!.destroyed)
  const removed = remove(gate, alice)
  await until(() => deletions.length === 1)
  deletions[0]!()
  await removed
  t.equal(await forget(gate), 0)
  t.equal((await run(gate, bob)).status, 403)
})

void test('nor one with a run of another gateway on the store', async (t) => {
  const gate = await scene(t)
  const { alice, bob, deletions, runs } = gate
  const other = await gateBefore(t, gate.upstream.url, { shared: gate.gateway.folder, signer: gate.signer })
  const executing = run(other, alice)
  await until(() => runs.length === 1)
  const removed = remove(gate, alice)
  await until(() => deletions.length === 1)
  deletions[0]!()
  await removed
  runs[0]!.end()
  await executing
  t.equal(await forget(gate), 0)
  t.equal((await run(gate, bob)).status, 403)
})

const suggest = ({ base }: Gated, token: string) => call(`${base}/agent/default/suggest`, { token, body: runInput('t1') })
const annotate = ({ base }: Gated, token: string) =>
  call(`${base}/annotate`, { token, body: { threadId: 't1', type: 'user_action', payload: {} } })

for (const [what, ask] of [
  ['a suggestion', suggest],
  ['an annotation', annotate],
] as const) {
  void test(`nor is one that is deleted beside ${what}: some agents write that to the thread as they do a run`, async (t) => {
    const gate = await scene(t)
    const { alice, bob, deletions, runs } = gate
    const executing = ask(gate, alice)
    await until(() => runs.length === 1)
    const removed = remove(gate, alice)
    await until(() => deletions.length === 1)
    deletions[0]!()
    await removed
    runs[0]!.end()
    await executing
    t.equal(await forget(gate), 0)
    t.equal((await run(gate, bob)).status, 403)
  })
}

void test('nor is one for which its owner asks a suggestion afterwards, here or at another gateway', async (t) => {
  for (const elsewhere of [false, true]) {
    const gate = await scene(t)
    const { alice, bob, deletions, runs } = gate
    const removed = remove(gate, alice)
    await until(() => deletions.length === 1)
    deletions[0]!()
    await removed
    const other = elsewhere ? await gateBefore(t, gate.upstream.url, { shared: gate.gateway.folder, signer: gate.signer }) : gate
    const suggested = suggest(other, alice)
    await until(() => runs.length === 1)
    runs[0]!.end()
    t.equal((await suggested).status, 200)
    t.equal(await forget(gate), 0)
    t.equal((await run(gate, bob)).status, 403)
  }
})

void test('nor is one of a scope that another upstream has too: that one may hold it still', async (t) => {
  const agent = await startUpstream(events({ type: 'MESSAGES_SNAPSHOT', messages: ['a secret of alice'] }))
  t.teardown(() => agent.close())
  const agents = { research: { url: agent.url, path: '/awp', scope: 'upstream' } }
  const gate = await gated(t, (request, response) => (request.method === 'DELETE' ? json({}) : events())(request, response), {
    config: { agents },
  })
  const atAgent = (token: string) => call(`${gate.gateway.url}/agents/research`, { token, body: runInput('t1') })
  t.equal((await run(gate, gate.alice)).status, 200)
  t.equal((await atAgent(gate.alice)).status, 200)
  t.equal((await remove(gate, gate.alice)).status, 200)
  t.equal(await forget(gate), 0)
  const stolen = await atAgent(gate.bob)
  t.same([stolen.status, codeOf(stolen)], [403, 'not-owner'])
})

void test('a thread whose runs are over is forgotten after its deletion, and its id is free', async (t) => {
  const gate = await scene(t)
  const { alice, bob, deletions, runs } = gate
  const removed = remove(gate, alice)
  await until(() => deletions.length === 1)
  deletions[0]!()
  t.equal((await removed).status, 200)
  t.equal((await run(gate, bob)).status, 403, 'not before it is forgotten')
  t.equal(await forget(gate), 1)
  const taken = run(gate, bob)
  await until(() => runs.length === 1)
  runs[0]!.end()
  t.equal((await taken).status, 200)
})
