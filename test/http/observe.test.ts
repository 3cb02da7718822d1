/**
 * `enforcement: observe` (docs/contributing/invariants.md, 7): what rests on ownership alone passes and is written down, everything else is
 * refused as ever, and it says so everywhere.
 */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test } from 'tap'
import { startScene, type Scene } from '../reload/scene.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { rows } from '../../testing/support/rows.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'

const observing = (t: Parameters<typeof startScene>[0], changes = {}, policy?: string) =>
  startScene(t, { enforcement: 'observe', ...changes }, policy)

/** Who was seen with which thread. */
function observations(scene: Scene): readonly unknown[] {
  const database = new Database(join(scene.folder, 'ownership.db'), { readonly: true })
  try {
    return database.prepare('SELECT * FROM observations ORDER BY thread_id, user_id').all()
  } finally {
    database.close()
  }
}

/** Answers a run with a stream and everything else with JSON. */
const answering: Answering = (request, response) =>
  (request.target.endsWith('/run') || request.target.endsWith('/connect')
    ? events({ type: 'RUN_FINISHED' })
    : json({ messages: [], threads: [{ id: 't-1' }, { id: 't-2' }], joinCode: 'secret', nextCursor: 'theirs' }))(
    request,
    response,
  )

const decisions = ({ lines }: Scene) => lines.filter(({ msg }) => msg === 'request')

void test('it is said at start, in /readyz, in a metric and in the line of every request', async (t) => {
  const scene = await observing(t)
  t.match(
    scene.lines.filter(({ level, enforcement }) => level === 'warn' && enforcement !== undefined),
    [{ enforcement: 'observe', msg: /Threads are not protected/ }],
  )
  t.match(JSON.parse((await scene.health('/readyz')).text), { status: 'ready', notes: { enforcement: /not protected/ } })
  t.match((await scene.health('/metrics')).text, /threadwarden_observing 1\n/)
  await call(`${scene.base}/info`, { token: scene.token('alice') })
  await call(`${scene.base}/info`)
  await call(`${scene.base}/nowhere`, { token: scene.token('alice') })
  t.same(
    decisions(scene).map(({ enforcement }) => enforcement),
    ['observe', 'observe', 'observe'],
  )
  scene.write({ enforcement: 'enforce' })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  t.match((await scene.health('/metrics')).text, /threadwarden_observing 0\n/)
  t.notOk('notes' in JSON.parse((await scene.health('/readyz')).text))
})

void test('runs, connects, reads and changes of other people’s threads pass, and what enforcing would have refused is told', async (t) => {
  const scene = await observing(t)
  scene.upstream.answer(answering)
  const run = (subject: string) => call(`${scene.base}/agent/default/run`, { token: scene.token(subject), body: runInput('t-1') })
  t.equal((await run('alice')).status, 200)
  t.equal((await run('bob')).status, 200)
  const bob = scene.token('bob')
  t.equal((await call(`${scene.base}/threads/t-1/messages`, { token: bob })).status, 200)
  t.equal((await call(`${scene.base}/threads/t-1`, { method: 'DELETE', token: bob, body: {} })).status, 200)
  t.equal((await call(`${scene.base}/agent/default/connect`, { token: bob, body: runInput('never-seen') })).status, 200)
  t.equal((await call(`${scene.base}/threads/never-run/messages`, { token: bob })).status, 200)
  t.same(
    decisions(scene).map(({ route, reason, wouldRefuse }) => [route, reason, wouldRefuse]),
    [
      ['agent/run', 'permitted', undefined],
      ['agent/run', 'permitted', 'thread-foreign'],
      ['threads/messages', 'permitted', 'thread-foreign'],
      ['threads/update', 'permitted', 'thread-foreign'],
      ['agent/connect', 'permitted', undefined],
      ['threads/messages', 'permitted', 'thread-unknown'],
    ],
  )
  t.equal(scene.upstream.requests.length, 6, 'all of them reached the upstream, the connect too')
  const { text } = await scene.health('/metrics')
  t.match(text, /threadwarden_would_refuse_total\{route="agent\/run",reason="thread-foreign"\} 1\n/)
  t.match(text, /threadwarden_would_refuse_total\{route="threads\/messages",reason="thread-unknown"\} 1\n/)
})

void test('who uses which thread is noted where the upstream served it, and makes nobody an owner', async (t) => {
  const scene = await observing(t)
  scene.upstream.answer(answering)
  const read = (thread: string) => call(`${scene.base}/threads/${thread}/messages`, { token: scene.token('bob') })
  t.equal((await read('t-1')).status, 200)
  t.same(observations(scene), [], 'reading alone tells of nothing: ids are easily made up')
  await call(`${scene.base}/agent/default/run`, { token: scene.token('alice'), body: runInput('t-1') })
  await read('t-1')
  scene.upstream.answer(json({ error: 'no' }, 500))
  await call(`${scene.base}/agent/default/run`, { token: scene.token('bob'), body: runInput('t-2') })
  t.match(observations(scene), [
    { thread_id: 't-1', user_id: 'corp:alice', agent_id: 'default', ran: 1 },
    { thread_id: 't-1', user_id: 'corp:bob', agent_id: '', ran: 0 },
  ])
  t.equal(observations(scene).length, 2)
  t.same(rows(scene.folder), [])
  scene.upstream.answer(answering)
  await call(`${scene.base}/threads/t-1/messages`, { token: scene.token('bob') })
  t.match(decisions(scene).at(-1), { wouldRefuse: 'thread-foreign' }, 'who ran it first counts as its owner')
  scene.write({ enforcement: 'enforce', 'ownership.unknownThread': 'deny' })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  const enforced = await call(`${scene.base}/threads/t-1/messages`, { token: scene.token('alice') })
  t.same([enforced.status, codeOf(enforced)], [403, 'not-owner'])
})

void test('afterwards a thread that somebody was seen to run is not for others to claim, nor one of two for anybody', async (t) => {
  const policy = `version: 1
operators: [{ role: operator }]
rules:
  - { routes: [agent/run, agent/connect], allow: [signed-in], threads: [own, unknown] }
  - { routes: [agent/run, threads/messages], allow: [operator], threads: [own, foreign] }
`
  const scene = await observing(t, {}, policy)
  scene.upstream.answer(answering)
  const run = async (subject: string, thread: string, claims = {}) => {
    const reply = await call(`${scene.base}/agent/default/run`, { token: scene.token(subject, claims), body: runInput(thread) })
    return codeOf(reply) ?? reply.status
  }
  t.same([await run('alice', 'of-alice'), await run('alice', 'of-both'), await run('bob', 'of-both')], [200, 200, 200])
  scene.write({ enforcement: 'enforce' })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  t.match(
    scene.lines.filter(({ msg }) => String(msg).startsWith('threads were seen under')),
    [{ level: 'warn', threads: 2 }],
  )
  const before = scene.upstream.requests.length
  const operator = { role: 'operator' }
  t.same(
    [
      await run('bob', 'of-alice'),
      await run('olga', 'of-alice', operator),
      await run('alice', 'of-both'),
      await run('bob', 'of-both'),
    ],
    ['not-owner', 'not-owner', 'not-owner', 'not-owner'],
  )
  const read = await call(`${scene.base}/threads/of-alice/messages`, { token: scene.token('olga', operator) })
  t.equal(codeOf(read), 'not-owner')
  t.equal(scene.upstream.requests.length, before, 'nothing reaches upstream')
  t.same(rows(scene.folder), [])
  t.equal(await run('alice', 'of-alice'), 200, 'who was seen alone may claim it, as any new one')
  t.match(rows(scene.folder), [{ thread_id: 'of-alice', user_id: 'corp:alice' }])
  scene.write({ enforcement: 'enforce', 'ownership.unknownThread': 'deny' })
  await scene.gateway.reload('test')
  t.equal(await run('alice', 'of-both'), 'not-owner')
})

void test('rows that are there are gone by, and stay as they are', async (t) => {
  const scene = await startScene(t)
  scene.upstream.answer(answering)
  await call(`${scene.base}/agent/default/run`, { token: scene.token('alice'), body: runInput('t-1') })
  const before = rows(scene.folder)
  t.equal(before.length, 1)
  scene.write({ enforcement: 'observe' })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  await call(`${scene.base}/agent/default/run`, { token: scene.token('bob'), body: runInput('t-1') })
  t.match(decisions(scene).at(-1), { wouldRefuse: 'thread-foreign' })
  await call(`${scene.base}/agent/default/run`, { token: scene.token('alice'), body: runInput('t-1') })
  t.notOk('wouldRefuse' in (decisions(scene).at(-1) ?? {}))
  t.same(rows(scene.folder), before)
})

void test('a list is what the upstream gives, but for join codes; how much enforcing would hide is told', async (t) => {
  const scene = await observing(t)
  scene.upstream.answer(answering)
  await call(`${scene.base}/agent/default/run`, { token: scene.token('alice'), body: runInput('t-1') })
  const list = await call(`${scene.base}/threads?cursor=theirs&limit=7`, { token: scene.token('alice') })
  t.same(list.json, { messages: [], threads: [{ id: 't-1' }, { id: 't-2' }], nextCursor: 'theirs' })
  t.match(scene.upstream.requests.at(-1)?.target, /\?limit=7&cursor=theirs$|\?cursor=theirs&limit=7$/)
  t.match(decisions(scene).at(-1), { route: 'threads/list', reason: 'permitted', wouldHide: 1 })
  scene.upstream.answer(json({ error: 'not here' }, 422))
  t.equal((await call(`${scene.base}/threads`, { token: scene.token('alice') })).status, 422)
})

void test('everything that does not rest on ownership is refused as ever', async (t) => {
  const policy = `version: 1
operators: [{ role: operator }]
rules:
  - { routes: [info, threads/list], allow: [signed-in] }
  - { routes: [threads/subscribe], allow: [signed-in], only: user-scoped }
  - { routes: [threads/clear, cpk-debug-events], allow: [operator] }
  - { routes: [agent/run], allow: [signed-in], threads: [own, unknown] }
  - { name: no-guests, routes: [agent/run], deny: [signed-in], roles: [guest] }
  - { name: not-of-others, routes: [threads/update], deny: [signed-in], threads: [foreign] }
  - { routes: [threads/update], allow: [signed-in], threads: [own] }
`
  const scene = await observing(t, {}, policy)
  scene.upstream.answer(answering)
  const token = scene.token('alice')
  const guest = scene.token('greta', { role: 'guest' })
  await call(`${scene.base}/agent/default/run`, { token: scene.token('bob'), body: runInput('t-1') })
  const refusals = [
    [await call(`${scene.base}/info`), 401, 'credential-missing'],
    [await call(`${scene.base}/threads/t-1/messages`), 401, 'credential-missing'],
    [await call(`${scene.base}/threads/clear`, { method: 'POST', token, body: {} }), 403, 'not-allowed'],
    [await call(`${scene.base}/threads/subscribe`, { method: 'POST', token, body: {} }), 403, 'not-allowed'],
    [await call(`${scene.base}/cpk-debug-events`, { token }), 403, 'not-allowed'],
    [await call(`${scene.base}/threads/t-1/messages`, { token }), 403, 'not-allowed'],
    [await call(`${scene.base}/agent/default/run`, { token: guest, body: runInput('t-9') }), 403, 'not-allowed'],
    [await call(`${scene.base}/nowhere`, { token }), 404, 'not-found'],
    [await call(`${scene.base}/agent/default/run`, { token, body: runInput('') }), 400, 'thread-id-invalid'],
    [await call(`${scene.base}/agent/default/run`, { token, body: [] }), 400, 'body-malformed'],
    [await call(`${scene.base}/threads//clear`, { token }), 400, 'target-malformed'],
  ] as const
  for (const [reply, status, code] of refusals) t.same([reply.status, codeOf(reply)], [status, code])
  t.equal(scene.upstream.requests.length, 1, 'nothing of them reaches upstream')
  const others = await call(`${scene.base}/threads/t-1`, { method: 'DELETE', token, body: {} })
  t.equal(others.status, 200, 'a rule that denies what is of others rests on ownership, too')
  t.match(decisions(scene).at(-1), { wouldRefuse: 'denied-by-rule' })
})

void test('with verify the upstream is asked, and passes the request also where it says nothing', async (t) => {
  const scene = await observing(t, { 'ownership.unknownThread': 'verify' })
  scene.upstream.answer((request, response) =>
    request.target.endsWith('/run')
      ? events({ type: 'RUN_FINISHED' })(request, response)
      : json(
          request.target.includes('/old/') ? { messages: [{ id: 'm' }] } : { error: 'down' },
          request.target.includes('/old/') ? 200 : 503,
        )(request, response),
  )
  const run = async (thread: string) =>
    (await call(`${scene.base}/agent/default/run`, { token: scene.token('alice'), body: runInput(thread) })).status
  t.equal(await run('old'), 200)
  t.match(decisions(scene).at(-1), { wouldRefuse: 'thread-has-history' })
  t.equal(await run('down'), 200)
  t.notOk('wouldRefuse' in (decisions(scene).at(-1) ?? {}), 'nothing is told that nobody knows')
})
