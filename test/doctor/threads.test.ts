/** Whether `ownership.unknownThread` fits the upstream. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { clearThreads } from '../../examples/runtime.ts'
import type { Store } from '../../src/store/port/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { MOST_COMPARED } from '../../src/tools/doctor/threads.ts'
import { RUNTIMES, start, type Mode, type RuntimeName } from '../contract/runtimes.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { startPostgres } from '../../testing/support/postgres.ts'
import { key } from '../import-export/store.ts'
import { openStoreOn, settingsOf } from '../store/postgres-stores.ts'
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

const ALICE = 'corp:alice'

/** A store file, and the changes of a configuration for it. */
function storeFile(t: Test, url: string) {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  return { file, changes: { 'upstream.url': url, 'ownership.store': `sqlite:${file}` } }
}

/** A real runtime with threads of old. */
async function startOld(t: Test, ids: readonly string[], name: RuntimeName = '1.75 node', mode: Mode = 'multi-route') {
  hush(t)
  clearThreads()
  t.teardown(() => clearThreads())
  const runtime = await start(t, name, mode)
  for (const id of ids) {
    const [base, body] = [`${runtime.url}${runtime.basePath}`, runInput(id)]
    if (mode === 'multi-route') await call(`${base}/agent/default/run`, { body })
    else await call(base, { body: { method: 'agent/run', params: { agentId: 'default' }, body } })
  }
  return runtime
}

for (const [name, mode] of [
  ['1.75 node', 'multi-route'],
  ['1.75 express', 'single-route'],
] as const satisfies readonly (readonly [RuntimeName, Mode])[]) {
  void test(`claim before threads of old without an owner is a warning (${name}, ${mode})`, async (t) => {
    const runtime = await startOld(t, [], name, mode)
    const { file, changes } = storeFile(t, runtime.url)
    t.match((await examined(t, changes)).of('upstream.threads'), { level: 'ok', message: 'the upstream lists no threads' })

    await startOld(t, ['old-orphan', 'old-other'], name, mode)
    t.match((await examined(t, changes)).of('upstream.threads'), {
      level: 'warning',
      message:
        /^the ownership table is empty; threads of the upstream without an owner: 2 of 2 \(for example old-o\w+, old-o\w+\)\. The first user who runs one of them owns it$/,
      remedy: /threads import, or use unknownThread: verify or deny\. If there were owners, look for the earlier store$/,
    })

    const store = await openSqliteStore(file)
    await store.claim(key('old-other'), { userId: ALICE, agentId: 'default', guest: false, now: Date.now() })
    await store.close()
    t.match((await examined(t, changes)).of('upstream.threads'), {
      level: 'warning',
      message:
        'threads of the upstream without an owner: 1 of 2 (for example old-orphan). The first user who runs one of them owns it',
      remedy: /verify or deny$/,
    })

    const again = await openSqliteStore(file)
    await again.assign(key('old-orphan'), ALICE, 1)
    await again.close()
    t.match((await examined(t, changes)).of('upstream.threads'), {
      level: 'ok',
      message: 'no thread that the upstream lists can be claimed by its first user (2)',
    })
  })
}

/** Threads of a table: of a user, deleted, revoked, unconfirmed; and those that were only observed. */
async function fill(store: Store): Promise<void> {
  for (const id of ['owned', 'deleted', 'revoked']) await store.assign(key(id), ALICE, 1)
  await store.bury(key('deleted'), ALICE, 2, 'unknown')
  await store.withhold(key('revoked'), 2)
  await store.claim(key('unconfirmed'), { userId: ALICE, agentId: 'default', guest: false, now: 1 })
  await store.assign({ scope: 'elsewhere', threadId: 'orphan' }, ALICE, 1)
  await store.observe(key('owned'), 'corp:bob', 'default', 'run', 3)
  await store.observe(key('observed'), ALICE, 'default', 'run', 3)
  for (const user of [ALICE, 'corp:bob']) await store.observe(key('disputed'), user, 'default', 'run', 3)
  await store.observe(key('observed'), 'corp:carol', 'default', 'other', 3)
}

const LISTED = ['owned', 'deleted', 'revoked', 'unconfirmed', 'observed', 'disputed', 'orphan', '2024-thread+x']

/** What the four findings are, in their order. */
const COMPARED = [
  { level: 'warning', message: /without an owner: 1 of 8 \(for example orphan\)\. The first user/ },
  {
    level: 'ok',
    message:
      'threads without an owner that one user ran in observe mode: 1 (for example observed). Only that user can claim such a thread',
  },
  {
    level: 'warning',
    message:
      'threads without an owner that several users ran in observe mode: 1 (for example disputed). No user can use such a thread',
    remedy: /threads assign/,
  },
  {
    level: 'ok',
    message:
      'threads of the upstream with an id that the gateway refuses: 1 (for example 2024-thread+x). No user can reach them through the gateway',
  },
]

void test('each thread is compared with its row and with who was observed on it', async (t) => {
  const runtime = await startOld(t, LISTED)
  const { file, changes } = storeFile(t, runtime.url)
  const store = await openSqliteStore(file)
  await fill(store)
  await store.close()
  t.match((await examined(t, changes)).each('upstream.threads'), COMPARED)
  t.match((await examined(t, { ...changes, enforcement: 'observe' })).each('upstream.threads'), [
    { level: 'warning' },
    { level: 'ok', message: /Only that user can claim such a thread$/ },
    { level: 'ok', message: /With enforce, no user can use such a thread: threadwarden threads assign/ },
    { level: 'ok' },
  ])
})

for (const unknownThread of ['deny', 'verify']) {
  void test(`with ${unknownThread} no thread of old is a danger, and what users began in observe mode is theirs no more`, async (t) => {
    const runtime = await startOld(t, LISTED)
    const { file, changes } = storeFile(t, runtime.url)
    const store = await openSqliteStore(file)
    await fill(store)
    await store.close()
    const closed = { ...changes, 'ownership.unknownThread': unknownThread }
    t.match((await examined(t, closed)).each('upstream.threads'), [
      {
        level: 'ok',
        message: `unknownThread is ${unknownThread}: threads from before the gateway cannot be claimed. Threads of the upstream without an owner: 1 of 8 (for example orphan)`,
      },
      { level: 'warning', message: /No user can use such a thread$/, remedy: /threads import --from-observed makes that user/ },
      { level: 'warning' },
      { level: 'ok' },
    ])
    t.match((await examined(t, { ...closed, enforcement: 'observe' })).each('upstream.threads'), [
      { level: 'ok' },
      { level: 'ok', message: /With enforce, no user can use such a thread: threadwarden threads import --from-observed/ },
      { level: 'ok' },
      { level: 'ok' },
    ])
  })
}

void test('the same on PostgreSQL', async (t) => {
  const runtime = await startOld(t, LISTED)
  const { url } = await startPostgres(t)
  const changes = { 'upstream.url': runtime.url, 'ownership.store': url }
  const slow = { wishes: { timeout: 30_000 } }
  t.match((await examined(t, changes, slow)).each('upstream.threads')[0], {
    level: 'warning',
    message: /^the ownership table is empty; threads of the upstream without an owner: 7 of 8 \(for example [\w, ]+\)\./,
  })
  await fill(await openStoreOn(t, settingsOf(url)))
  t.match((await examined(t, changes, slow)).each('upstream.threads'), COMPARED)
})

/** An upstream whose list is what `pageOf` says for each target of a request. */
async function startListing(t: Test, pageOf: (target: URL) => unknown) {
  const asked: string[] = []
  const answering: Answering = (request, response) => {
    const target = new URL(request.target, 'http://upstream')
    if (!target.pathname.endsWith('/threads')) return json(INFO)(request, response)
    if (target.search !== '') asked.push(target.search)
    const page = pageOf(target)
    return typeof page === 'number' ? json({}, page)(request, response) : json(page)(request, response)
  }
  const upstream = await startUpstream(answering)
  t.teardown(() => upstream.close())
  upstream.answerQuestions(answering)
  return { ...storeFile(t, upstream.url), asked }
}

const named = (count: number, prefix = 't'): object[] => Array.from({ length: count }, (_one, at) => ({ id: `${prefix}-${at}` }))

void test('all pages are compared, archived threads too, and no thread twice', async (t) => {
  const { changes, asked } = await startListing(t, ({ searchParams }) =>
    searchParams.has('cursor') ? { threads: [{ id: 't-0' }, { id: 'last' }] } : { threads: named(2), nextCursor: 'c/2' },
  )
  t.match((await examined(t, changes)).of('upstream.threads'), {
    level: 'warning',
    message: /without an owner: 3 of 3 \(for example t-0, t-1, last\)/,
  })
  t.same(asked, ['?includeArchived=true', '?includeArchived=true&cursor=c%2F2'])
})

void test('a runtime that lists only the threads of an agent is asked for those of each', async (t) => {
  const { changes, asked } = await startListing(t, ({ searchParams }) =>
    searchParams.has('agentId') ? { threads: named(1) } : 400,
  )
  t.match((await examined(t, changes)).of('upstream.threads'), { level: 'warning', message: /1 of 1/ })
  t.same(asked, ['?includeArchived=true', '?includeArchived=true&agentId=default'])
})

void test('of a very long list a part is compared, and the finding says so', async (t) => {
  const { file, changes } = await startListing(t, () => ({ threads: named(MOST_COMPARED + 1) }))
  const part = `Not all threads were compared: only the first ${MOST_COMPARED} threads of the list were compared`
  t.match((await examined(t, changes)).of('upstream.threads'), {
    level: 'warning',
    message: new RegExp(`${MOST_COMPARED} of ${MOST_COMPARED} .*${part}$`),
  })
  const store = await openSqliteStore(file)
  const facts = { owner: ALICE, agentId: '', name: null, archived: false, createdAt: 1, lastUsedAt: 1 }
  const rows = Array.from({ length: MOST_COMPARED }, (_one, at) => ({ scope: '', threadId: `t-${at}`, ...facts }))
  await store.import(rows, { dryRun: false, settleConflicts: false })
  await store.close()
  t.match((await examined(t, changes)).of('upstream.threads'), {
    level: 'unknown',
    message: `no thread without an owner among the first ${MOST_COMPARED} of the upstream. ${part}`,
  })
})

void test('a list of exactly that length is compared completely', async (t) => {
  const { changes } = await startListing(t, () => ({ threads: named(MOST_COMPARED) }))
  t.notMatch((await examined(t, changes)).of('upstream.threads').message, /Not all/)
})

void test('a list without an end ends', async (t) => {
  let pages = 0
  const { changes } = await startListing(t, () => ({ threads: [], nextCursor: `page-${(pages += 1)}` }))
  t.match((await examined(t, changes, { wishes: { timeout: 20_000 } })).of('upstream.threads'), {
    level: 'unknown',
    message: /cannot compare the threads of the upstream with the ownership table: the list has more than 1000 pages/,
  })
})

void test('what was compared before an error or the time limit is a finding', async (t) => {
  const failing = await startListing(t, ({ searchParams }) =>
    searchParams.has('cursor') ? 500 : { threads: named(2), nextCursor: 'c' },
  )
  t.match((await examined(t, failing.changes)).of('upstream.threads'), {
    level: 'warning',
    message: /2 of 2 .*Not all threads were compared: the upstream gave no list: it answered 500$/,
  })

  const first: Answering = json({ threads: named(2), nextCursor: 'c' })
  const upstream = await startUpstream((request, response) => {
    if (!request.target.includes('cursor')) return first(request, response)
  })
  t.teardown(() => upstream.close())
  upstream.answerQuestions((request, response) =>
    request.target.endsWith('/info') ? json(INFO)(request, response) : first(request, response),
  )
  const { changes } = storeFile(t, upstream.url)
  t.match((await examined(t, changes, { wishes: { timeout: 500 } })).of('upstream.threads'), {
    level: 'warning',
    message: /2 of 2 .*Not all threads were compared: the time limit was reached \(500 ms\): increase --timeout$/,
  })
})

void test('a list that cannot be read leaves it open, and says why', async (t) => {
  for (const [page, why] of [
    [500, /cannot compare .*it answered 500$/],
    [400, /cannot compare .*it answered 400$/],
    [{ threads: [{ name: 'no id' }] }, /cannot compare .*is not a list of threads$/],
  ] as const) {
    const { changes } = await startListing(t, () => page)
    t.match((await examined(t, changes)).of('upstream.threads'), { level: 'unknown', message: why, remedy: /threads import/ })
    t.match((await examined(t, { ...changes, 'ownership.unknownThread': 'deny' })).of('upstream.threads'), {
      level: 'ok',
      message: /^unknownThread is deny: .*\(the threads were not compared: the /,
    })
  }
})

void test('a table that cannot be read leaves it open', async (t) => {
  const { file, changes } = await startListing(t, () => ({ threads: named(1) }))
  writeFileSync(file, 'this is a text of more than sixteen bytes, and of no database at all\n'.repeat(20))
  t.match((await examined(t, changes)).of('upstream.threads'), {
    level: 'unknown',
    message: /cannot compare .*: the ownership table cannot be read$/,
  })
})

void test('an upstream that separates users may list a part alone', async (t) => {
  const { changes } = await startListing(t, () => ({ threads: [] }))
  t.match((await examined(t, { ...changes, 'upstream.userScoped': true })).of('upstream.threads'), {
    level: 'ok',
    message: 'the upstream lists no threads. It separates users, so it may not list all threads',
  })
})

void test('a long id is cut', async (t) => {
  const { changes } = await startListing(t, () => ({ threads: [{ id: 'x'.repeat(100) }] }))
  t.match((await examined(t, changes)).of('upstream.threads'), { message: `(for example ${'x'.repeat(64)}…)` })
})

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
  t.match(of('upstream.threads'), { level: 'unknown', message: /cannot compare the threads of the upstream/ })
})

void test('an upstream that shows no list leaves it open', async (t) => {
  hush(t)
  const runtime = await start(t, '1.54 express', 'multi-route')
  const { of } = await examined(t, { 'upstream.url': runtime.url })
  t.match(of('upstream.threads'), { level: 'unknown', message: /cannot compare the threads of the upstream/ })
})
