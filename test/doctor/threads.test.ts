/** Whether `ownership.unknownThread` fits the upstream. */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { clearThreads } from '../../examples/runtime.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { RUNTIMES, start, type Mode, type RuntimeName } from '../contract/runtimes.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { INFO, json, startUpstream, type Answering } from '../../testing/support/upstream.ts'
import { examined, hush } from './examination.ts'

const VERIFY = { 'ownership.unknownThread': 'verify' }

/** What each runtime lets `verify` find out. */
const VERIFIES: Readonly<Record<string, Readonly<Record<Mode, readonly [string, RegExp]>>>> = {
  '1.75': { 'multi-route': ['ok', /verify works/], 'single-route': ['ok', /verify works/] },
  '1.54': {
    'multi-route': ['problem', /does not serve thread histories, so verify refuses every new thread/],
    'single-route': ['problem', /does not serve thread histories, so verify refuses every new thread/],
  },
}

for (const name of RUNTIMES) {
  for (const mode of ['multi-route', 'single-route'] as const) {
    const [level, message] = VERIFIES[name.slice(0, 4)]?.[mode] ?? ['', /./]
    void test(`verify before ${name} as ${mode} is ${level}`, async (t) => {
      hush(t)
      const runtime = await start(t, name, mode)
      const { of } = await examined(t, { 'upstream.url': runtime.url, ...VERIFY })
      t.match(of('upstream.histories'), { level, message })
      t.match(of('upstream.threads'), { level: 'ok' })
      const claiming = await examined(t, { 'upstream.url': runtime.url })
      t.match(claiming.of('upstream.histories'), {
        level: 'ok',
        message: /^unknownThread is claim; verify would (?:not )?work/,
      })
    })
  }
}

/** An upstream that has all routes and answers questions for histories in one way. */
function histories(answering: Answering): Answering {
  return (request, response) => {
    if (request.method === 'PUT') {
      const known = !/\/[0-9a-f-]{36}$/.test(request.target)
      return json({}, known ? 405 : 404, known ? { allow: 'GET' } : {})(request, response)
    }
    return (/\/(?:messages|events)$/.test(request.target) ? answering : json(INFO))(request, response)
  }
}

for (const [title, answering, level, message] of [
  ['that answers 422', json({}, 422), 'problem', /does not serve thread histories/],
  ['that tells of a history that cannot be', json({ messages: [1] }), 'unknown', /may require a token of a caller/],
  ['that asks who the caller is', json({}, 401), 'unknown', /may require a token of a caller/],
  ['that fails', json({}, 500), 'unknown', /no valid answer/],
  ['that has the routes and answers 404', json({}, 404), 'ok', /verify works/],
] as const) {
  void test(`verify before an upstream ${title} is ${level}`, async (t) => {
    const upstream = await startUpstream(histories(answering))
    t.teardown(() => upstream.close())
    upstream.answerQuestions(histories(answering))
    const { of } = await examined(t, { 'upstream.url': upstream.url, ...VERIFY })
    t.match(of('upstream.histories'), { level, message })
  })
}

void test('with a token the question for a history is asked as its caller would ask', async (t) => {
  let sent: readonly (string | undefined)[] = []
  const answering: Answering = (request, response) => {
    sent = [...sent, request.headers.get('authorization')?.[0]]
    return json({}, 403)(request, response)
  }
  const upstream = await startUpstream(histories(answering))
  t.teardown(() => upstream.close())
  upstream.answerQuestions(histories(answering))
  const changes = { 'upstream.url': upstream.url, ...VERIFY }
  const { of } = await examined(t, changes, { wishes: { token: 'the-token' } })
  t.match(of('upstream.histories'), { level: 'problem', message: /does not say that a random thread has no history/ })
  t.ok(sent.includes('Bearer the-token'))
  sent = []
  await examined(t, { ...changes, 'upstream.forwardAuthorization': false }, { wishes: { token: 'the-token' } })
  t.same(new Set(sent), new Set([undefined]), 'nor where the gateway would keep it')
})

for (const [name, mode] of [
  ['1.75 node', 'multi-route'],
  ['1.75 express', 'single-route'],
] as const satisfies readonly (readonly [RuntimeName, Mode])[]) {
  void test(`claim with an empty table before threads of old is a warning (${name}, ${mode})`, async (t) => {
    hush(t)
    clearThreads()
    const runtime = await start(t, name, mode)
    const { folder, remove } = makeFolder()
    t.teardown(remove)
    const file = join(folder, 'data', 'ownership.db')
    const changes = { 'upstream.url': runtime.url, 'ownership.store': `sqlite:${file}` }
    t.match((await examined(t, changes)).of('upstream.threads'), {
      level: 'ok',
      message: /the ownership table and the upstream are empty/,
    })

    const base = `${runtime.url}${runtime.basePath}`
    const body = runInput('old')
    if (mode === 'multi-route') await call(`${base}/agent/default/run`, { body })
    else await call(base, { body: { method: 'agent/run', params: { agentId: 'default' }, body } })
    t.match((await examined(t, changes)).of('upstream.threads'), {
      level: 'warning',
      message: /the upstream has threads \(1\): the first user to run/,
      remedy: /verify or deny/,
    })

    mkdirSync(dirname(file))
    const store = await openSqliteStore(file)
    await store.claim({ scope: '', threadId: 'old' }, { userId: 'corp:alice', agentId: 'default', guest: false, now: Date.now() })
    await store.close()
    t.match((await examined(t, changes)).of('upstream.threads'), { level: 'ok', message: 'the ownership table has owners' })
    clearThreads()
  })
}

void test('an upstream that has no routes for histories, whatever it calls itself, makes every thread look new', async (t) => {
  const without: Answering = (request, response) => {
    const known = request.target.endsWith('/info') || request.target.endsWith('/threads')
    if (request.method === 'PUT') return json({}, known ? 405 : 404, known ? { allow: 'GET' } : {})(request, response)
    return json(known ? INFO : {}, known ? 200 : 404)(request, response)
  }
  const upstream = await startUpstream(without)
  t.teardown(() => upstream.close())
  upstream.answerQuestions(without)
  const { of } = await examined(t, { 'upstream.url': upstream.url, ...VERIFY })
  t.match(of('upstream.histories'), { level: 'problem', message: /so verify treats every thread as new/ })
  t.match(of('upstream.routes'), { level: 'problem', message: 'the upstream has no agent/run, agent/connect' })
})

void test('an upstream whose list is none is not taken for empty', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answerQuestions((request, response) =>
    json(request.target.endsWith('/info') ? INFO : { items: [] })(request, response),
  )
  const { of } = await examined(t, { 'upstream.url': upstream.url })
  t.match(of('upstream.threads'), { level: 'unknown', message: /does not show its list of threads/ })
})

void test('an upstream that shows no list leaves it open', async (t) => {
  hush(t)
  const runtime = await start(t, '1.54 express', 'multi-route')
  const { of } = await examined(t, { 'upstream.url': runtime.url })
  t.match(of('upstream.threads'), { level: 'unknown', message: /does not show its list of threads/ })
})
