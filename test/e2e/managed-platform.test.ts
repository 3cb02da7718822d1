/**
 * A runtime of the managed platform behind the gateway as it is deployed for it: runs, join tokens, lists, subscriptions and
 * deletions. The platform's API is closed: a stand-in for it answers the real runtime.
 */
import { test, type Test } from 'tap'
import { ChatCore } from '../../testing/support/chat-core.ts'
import { codeOf, runInput, type Reply } from '../../testing/support/client.ts'
import { AGENT, asked, LIST, newThread, page, SECRET, startManaged, type ManagedScene, type Person } from './managed-scene.ts'

const tokenIn = ({ json }: Reply): string => String((json as { joinToken?: unknown }).joinToken)

function idsIn({ json }: Reply): readonly string[] {
  return (json as { threads: { id: string }[] }).threads.map(({ id }) => id)
}

/** Nobody may keep an answer that opens a socket. */
function isSecret(t: Test, reply: Reply): void {
  t.match(reply.text, SECRET)
  t.equal(reply.headers.get('cache-control'), 'private, no-store')
}

void test('a run is answered with a join token, which only the thread’s owner gets', async (t) => {
  const scene = await startManaged(t)
  const info = await scene.ask('alice', '/info')
  t.match(info.json, { mode: 'intelligence', intelligence: { wsUrl: `${scene.platform.wsUrl}/client` } })
  const thread = newThread()
  const run = await scene.run('alice', thread)
  t.equal(run.status, 200)
  const realtime = { clientUrl: `${scene.platform.wsUrl}/client`, topic: `thread:${thread}` }
  t.match(run.json, { threadId: thread, runId: String, joinToken: SECRET, realtime })
  isSecret(t, run)
  const connect = await scene.ask('alice', '/agent/default/connect', { body: page(thread) })
  t.match(connect.json, { threadId: thread, joinToken: SECRET, realtime })
  isSecret(t, connect)

  const requests = await asked(scene, async () => {
    for (const [route, body] of Object.entries({ run: runInput(thread), connect: page(thread), suggest: page(thread) })) {
      const refused = await scene.ask('bob', `/agent/default/${route}`, { body })
      t.same([refused.status, codeOf(refused)], [403, 'not-owner'], route)
      t.notMatch(refused.text, SECRET)
    }
  })
  t.same(requests, [], 'nobody was asked for a token')
})

void test('connect to nothing is 204: from the platform, or without asking it', async (t) => {
  const scene = await startManaged(t)
  const thread = newThread()
  const connect = () => scene.ask('alice', '/agent/default/connect', { body: page(thread) })
  t.same(await asked(scene, async () => t.equal((await connect()).status, 204)), [], 'nobody owns it')
  await scene.run('alice', thread)
  scene.platform.threads.remove(thread)
  const requests = await asked(scene, async () => t.equal((await connect()).status, 204))
  t.match(requests, [{ method: 'POST', path: `/api/threads/${thread}/connect`, userId: 'corp:alice' }])
})

void test('each user subscribes to changes of their own', async (t) => {
  const scene = await startManaged(t)
  const { threads } = scene.platform
  const topic = async (who: Person, path: string) => {
    const reply = await scene.ask(who, path, { body: {} })
    isSecret(t, reply)
    return threads.redeem(tokenIn(reply))
  }
  for (const who of ['alice', 'bob'] as const) {
    const code = threads.joinCode(`corp:${who}`)
    t.equal(await topic(who, '/threads/subscribe'), `user_meta:${code}`)
    t.equal(await topic(who, '/memories/subscribe'), `user_meta:memories:${code}`)
    const list = await scene.ask(who, LIST)
    isSecret(t, list)
    t.match(list.json, { joinCode: code })
  }
})

void test('lists are the user’s own, page by page', async (t) => {
  const scene = await startManaged(t, { pageSize: 2 })
  const hers = await begin(scene, 'alice', 5)
  const his = await begin(scene, 'bob', 1)
  const requests = await asked(scene, async () => t.same(idsIn(await scene.ask('alice', LIST)), hers.toReversed()))
  t.equal(requests.length, 3, 'the platform’s cursors were followed')
  t.same(idsIn(await scene.ask('bob', LIST)), his)
  const seen: string[] = []
  let cursor = ''
  for (let pages = 1; pages <= 2; pages += 1) {
    const reply = await scene.ask('alice', `${LIST}&limit=3${cursor}`)
    seen.push(...idsIn(reply))
    const { nextCursor } = reply.json as { nextCursor: string | null }
    t.equal(nextCursor === null, pages === 2, 'and the gateway’s own, until nothing is left')
    t.equal((await scene.ask('bob', `${LIST}&limit=3&cursor=${nextCursor ?? ''}`)).status, 400, 'which is nobody else’s')
    cursor = `&cursor=${nextCursor ?? ''}`
  }
  t.same(seen, hers.toReversed())
})

async function begin(scene: ManagedScene, who: Person, count: number): Promise<string[]> {
  const threads = Array.from({ length: count }, newThread)
  for (const thread of threads) await scene.run(who, thread)
  return threads
}

void test('without userScoped nobody subscribes, and lists hold no codes', async (t) => {
  const scene = await startManaged(t)
  const [thread] = await begin(scene, 'alice', 1)
  const { base } = await scene.beside((ready) => ({
    ...ready,
    upstream: { ...(ready['upstream'] as object), userScoped: false },
  }))
  const list = await scene.ask('alice', LIST, {}, base)
  t.same(list.json, { threads: (list.json as { threads: unknown }).threads, nextCursor: null })
  t.same(idsIn(list), [thread])
  const requests = await asked(scene, async () => {
    for (const path of ['/threads/subscribe', '/memories/subscribe']) {
      const reply = await scene.ask('alice', path, { body: {} }, base)
      t.same([reply.status, codeOf(reply)], [403, 'not-allowed'])
    }
  })
  t.same(requests, [])
})

void test('verify lets nobody begin: the runtime answers 500 for a thread that the platform does not know', async (t) => {
  const scene = await startManaged(t)
  const { base } = await scene.beside((ready) => ({ ...ready, ownership: { unknownThread: 'verify' } }))
  const run = await scene.ask('alice', '/agent/default/run', { body: runInput(newThread()) }, base)
  t.same([run.status, codeOf(run)], [502, 'upstream-unusable'])
})

void test('a deletion reaches the platform with its body, and the thread is gone for everybody', async (t) => {
  const scene = await startManaged(t)
  const thread = newThread()
  await scene.run('alice', thread)
  const without = await scene.ask('alice', `/threads/${thread}`, { method: 'DELETE' })
  t.same([without.status, without.json], [400, { error: 'Invalid request body' }], 'in the words of the runtime')
  t.same(idsIn(await scene.ask('alice', LIST)), [thread], 'and it is still hers')
  t.equal((await scene.ask('alice', `/threads/${thread}/messages`)).status, 200)

  const requests = await asked(scene, async () => {
    const deleted = await scene.ask('alice', `/threads/${thread}`, { method: 'DELETE', body: AGENT })
    t.same([deleted.status, deleted.json], [200, { threadId: thread, deleted: true }])
  })
  t.match(requests, [{ method: 'DELETE', path: `/api/threads/${thread}`, userId: 'corp:alice', body: AGENT }])
  // A platform that forgets slowly: it still has what it said that it deleted.
  scene.platform.threads.create(thread, 'corp:alice', 'default')
  t.same(idsIn(await scene.ask('alice', LIST)), [])
  const after = await asked(scene, async () => {
    t.equal((await scene.ask('alice', '/agent/default/connect', { body: page(thread) })).status, 204)
    t.equal((await scene.ask('bob', '/agent/default/run', { body: runInput(thread) })).status, 403)
    t.equal((await scene.ask('bob', '/agent/default/connect', { body: page(thread) })).status, 403)
    t.equal((await scene.ask('bob', `/threads/${thread}/events`)).status, 404)
  })
  t.same(after, [])
})

void test('the real client, whose sockets go to the platform past the gateway', async (t) => {
  const scene = await startManaged(t)
  const open = async (who: Person) => {
    const chat = await ChatCore.open(scene.base, { token: scene.tokens[who], transport: 'rest' })
    t.teardown(() => chat.close())
    return chat
  }
  const [alice, bob] = await Promise.all([open('alice'), open('bob')])
  const thread = newThread()
  const said = [
    { role: 'user', text: 'hello' },
    { role: 'assistant', text: 'Echo: hello' },
  ]
  t.same(await alice.say(thread, 'hello'), said)
  t.same(await (await open('alice')).replay(thread), said, 'another page of hers')
  t.same(await (await open('alice')).replay(newThread()), [], 'a new conversation is no error')
  t.same([await alice.threads(), await bob.threads()], [[thread], []])
  t.same(alice.errors, [])

  t.same(await bob.replay(thread), [])
  t.match(bob.errors, [{ message: /REST connect request failed: .*not-owner/ }])
  const refused = { rename: 'Request failed: 403', archive: 'Request failed: 403' }
  t.match(await bob.change(thread), { ...refused, delete: 'Request failed: 403' })

  scene.platform.threads.lock(thread, 'corp:alice', 'another')
  await alice.say(thread, 'again')
  t.match(alice.errors, [{ code: 'agent_thread_locked' }])
  scene.platform.threads.unlock(thread, 'another')
  t.same(await alice.change(thread), { rename: 'done', archive: 'done', unarchive: 'done', delete: 'done' })
  t.same(await alice.threads(), [])
})
