/**
 * Whose a thread of the managed platform is: who the platform believes to be asking, what it leaves open to whoever knows the
 * id of a thread, and where its join tokens could leak. The platform's API is closed: a stand-in for it answers the real
 * runtime.
 */
import { test } from 'tap'
import { codeOf, runInput } from '../../testing/support/client.ts'
import { deferred, until } from '../../testing/support/until.ts'
import { AGENT, asked, LIST, newKey, newThread, page, SECRET, startManaged } from './managed-scene.ts'

void test('the user at the platform is the one of the gateway’s assertion, whatever a caller sends', async (t) => {
  const scene = await startManaged(t)
  const { bob } = scene.tokens
  const forged = scene.assertion('bob', 'any')
  const names = ['x-user-id', 'x-forwarded-user', 'x-cpki-user-id', 'x-threadwarden-assertion', 'X-Threadwarden-User']
  const headers = { ...Object.fromEntries(names.map((name) => [name, 'corp:bob'])), ...forged }
  const thread = newThread()
  const requests = await asked(scene, async () => {
    const body = { ...runInput(thread), userId: 'corp:bob', user: { id: 'corp:bob' } }
    t.equal((await scene.ask('alice', '/agent/default/run', { headers, body })).status, 200)
    t.equal((await scene.ask('alice', LIST, { headers })).status, 200)
    t.equal((await scene.ask('alice', '/threads/subscribe', { headers, body: { userId: 'corp:bob' } })).status, 200)
    const change = { ...AGENT, userId: 'corp:bob', name: 'Mine' }
    t.equal((await scene.ask('alice', `/threads/${thread}`, { headers, method: 'PATCH', body: change })).status, 200)
  })
  t.ok(requests.length > 5)
  t.same([...new Set(requests.map(({ userId }) => userId))], ['corp:alice'])

  const others = {
    nothing: {},
    'a header that anybody can write': { 'x-user-id': 'corp:alice' },
    'a token of the issuer’s': { authorization: `Bearer ${bob}` },
    'a token in the place of an assertion': { 'x-threadwarden-assertion': bob },
    'an assertion with another key': scene.assertion('alice', thread, newKey()),
  }
  const past = await asked(scene, async () => {
    for (const [what, shown] of Object.entries(others)) {
      const replies = await Promise.all([
        scene.direct(LIST, { headers: shown }),
        scene.direct(`/threads/${thread}/events`, { headers: shown }),
        scene.direct('/threads/subscribe', { headers: shown, body: {} }),
        ...['run', 'connect', 'suggest'].map((route) =>
          scene.direct(`/agent/default/${route}`, { headers: shown, body: runInput(thread) }),
        ),
      ])
      t.same(new Set(replies.map(({ status }) => status)), new Set([401]), what)
    }
    const elsewhere = await scene.direct(`/threads/${thread}/events`, { headers: scene.assertion('alice', newThread()) })
    t.equal(elsewhere.status, 401, 'an assertion for another thread')
  })
  t.same(past, [], 'past the gateway the runtime gives nothing')
  const both = { ...scene.assertion('alice', thread), 'x-user-id': 'corp:bob' }
  t.match(await asked(scene, () => scene.direct(LIST, { headers: both })), [{ userId: 'corp:alice' }])
})

void test('user ids that the runtime would refuse are written otherwise, and never two alike', async (t) => {
  const scene = await startManaged(t)
  const ids = ['auth0|1', 'auth0=7c1', 'auth0:1', 'é~*', 'first.last@example.com']
  const requests = await asked(scene, async () => {
    for (const id of ids) t.equal((await scene.direct(LIST, { headers: scene.assertion(id, 't') })).status, 200, id)
  })
  t.same(
    requests.map(({ userId }) => userId),
    ['corp:auth0=7c1', 'corp:auth0=3d7c1', 'corp:auth0:1', 'corp:=c3=a9=7e=2a', 'corp:first.last@example.com'],
  )
})

void test('events and state of another’s thread are not there, though the platform gives them to anybody', async (t) => {
  const scene = await startManaged(t)
  const thread = newThread()
  await scene.run('alice', thread, { state: { diary: 'alice’s words' } })
  for (const part of ['events', 'state']) {
    const mine = await scene.ask('alice', `/threads/${thread}/${part}`)
    t.match(mine, { status: 200, text: /alice’s words/ })
    const requests = await asked(scene, async () => {
      const theirs = await scene.ask('bob', `/threads/${thread}/${part}`)
      const missing = await scene.ask('bob', `/threads/${newThread()}/${part}`)
      t.same([theirs.status, theirs.json], [404, missing.json], 'as one that is not there')
    })
    t.same(requests, [])
    const past = await scene.direct(`/threads/${thread}/${part}`, { headers: scene.assertion('bob', thread) })
    t.match(past, { status: 200, text: /alice’s words/ }, 'what the platform says to bob')
  }
  const past = await scene.direct(`/threads/${thread}/messages`, { headers: scene.assertion('bob', thread) })
  t.equal(past.status, 500, 'messages it scopes by itself')
})

void test('a thread that only the platform knows is not opened by asking for a run on it', async (t) => {
  const waiting: { resolve: () => void }[] = []
  const scene = await startManaged(t, {
    onRequest: async ({ method, userId }) => {
      if (!holds || method === 'GET' || userId !== 'corp:bob') return
      const held = deferred()
      waiting.push(held)
      await held.promise
    },
  })
  let holds = false
  const thread = newThread()
  // As it was before the gateway: hers at the platform, and no row here.
  const hers = await scene.direct('/agent/default/run', {
    headers: scene.assertion('alice', thread),
    body: runInput(thread, 'hello', { state: { diary: 'alice’s words' } }),
  })
  t.equal(hers.status, 200)
  await until(() => scene.platform.threads.running(thread) === null)
  const past = await scene.direct(`/threads/${thread}/events`, { headers: scene.assertion('bob', thread) })
  t.match(past, { status: 200, text: /alice’s words/ }, 'what the platform says to bob')

  const isRefused = async (when: string) => {
    const requests = await asked(scene, async () => {
      for (const [part, status] of [
        ['events', 404],
        ['state', 404],
        ['messages', 403],
      ] as const) {
        const reply = await scene.ask('bob', `/threads/${thread}/${part}`)
        t.same([reply.status, /alice’s words/.test(reply.text)], [status, false], `${part} ${when}`)
      }
      const gone = await scene.ask('bob', `/threads/${thread}`, { method: 'DELETE', body: AGENT })
      t.equal(gone.status, 403)
    })
    t.same(requests, [], 'the platform was not asked')
  }
  holds = true
  const refused = scene.ask('bob', '/agent/default/run', { body: runInput(thread) })
  await until(() => waiting.length === 1)
  await isRefused('while the run waits for its answer')
  waiting[0]?.resolve()
  holds = false
  t.equal((await refused).status, 404)
  await isRefused('when it was refused')

  holds = true
  const leaving = new AbortController()
  const left = fetch(`${scene.base}/agent/default/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${scene.tokens.bob}`, 'content-type': 'application/json' },
    body: JSON.stringify(runInput(thread)),
    signal: leaving.signal,
  })
  await until(() => waiting.length === 2)
  leaving.abort()
  await t.rejects(left)
  await isRefused('when he did not wait for the answer')
  waiting[1]?.resolve()
  holds = false

  const his = newThread()
  t.equal((await scene.run('bob', his)).status, 200)
  for (const part of ['events', 'state', 'messages']) {
    t.equal((await scene.ask('bob', `/threads/${his}/${part}`)).status, 200, part)
  }
})

void test('everything else about a thread is its owner’s', async (t) => {
  const scene = await startManaged(t)
  const thread = newThread()
  await scene.run('alice', thread)
  const annotation = {
    type: 'user_action',
    threadId: thread,
    payload: {},
    clientEventId: 'e-1',
    occurredAt: '2026-01-01T00:00:00Z',
  }
  const calls = [
    [`/agent/default/stop/${thread}`, { body: {} }],
    [`/threads/${thread}/messages`, {}],
    [`/threads/${thread}`, { method: 'PATCH', body: { ...AGENT, name: 'Diary' } }],
    [`/threads/${thread}/archive`, { body: AGENT }],
    ['/annotate', { body: annotation }],
    [`/threads/${thread}`, { method: 'DELETE', body: AGENT }],
  ] as const
  const requests = await asked(scene, async () => {
    for (const [path, options] of calls) {
      const reply = await scene.ask('bob', path, options)
      t.same([reply.status, codeOf(reply)], [403, 'not-owner'], path)
    }
  })
  t.same(requests, [])
  for (const [path, options] of calls) t.equal((await scene.ask('alice', path, options)).status, 200, path)
})

void test('what opens a socket is written down nowhere, whatever goes wrong', async (t) => {
  const scene = await startManaged(t)
  const { platform } = scene
  const thread = newThread()
  const run = await scene.run('alice', thread)
  const token = String((run.json as { joinToken: unknown }).joinToken)
  await scene.ask('alice', LIST)
  await scene.ask('alice', '/threads/subscribe', { body: {} })
  await scene.ask('alice', '/agent/default/connect', { body: page(thread) })
  platform.threads.lock(thread, 'corp:alice', 'another')
  const locked = await scene.ask('alice', '/agent/default/run', { body: runInput(thread) })
  t.same([locked.status, locked.json], [409, { error: 'Thread lock denied' }])
  // As one comes along from a page that sends it where it does not belong.
  for (const path of [`${LIST}&cursor=${token}`, `${LIST}&join_token=${token}`, `/socket?join_token=${token}`]) {
    await scene.ask('alice', path)
  }
  t.equal((await scene.ask('alice', LIST, { token })).status, 401)
  await platform.close()
  const failed = [
    await scene.ask('alice', '/agent/default/run', { body: runInput(thread) }),
    await scene.ask('alice', '/agent/default/connect', { body: page(thread) }),
    await scene.ask('alice', LIST),
    await scene.ask('alice', '/threads/subscribe', { body: {} }),
  ]
  for (const { status, text } of failed) {
    t.ok(status >= 500)
    t.notMatch(text, SECRET)
  }
  const written = await scene.written()
  t.match(written, thread, 'this is where it would be')
  t.match(written, /"audit":1/)
  t.ok(platform.threads.secrets.length > 5)
  for (const secret of platform.threads.secrets) t.notOk(written.includes(secret))
})
