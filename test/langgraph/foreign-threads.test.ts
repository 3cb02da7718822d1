/** Ways to another user's thread that the API of a LangGraph server has besides the thread id in the path: none leads there. */
import { test } from 'tap'
import { LANGGRAPH_CLOSED } from '../../src/core/route/langgraph-routes.ts'
import { call, codeOf } from '../../testing/support/client.ts'
import { GRAPH_ID, startLangGraphScene, type Run, type Thread } from './scene.ts'

void test('a user with threads of their own, and the thread of another', async (t) => {
  const { gateway, url, signIn, client, server, close } = await startLangGraphScene()
  t.teardown(close)
  const [alice, bob] = await Promise.all([signIn('alice'), signIn('bob')])
  const says = (content: string) => ({ messages: [{ role: 'user', content }] })
  const theirs = crypto.randomUUID()
  await client(alice).runs.wait(theirs, GRAPH_ID, { ifNotExists: 'create', input: says('the secret of alice') })
  await client(alice).threads.update(theirs, { metadata: { owner: 'alice' } })
  const own = crypto.randomUUID()
  await client(bob).runs.wait(own, GRAPH_ID, { ifNotExists: 'create', input: says('hello') })

  const asked = (path: string, body?: unknown, method?: string) =>
    call(`${url}${path}`, { token: bob, ...(body === undefined ? {} : { body }), ...(method === undefined ? {} : { method }) })
  const runs = (more: object) => asked(`/threads/${own}/runs/wait`, { assistant_id: GRAPH_ID, input: says('more'), ...more })
  const reason = () => gateway.lines.findLast((line) => typeof line['reason'] === 'string')?.['reason']
  const messagesIn = async (id: string): Promise<number> => {
    const { values } = await client().threads.getState(id)
    return (values['messages'] as readonly unknown[]).length
  }

  await t.test('a checkpoint of another thread', async (t) => {
    const checkpoint = { thread_id: theirs }
    for (const [path, body] of [
      [`/threads/${own}/state/checkpoint`, { checkpoint }],
      [`/threads/${own}/history`, { checkpoint }],
      [`/threads/${own}/history`, { before: { configurable: checkpoint } }],
      [`/threads/${own}/state`, { checkpoint, values: says('written') }],
      [`/threads/${own}/runs/wait`, { assistant_id: GRAPH_ID, checkpoint, input: says('branched') }],
    ] as const) {
      const answer = await asked(path, body)
      t.same([answer.status, codeOf(answer)], [403, 'not-owner'], path)
      t.equal(reason(), 'checkpoint-foreign', path)
    }
  })

  await t.test('a thread or a user in config.configurable', async (t) => {
    for (const configurable of [
      { thread_id: theirs },
      { checkpoint_id: crypto.randomUUID() },
      { user_id: 'corp:alice' },
      { langgraph_auth_user: { identity: 'corp:alice' } },
      { 'x-user-id': 'corp:alice' },
    ]) {
      const answer = await runs({ config: { configurable } })
      t.same([answer.status, codeOf(answer)], [403, 'not-allowed'], JSON.stringify(configurable))
      t.equal(reason(), 'configurable-not-allowed')
    }
  })

  await t.test('a command that skips nodes or writes the state', async (t) => {
    const before = await messagesIn(own)
    for (const command of [{ goto: 'administer' }, { update: { role: 'admin' } }, { resume: 'yes', goto: 'administer' }]) {
      const answer = await runs({ command, input: null })
      t.same([answer.status, codeOf(answer)], [403, 'not-allowed'])
      t.equal(reason(), 'command-not-allowed')
    }
    t.equal(await messagesIn(own), before, 'nothing ran')
  })

  await t.test('an option by which the server calls another address', async (t) => {
    const answer = await runs({ webhook: 'http://127.0.0.1:1/' })
    t.same([answer.status, codeOf(answer)], [403, 'not-allowed'])
    t.equal(reason(), 'run-option-not-allowed')
  })

  await t.test('metadata by which the server would find another graph or thread', async (t) => {
    const answer = await asked(`/threads/${own}`, { metadata: { graph_id: 'other', thread_id: theirs, title: 'T' } }, 'PATCH')
    t.equal(answer.status, 200)
    const { metadata } = await client().threads.get(own)
    t.match(metadata, { graph_id: GRAPH_ID, title: 'T' })
    t.notOk(metadata !== undefined && 'thread_id' in metadata)
  })

  await t.test('a copy of the thread, and a copy that another user made', async (t) => {
    t.equal(codeOf(await asked(`/threads/${theirs}/copy`, {})), 'not-owner')
    const copy = await client(alice).threads.copy(theirs)
    t.equal(codeOf(await asked(`/threads/${copy.thread_id}/state`)), 'not-owner')
    t.ok((await client(alice).threads.getState(copy.thread_id)).values)
  })

  await t.test('a run of the thread below the own one', async (t) => {
    const run: Run = await client(alice).runs.create(theirs, GRAPH_ID, { streamResumable: true, input: says('another secret') })
    let events = ''
    for await (const event of client(alice).runs.joinStream(theirs, run.run_id, { lastEventId: '-1' })) {
      events += JSON.stringify(event)
    }
    t.match(events, 'secret', 'its owner follows it')
    const path = `/threads/${own}/runs/${run.run_id}`
    for (const [target, method] of [
      [`${path}/stream`, 'GET'],
      [`${path}/join`, 'GET'],
      [path, 'GET'],
      [`${path}/cancel`, 'POST'],
    ] as const) {
      const answer = await asked(target, undefined, method)
      t.same([answer.status, codeOf(answer)], [404, 'not-found'], target)
      t.equal(reason(), 'run-unknown')
      t.notMatch(answer.text, 'secret')
    }
    const unchecked = await fetch(`${server.url}${path}/stream`, { headers: { 'last-event-id': '-1' } })
    t.match(await unchecked.text(), 'secret', 'the server itself streams it')
  })

  await t.test('a search by metadata, values or ids of the thread', async (t) => {
    for (const query of [{ metadata: { owner: 'alice' } }, { ids: [theirs] }, { ids: [] }, {}]) {
      const found = (await asked('/threads/search', query)).json as readonly Thread[]
      t.notOk(
        found.some(({ thread_id: id }) => id !== own),
        JSON.stringify(query),
      )
    }
    t.equal((await asked('/threads/count', { metadata: { owner: 'alice' } })).json, 0)
    t.equal((await asked('/threads/count', {})).json, 1)
  })

  await t.test('a thread that the server has and no user owns', async (t) => {
    const { thread_id: old } = await client().threads.create()
    const made = await asked('/threads', { thread_id: old, if_exists: 'do_nothing' })
    t.ok([403, 409].includes(made.status), String(made.status))
    t.equal((await asked(`/threads/${old}/runs/wait`, { assistant_id: GRAPH_ID, input: says('mine?') })).status, 403)
    t.equal(reason(), 'thread-has-history')
    t.equal((await asked(`/threads/${old}`)).status, 403)
  })

  await t.test('routes that are not about a thread of the caller', async (t) => {
    for (const [method, path] of LANGGRAPH_CLOSED) {
      const target = `/${path.replaceAll(/:\w+/g, own)}`
      const answer = await asked(target, undefined, method === 'any' ? 'PUT' : method)
      t.same([answer.status, codeOf(answer)], [403, 'not-allowed'], target)
      t.equal(reason(), 'route-closed', target)
    }
  })
})
