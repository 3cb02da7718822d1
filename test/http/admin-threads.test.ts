/** Threads in the admin API: what is known of one, and its grants, each change a line in the log. */
import { test } from 'tap'
import { MAX_GRANTS } from '../../src/core/decide/sharing.ts'
import type { Store } from '../../src/store/port/store.ts'
import { NOW, startAdmin, type Admin } from '../../testing/support/admin.ts'
import { codeOf } from '../../testing/support/client.ts'

const T1 = { scope: '', threadId: 't-1' }
const AT = '2026-01-31T12:00:00.000Z'
const NO_THREAD = 'There is no such thread, or it has no owner.'

/** A thread of alice's, as her first run makes it. */
async function begin(store: Store, threadId = 't-1', owner = 'corp:alice'): Promise<void> {
  const key = { scope: '', threadId }
  const claim = await store.claim(key, { userId: owner, agentId: 'default', guest: false, now: NOW })
  if (claim.outcome !== 'new' || claim.registration === null) throw new Error('not new')
  await store.settle(key, owner, claim.registration, 'confirmed')
}

/** The audit lines, with the thread and the right. */
function lines({ lines: all }: Admin): readonly unknown[] {
  return all
    .filter(({ msg }) => msg === 'admin')
    .map(({ level, action, target, thread, right, outcome }) => [level, action, thread, target, right, outcome])
}

const grants = (ask: Admin['ask'], body?: unknown, method?: string, threadId = 't-1') =>
  ask(`/threads/${encodeURIComponent(threadId)}/grants`, { body, ...(method === undefined ? {} : { method }) })

void test('a grant is given, listed, changed and taken back, and each change is a line', async (t) => {
  const admin = await startAdmin(t)
  const { ask, store } = admin
  await begin(store)
  t.same((await grants(ask)).json, { grants: [] })
  const bob = { user: 'corp:bob', right: 'read', grantedBy: 'operator', grantedAt: AT }
  const given = await grants(ask, { user: 'corp:bob', right: 'read' })
  t.same([given.status, given.json], [201, bob])
  const again = await grants(ask, { user: 'corp:bob', right: 'read' })
  t.same([again.status, again.json], [200, bob], 'it was there')
  const group = { group: 'partner:eng', right: 'write', grantedBy: 'operator', grantedAt: AT }
  t.same((await grants(ask, { group: 'partner:eng', right: 'write' })).json, group)
  t.same((await grants(ask)).json, { grants: [group, bob] })
  t.same((await store.accessTo(T1, { userId: 'corp:bob', groups: [] })).row?.granted, 'read')
  t.same((await grants(ask, { user: 'corp:bob', right: 'write' })).status, 201)
  t.same((await store.accessTo(T1, { userId: 'corp:bob', groups: [] })).row?.granted, 'write')
  const gone = await grants(ask, { user: 'corp:bob' }, 'DELETE')
  t.same([gone.status, gone.text], [204, ''])
  t.same((await grants(ask)).json, { grants: [group] })
  t.same(lines(admin), [
    ['info', 'grant', 't-1', 'user:corp:bob', 'read', 'done'],
    ['info', 'grant', 't-1', 'user:corp:bob', 'read', 'unchanged'],
    ['info', 'grant', 't-1', 'group:partner:eng', 'write', 'done'],
    ['info', 'grant', 't-1', 'user:corp:bob', 'write', 'done'],
    ['info', 'ungrant', 't-1', 'user:corp:bob', undefined, 'done'],
  ])
})

void test('scope names the upstream of a thread, and the line has it', async (t) => {
  const admin = await startAdmin(t)
  const { ask, store } = admin
  await begin(store)
  await store.assign({ scope: 'legal', threadId: 't-1' }, 'corp:carol', NOW)
  const at = (scope: string, path = '') => `/threads/t-1${path}?scope=${scope}`
  t.match((await ask(at('legal'))).json, { thread: 't-1', owner: 'corp:carol' })
  t.match((await ask(at(''))).json, { owner: 'corp:alice' })
  t.match((await ask('/threads/t-1')).json, { owner: 'corp:alice' })
  t.equal((await ask(at('research'))).status, 404)
  const body = { user: 'corp:bob', right: 'read' }
  t.equal((await ask(at('legal', '/grants'), { body })).status, 201)
  t.match((await ask(at('legal', '/grants'))).json, { grants: [{ user: 'corp:bob' }] })
  t.same((await grants(ask)).json, { grants: [] }, 'the thread of this id at upstream is another one')
  t.equal((await ask(at('legal', '/grants'), { method: 'DELETE', body: { user: 'corp:bob' } })).status, 204)
  t.same((await store.grants({ scope: 'legal', threadId: 't-1' }, null)) ?? null, [])
  t.equal((await grants(ask, body)).status, 201)
  const told = admin.lines.filter(({ action }) => /grant/.test(String(action))).map(({ action, scope }) => [action, scope])
  t.same(told, [
    ['grant', 'legal'],
    ['ungrant', 'legal'],
    ['grant', undefined],
  ])
})

for (const query of ['scope=Legal', 'scope=a%2Fb', `scope=${'a'.repeat(129)}`])
  void test(`?${query.slice(0, 30)} is no key of an upstream`, async (t) => {
    const { ask, store } = await startAdmin(t)
    await begin(store)
    for (const path of ['/threads/t-1', '/threads/t-1/grants']) {
      const answer = await ask(`${path}?${query}`)
      t.same([answer.status, (answer.json as { message: string }).message], [400, 'scope is the key of an upstream.'])
    }
    t.equal((await ask(`/threads/t-1/grants?${query}`, { body: { user: 'corp:bob', right: 'read' } })).status, 400)
    t.same((await store.thread(T1))?.grants, [])
  })

void test('nothing else may stand behind an id, and no scope behind what is no thread', async (t) => {
  const { ask, store } = await startAdmin(t)
  await begin(store)
  await store.revoke({ kind: 'user', userId: 'corp:x', before: null, revokedAt: NOW })
  for (const query of ['', 'scope', 'scop=legal', 'scope=&scope=legal', 'scope=&more=1', 'more=1&scope=', 'scope=?'])
    t.equal((await ask(`/threads/t-1?${query}`)).status, 404, query)
  t.equal((await ask('/revocations/user/corp:x?scope=', { method: 'DELETE' })).status, 404, 'it may be a part of the id')
  t.equal((await store.revocations()).length, 1)
})

void test('a user and a group of one name are two', async (t) => {
  const { ask, store } = await startAdmin(t)
  await begin(store)
  await grants(ask, { user: 'corp:eng', right: 'read' })
  t.equal((await grants(ask, { group: 'corp:eng' }, 'DELETE')).status, 404)
  await grants(ask, { group: 'corp:eng', right: 'write' })
  t.equal((await grants(ask, { user: 'corp:eng' }, 'DELETE')).status, 204)
  t.match((await grants(ask)).json, { grants: [{ group: 'corp:eng', right: 'write' }] })
})

const FORM = /^Write \{"user"/
const WRONG: readonly (readonly [body: unknown, text: RegExp])[] = [
  [{}, /^right must be read or write/],
  [{ right: 'read' }, FORM],
  [{ user: 'corp:bob', group: 'corp:eng', right: 'read' }, FORM],
  [{ user: 'corp:bob', right: 'read', until: 'tomorrow' }, FORM],
  [{ user: 'corp:bob' }, /^right must be read or write/],
  [{ user: 'corp:bob', right: 'owner' }, /^right must be read or write/],
  [{ user: 'corp:bob', right: ['read'] }, /^right must be read or write/],
  [{ user: 'bob', right: 'read' }, /^user must be a user id/],
  [{ user: 'anonymous', right: 'read' }, /^user must be a user id/],
  [{ user: ':bob', right: 'read' }, /^user must be a user id/],
  [{ user: 'corp:', right: 'read' }, /^user must be a user id/],
  [{ user: 'corp:a\u0000b', right: 'read' }, /^user must be a user id/],
  [{ user: 5, right: 'read' }, /^user must be a user id/],
  [{ user: null, right: 'read' }, /^user must be a user id/],
  [{ group: ['corp:eng'], right: 'read' }, /^group must be the name of a group/],
  [{ group: `corp:${'g'.repeat(256)}`, right: 'read' }, /^group must be the name of a group/],
  [{ user: 'crop:bob', right: 'read' }, /no issuer with this id. It has: corp, partner\.$/],
  [{ user: 'Corp:bob', right: 'read' }, /^user must be a user id/],
  [{ user: 'corp:alice', right: 'read' }, /^The user owns the thread/],
]

void test('what can’t be granted is told, and nothing is', async (t) => {
  const admin = await startAdmin(t)
  await begin(admin.store)
  for (const [body, text] of WRONG) {
    const answer = await grants(admin.ask, body)
    t.same([answer.status, codeOf(answer)], [400, 'body-malformed'], JSON.stringify(body))
    t.match((answer.json as { message: string }).message, text, JSON.stringify(body))
  }
  t.same((await grants(admin.ask)).json, { grants: [] })
  t.same(lines(admin)[0], ['warn', 'grant', 't-1', undefined, undefined, 'body-malformed'], 'nothing of what was written is told')
})

void test('a group may be called like the owner', async (t) => {
  const { ask, store } = await startAdmin(t)
  await begin(store)
  t.equal((await grants(ask, { group: 'corp:alice', right: 'read' })).status, 201)
})

void test('what is no JSON object, or comes in another type, is refused', async (t) => {
  const { ask, store, url } = await startAdmin(t)
  await begin(store)
  for (const body of ['[]', '"x"', '{', '{"user":"corp:bob","user":"corp:eve","right":"read"}', '']) {
    const answer = await fetch(`${url}/threads/t-1/grants`, {
      method: 'POST',
      headers: { authorization: 'Bearer the-credential-of-the-operators-0123456789', 'content-type': 'application/json' },
      body,
    })
    t.equal(answer.status, 400, body)
  }
  t.equal((await ask('/threads/t-1/grants', { method: 'POST', body: {}, headers: { 'content-type': 'text/plain' } })).status, 415)
  t.same((await grants(ask)).json, { grants: [] })
})

void test('what was granted can be taken back whatever the configuration says of its issuer', async (t) => {
  const { ask, store } = await startAdmin(t)
  await begin(store)
  const grant = { kind: 'user', id: 'former:bob', right: 'read', grantedBy: 'corp:alice', grantedAt: NOW } as const
  await store.grant(T1, 'corp:alice', grant)
  t.match((await grants(ask)).json, { grants: [{ user: 'former:bob', grantedBy: 'corp:alice' }] })
  t.equal((await grants(ask, { user: 'former:bob' }, 'DELETE')).status, 204)
})

void test('taking back says which grant, and no right', async (t) => {
  const admin = await startAdmin(t)
  await begin(admin.store)
  await grants(admin.ask, { user: 'corp:bob', right: 'read' })
  for (const body of [{}, { user: 'corp:bob', right: 'read' }, { user: 'corp:bob', group: 'corp:eng' }, { user: 'bob' }]) {
    t.equal((await grants(admin.ask, body, 'DELETE')).status, 400, JSON.stringify(body))
  }
  for (const body of [{ user: 'corp:eve' }, { group: 'corp:bob' }, { user: 'corp:Bob' }]) {
    const answer = await grants(admin.ask, body, 'DELETE')
    t.match(answer, { status: 404, json: { code: 'not-found', message: 'Nothing of the kind is granted.' } })
  }
  t.match((await grants(admin.ask)).json, { grants: [{ user: 'corp:bob' }] })
  t.same(lines(admin).at(-1), ['warn', 'ungrant', 't-1', 'user:corp:Bob', undefined, 'not-found'])
})

void test('nothing can be granted on a thread that nobody owns', async (t) => {
  const { ask, store } = await startAdmin(t)
  for (const threadId of ['t-deleted', 't-withheld']) await begin(store, threadId)
  await store.bury({ scope: '', threadId: 't-deleted' }, 'corp:alice', NOW, 'deleted')
  await store.withhold({ scope: '', threadId: 't-withheld' }, NOW)
  await store.observe({ scope: '', threadId: 't-seen' }, 'corp:alice', 'default', 'run', NOW)
  for (const threadId of ['t-deleted', 't-withheld', 't-seen', 't-none']) {
    for (const [method, body] of [
      ['GET', undefined],
      ['POST', { user: 'corp:bob', right: 'read' }],
      ['DELETE', { user: 'corp:bob' }],
    ] as const) {
      const answer = await grants(ask, body, method, threadId)
      t.match(answer, { status: 404, json: { code: 'not-found', message: NO_THREAD } }, `${method} ${threadId}`)
    }
  }
})

void test('a thread has a bounded number of grants; what is there can still be changed', async (t) => {
  const { ask, store } = await startAdmin(t)
  await begin(store)
  for (let at = 0; at < MAX_GRANTS; at += 1) {
    t.equal((await grants(ask, { user: `corp:user-${at}`, right: 'read' })).status, 201)
  }
  const answer = await grants(ask, { user: 'corp:bob', right: 'read' })
  t.match(answer, { status: 400, json: { code: 'body-malformed', message: 'A thread has 100 grants by operators at most.' } })
  t.equal((await grants(ask, { user: 'corp:user-0', right: 'write' })).status, 201)
})

void test('what is known of a thread, however it stands', async (t) => {
  const { ask, store } = await startAdmin(t)
  const row = { scope: '', agent: 'default', name: null, archived: false, createdAt: AT, lastUsedAt: AT, deletedAt: null }
  for (const threadId of ['t-live', 't-deleted', 't-withheld']) await begin(store, threadId)
  await store.rename({ scope: '', threadId: 't-live' }, 'corp:alice', 'Plans')
  await store.archive({ scope: '', threadId: 't-live' }, 'corp:alice', { archived: true })
  await grants(ask, { group: 'corp:eng', right: 'read' }, undefined, 't-live')
  await store.bury({ scope: '', threadId: 't-deleted' }, 'corp:alice', NOW, 'deleted')
  await store.withhold({ scope: '', threadId: 't-withheld' }, NOW)
  await store.claim({ scope: '', threadId: 't-new' }, { userId: 'corp:bob', agentId: 'other', guest: false, now: NOW })
  await store.assign({ scope: '', threadId: 't-given' }, 'corp:eve', NOW)
  for (const [user, at] of [
    ['corp:alice', 0],
    ['corp:bob', 1],
  ] as const) {
    await store.observe({ scope: '', threadId: 't-seen' }, user, 'default', 'run', NOW + at)
  }
  const shown = async (threadId: string): Promise<unknown> => (await ask(`/threads/${threadId}`)).json
  const live = {
    ...row,
    name: 'Plans',
    archived: true,
    grants: [{ group: 'corp:eng', right: 'read', grantedBy: 'operator', grantedAt: AT }],
  }
  t.same(await shown('t-live'), { thread: 't-live', state: 'live', owner: 'corp:alice', ...live, runners: [] })
  const bare = { ...row, grants: [], runners: [] }
  t.same(await shown('t-deleted'), { thread: 't-deleted', state: 'deleted', owner: 'corp:alice', ...bare, deletedAt: AT })
  t.same(await shown('t-withheld'), { thread: 't-withheld', state: 'withheld', owner: null, ...bare })
  t.same(await shown('t-new'), { thread: 't-new', state: 'new', owner: 'corp:bob', ...bare, agent: 'other' })
  t.same(await shown('t-given'), { thread: 't-given', state: 'live', owner: 'corp:eve', ...bare, agent: null })
  const unknown = { agent: null, createdAt: null, lastUsedAt: null, runners: ['corp:alice', 'corp:bob'] }
  t.same(await shown('t-seen'), { thread: 't-seen', state: 'seen', owner: null, ...bare, ...unknown })
  t.match(await ask('/threads/t-none'), { status: 404, json: { message: 'Nothing is known of this thread.' } })
})

void test('an id is meant as it is written, and one that no thread can have is refused', async (t) => {
  const { ask, store } = await startAdmin(t)
  await begin(store, 'a:b_c.d-e')
  await begin(store, 'T-1')
  t.match(await ask('/threads/a:b_c.d-e'), { status: 200, json: { thread: 'a:b_c.d-e' } })
  t.match(await ask('/threads/a%3Ab_c.d-e'), { status: 200, json: { thread: 'a:b_c.d-e' } })
  t.equal((await ask('/threads/t-1')).status, 404, 'another case is another thread')
  for (const id of ['', '%20', 'a%2Fb', 'threads', '-x', 'x'.repeat(129), '%00', 'a%3Fb', 'ü']) {
    for (const end of ['', '/grants']) {
      t.match(await ask(`/threads/${id}${end}`), { status: 400, json: { code: 'thread-id-invalid' } }, id + end)
    }
  }
})

void test('there is nothing else about threads', async (t) => {
  const { ask, store } = await startAdmin(t)
  await begin(store)
  for (const [method, path] of [
    ['POST', '/threads'],
    ['GET', '/threads/t-1/'],
    ['GET', '/threads/t-1?x=1'],
    ['GET', '/threads/t-1/grants/'],
    ['GET', '/threads/t-1/grants?limit=1'],
    ['GET', '/threads/t-1/GRANTS'],
    ['GET', '//threads/t-1'],
    ['PUT', '/threads/t-1/grants'],
    ['PATCH', '/threads/t-1'],
    ['DELETE', '/threads/t-1'],
    ['POST', '/threads/t-1'],
    ['HEAD', '/threads/t-1'],
    ['OPTIONS', '/threads/t-1/grants'],
    ['DELETE', '/threads/t-1/grants/corp:bob'],
    ['GET', '/threadwarden/threads/t-1/grants'],
  ] as const) {
    t.equal((await ask(path, { method })).status, 404, `${method} ${path}`)
  }
})

void test('a store that fails is told, and nothing is said to be done', async (t) => {
  const { ask, breakStore } = await startAdmin(t)
  await breakStore()
  for (const answer of [
    await ask('/threads/t-1'),
    await grants(ask),
    await grants(ask, { user: 'corp:bob', right: 'read' }),
    await grants(ask, { user: 'corp:bob' }, 'DELETE'),
  ]) {
    t.same([answer.status, codeOf(answer)], [503, 'store-unavailable'])
  }
})

void test('nothing of it is answered without the credential, or to a page in a browser', async (t) => {
  const { ask, store } = await startAdmin(t)
  await begin(store)
  for (const [path, options] of [
    ['/threads/t-1', {}],
    ['/threads/t-none', {}],
    ['/threads/t-1/grants', {}],
    ['/threads/t-1/grants', { body: { user: 'corp:bob', right: 'read' } }],
    ['/threads/t-1/grants', { method: 'DELETE', body: { user: 'corp:bob' } }],
  ] as const) {
    t.equal((await ask(path, { ...options, token: 'another-credential' })).status, 401)
    t.equal((await ask(path, { ...options, headers: { origin: 'https://app.example' } })).status, 403)
  }
  t.same((await store.grants(T1, null)) ?? 'none', [])
})
