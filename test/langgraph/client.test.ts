/** The client of the LangGraph SDK lives its normal life before the gateway, on a real server. */
import tap, { test } from 'tap'
import { sayOnFailure } from '../../testing/support/decided.ts'
import { until } from '../../testing/support/until.ts'
import { GRAPH_ID, startLangGraphScene, type Client, type StreamPart, type Thread } from './scene.ts'

const scene = await startLangGraphScene()
tap.teardown(() => scene.close())
const [aliceToken, bobToken] = await Promise.all([scene.signIn('alice'), scene.signIn('bob')])
const alice = scene.client(aliceToken)
const bob = scene.client(bobToken)
/** Asks the server itself, as the gateway does. */
const direct = scene.client()

const say = (content: string): object => ({ input: { messages: [{ type: 'human', content }] } })

async function all(stream: AsyncIterable<StreamPart>): Promise<readonly StreamPart[]> {
  const parts: StreamPart[] = []
  for await (const part of stream) parts.push(part)
  return parts
}

/** The last text in a state. */
function lastOf(values: unknown): string {
  const { messages = [] } = values as { messages?: readonly { content: string }[] }
  return messages.at(-1)?.content ?? ''
}

async function statusOf(asked: () => Promise<unknown>): Promise<number> {
  try {
    await asked()
    return 200
  } catch (error) {
    return (error as { status?: number }).status ?? 0
  }
}

void test('create, stream, wait, list, join and join again after an event', async (t) => {
  sayOnFailure(t, scene.gateway)
  const { thread_id } = await alice.threads.create({ metadata: { title: 'first' } })
  t.match(await direct.threads.get(thread_id), { metadata: { title: 'first' } }, 'the server has it under the same id')
  const parts = await all(alice.runs.stream(thread_id, GRAPH_ID, { ...say('hello'), streamMode: ['values', 'updates'] }))
  t.match(new Set(parts.map(({ event }) => event)), new Set(['metadata', 'values', 'updates']))
  t.match(lastOf(await alice.runs.wait(thread_id, GRAPH_ID, say('again'))), /"identity"/)
  const run = await alice.runs.create(thread_id, GRAPH_ID, { ...say('in the background'), streamResumable: true })
  t.equal(run.thread_id, thread_id)
  const first = await all(alice.runs.joinStream(thread_id, run.run_id, { lastEventId: '-1' }))
  t.ok(first.length > 1, 'the events of a resumable run from its beginning')
  const [begin] = first
  const later = await all(alice.runs.joinStream(thread_id, run.run_id, { lastEventId: begin?.id }))
  t.same(later, first.slice(1), 'and those after the last that a client had')
  t.match(await alice.runs.join(thread_id, run.run_id), { messages: Array })
  t.equal((await alice.runs.list(thread_id)).length, 3)
  t.match(await alice.runs.get(thread_id, run.run_id), { run_id: run.run_id, thread_id, status: 'success' })
  t.match(await alice.threads.getState(thread_id), { values: { ran: Array } })
  for (const asked of [
    () => bob.threads.get(thread_id),
    () => bob.threads.getState(thread_id),
    () => bob.threads.getHistory(thread_id),
    () => bob.threads.copy(thread_id),
    () => bob.runs.list(thread_id),
    () => bob.runs.get(thread_id, run.run_id),
    () => bob.runs.join(thread_id, run.run_id),
    () => all(bob.runs.joinStream(thread_id, run.run_id, { lastEventId: '-1' })),
    () => bob.runs.wait(thread_id, GRAPH_ID, say('me, too')),
    () => bob.threads.create({ threadId: thread_id, ifExists: 'do_nothing' }),
    () => bob.threads.update(thread_id, { metadata: { title: 'theirs' } }),
    () => bob.threads.updateState(thread_id, { values: { role: 'admin' } }),
    () => bob.threads.delete(thread_id),
  ]) {
    t.equal(await statusOf(asked), 403, String(asked))
  }
  t.match(await alice.threads.get(thread_id), { metadata: { title: 'first' } })
})

void test("a run is joined, got, cancelled or deleted below no thread but its own, which the server's stream would allow", async (t) => {
  sayOnFailure(t, scene.gateway)
  const theirs = await bob.threads.create()
  const run = await bob.runs.create(theirs.thread_id, GRAPH_ID, { ...say('the secret of bob'), streamResumable: true })
  // Not by a join: if that comes before the first event, the server keeps no event for later.
  await until(async () => (await bob.runs.get(theirs.thread_id, run.run_id)).status === 'success')
  const mine = await alice.threads.create()
  const leaked = await all(direct.runs.joinStream(mine.thread_id, run.run_id, { lastEventId: '-1' }))
  t.match(JSON.stringify(leaked), 'the secret of bob', 'the server itself does not look at the thread')
  for (const asked of [
    () => all(alice.runs.joinStream(mine.thread_id, run.run_id, { lastEventId: '-1' })),
    () => alice.runs.join(mine.thread_id, run.run_id),
    () => alice.runs.get(mine.thread_id, run.run_id),
    () => alice.runs.cancel(mine.thread_id, run.run_id),
    () => alice.runs.delete(mine.thread_id, run.run_id),
  ]) {
    t.equal(await statusOf(asked), 404)
  }
  t.match(await bob.runs.get(theirs.thread_id, run.run_id), { status: 'success' })
})

void test('interrupt and resume, a history, a branch from a checkpoint, and a state that the user changes', async (t) => {
  sayOnFailure(t, scene.gateway)
  const { thread_id } = await alice.threads.create()
  await alice.runs.wait(thread_id, GRAPH_ID, say('this needs approval'))
  const [waiting] = (await alice.threads.getState(thread_id)).tasks
  t.match(waiting?.interrupts, [{ value: { message: 'May it be done?' } }])
  t.match(await alice.threads.search({ status: 'interrupted', ids: [thread_id] }), [{ thread_id }])
  const resumed = await alice.runs.wait(thread_id, GRAPH_ID, { command: { resume: 'yes' } })
  t.equal(lastOf(resumed), 'the answer is "yes"')
  const history = await alice.threads.getHistory(thread_id)
  t.ok(history.length > 3)
  const earlier = history.find(({ next }) => next.includes('approve'))
  if (earlier === undefined) throw new Error('a history without the interrupt')
  t.equal(earlier.checkpoint['thread_id'], thread_id, 'the client sends it back as it came')
  t.match(await alice.threads.getState(thread_id, earlier.checkpoint), { next: ['approve'] })
  t.match(await alice.threads.getState(thread_id, earlier.checkpoint['checkpoint_id']), { next: ['approve'] })
  const branched = await alice.runs.wait(thread_id, GRAPH_ID, { ...say('another way'), checkpoint: earlier.checkpoint })
  t.match(JSON.stringify(branched), 'another way')
  t.notMatch(JSON.stringify(branched), 'the answer is', 'what came after the checkpoint is not in the branch')
  await alice.threads.updateState(thread_id, { values: { role: 'guest' }, asNode: 'answer' })
  t.match(await alice.threads.getState(thread_id), { values: { role: 'guest' } })
  const foreign = await bob.threads.create()
  t.equal(await statusOf(() => bob.threads.getState(foreign.thread_id, earlier.checkpoint)), 403)
  const elsewhere = { input: null, checkpoint: earlier.checkpoint }
  t.equal(await statusOf(() => bob.runs.wait(foreign.thread_id, GRAPH_ID, elsewhere)), 403, 'a checkpoint of another thread')
  const { thread_id: _thread, ...bare } = earlier.checkpoint
  t.same((await bob.threads.getState(foreign.thread_id, bare)).values, {}, 'the same point of the own thread has nothing')
})

void test('a command in the input of a run, which the server would carry out, reaches nothing', async (t) => {
  sayOnFailure(t, scene.gateway)
  const { thread_id } = await alice.threads.create()
  const input = { lg_name: 'Command', goto: 'administer' }
  t.match(lastOf(await direct.runs.wait(thread_id, GRAPH_ID, { input })), 'administered', 'the server itself carries it out')
  t.equal(await statusOf(() => alice.runs.wait(thread_id, GRAPH_ID, { input })), 403)
  t.equal(await statusOf(() => alice.runs.wait(thread_id, GRAPH_ID, { input: null, command: { goto: 'administer' } })), 403)
  t.equal((await alice.runs.list(thread_id)).length, 1)
})

void test('copy, update, cancel and delete', async (t) => {
  sayOnFailure(t, scene.gateway)
  const { thread_id } = await alice.threads.create()
  await alice.runs.wait(thread_id, GRAPH_ID, say('to be copied'))
  const copy = await alice.threads.copy(thread_id)
  t.not(copy.thread_id, thread_id)
  t.match(JSON.stringify((await alice.threads.getState(copy.thread_id)).values), 'to be copied')
  t.equal(await statusOf(() => bob.threads.get(copy.thread_id)), 403)
  await alice.threads.update(copy.thread_id, { metadata: { title: 'second', thread_id, graph_id: 'other' } })
  t.match(await alice.threads.get(copy.thread_id), { metadata: { title: 'second', graph_id: GRAPH_ID } })
  const run = await alice.runs.create(copy.thread_id, GRAPH_ID, say('go'))
  await alice.runs.cancel(copy.thread_id, run.run_id)
  await alice.runs.join(copy.thread_id, run.run_id)
  await alice.runs.delete(copy.thread_id, run.run_id)
  t.equal(await statusOf(() => alice.runs.get(copy.thread_id, run.run_id)), 404)
  await alice.threads.delete(copy.thread_id)
  t.equal(await statusOf(() => alice.threads.get(copy.thread_id)), 403)
  t.equal(await statusOf(() => direct.threads.get(copy.thread_id)), 404)
  t.match(await alice.threads.get(thread_id), { thread_id }, 'what it was copied from stays')
})

const QUERIES: readonly object[] = [
  {},
  { limit: 2 },
  { limit: 2, offset: 1 },
  { limit: 2, offset: 5 },
  { sortBy: 'created_at', sortOrder: 'asc' },
  { sortBy: 'thread_id', sortOrder: 'desc', limit: 3 },
  { sortBy: 'updated_at', sortOrder: 'asc', offset: 2 },
  { sortBy: 'status' },
  { metadata: { kind: 'a' } },
  { metadata: { kind: 'a' }, limit: 1, offset: 1 },
  { metadata: { nested: { deep: true } } },
  { metadata: { kind: 'none' } },
  { status: 'idle' },
  { status: 'interrupted' },
  { values: { role: 'member' } },
  { select: ['thread_id', 'status'], sortBy: 'thread_id' },
  { select: ['metadata'], sortBy: 'thread_id' },
  { select: [], sortBy: 'thread_id' },
]

void test("a search has what the server itself says of the user's threads, and a count their number", async (t) => {
  sayOnFailure(t, scene.gateway)
  const carol = scene.client(await scene.signIn('olga'))
  t.same([await carol.threads.search(), await carol.threads.count()], [[], 0], 'no threads are not all threads')
  const own: string[] = []
  for (const metadata of [{ kind: 'a' }, { kind: 'a', nested: { deep: true, more: 1 } }, { kind: 'b' }, {}]) {
    own.push((await carol.threads.create({ metadata })).thread_id)
    await bob.threads.create({ metadata })
  }
  for (const [at, threadId] of own.entries()) {
    if (at === 3) continue
    await carol.runs.wait(threadId, GRAPH_ID, say(at === 2 ? 'this needs approval' : 'hello'))
  }
  const searched = async (client: Client, query: object): Promise<readonly Thread[] | number> => client.threads.search(query)
  for (const query of QUERIES) {
    t.same(await searched(carol, query), await searched(direct, { ...query, ids: own }), JSON.stringify(query))
  }
  const everybody = await direct.threads.search({ limit: 1000, select: ['thread_id'] })
  const foreign = everybody.map(({ thread_id }) => thread_id).filter((id) => !own.includes(id))
  t.ok(foreign.length > 4)
  t.same(await carol.threads.search({ ids: foreign }), [])
  t.same(await carol.threads.search({ ids: [...foreign, own[0]], select: ['thread_id'] }), [{ thread_id: own[0] }])
  for (const query of [{}, { metadata: { kind: 'a' } }, { status: 'interrupted' }, { metadata: { kind: 'none' } }]) {
    t.equal(
      await carol.threads.count(query),
      (await direct.threads.search({ ...query, ids: own, limit: 1000 })).length,
      JSON.stringify(query),
    )
  }
})

void test('assistants are read, and what is of all users is closed', async (t) => {
  sayOnFailure(t, scene.gateway)
  t.match(await alice.assistants.search(), [{ graph_id: GRAPH_ID }])
  t.equal(await statusOf(() => alice.store.searchItems([])), 403)
  t.equal(await statusOf(() => alice.runs.wait(null, GRAPH_ID, say('without a thread'))), 403)
  t.equal(await statusOf(() => alice.runs.create(null, GRAPH_ID, say('without a thread'))), 403)
  t.equal(await statusOf(() => all(alice.runs.stream(null, GRAPH_ID, say('without a thread')))), 403)
})

void test('a user who runs a thread of their own choice makes it by the run', async (t) => {
  sayOnFailure(t, scene.gateway)
  const threadId = crypto.randomUUID()
  t.equal(await statusOf(() => alice.runs.wait(threadId, GRAPH_ID, say('hello'))), 422)
  t.equal(await statusOf(() => alice.threads.get(threadId)), 403, 'what the server did not make is nobody’s')
  await bob.runs.wait(threadId, GRAPH_ID, { ...say('hello'), ifNotExists: 'create' })
  t.match(await bob.threads.get(threadId), { thread_id: threadId })
  t.equal(await statusOf(() => alice.threads.get(threadId)), 403)
  const { thread_id } = await direct.threads.create()
  for (const asked of [
    () => alice.threads.create({ threadId: thread_id, ifExists: 'do_nothing' }),
    () => alice.runs.wait(thread_id, GRAPH_ID, say('mine?')),
    () => alice.threads.get(thread_id),
  ]) {
    t.equal(await statusOf(asked), 403, 'a thread that the server has is taken by nobody')
  }
})
