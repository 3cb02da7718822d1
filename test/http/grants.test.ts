/** Owners share their threads on a route of the gateway's own: who may, what is refused, and that the upstream hears nothing. */
import { join } from 'node:path'
import { test } from 'tap'
import { MAX_GRANTS } from '../../src/core/decide/sharing.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { SHIPPED } from '../../testing/support/policies.ts'
import { codeOf } from '../../testing/support/client.ts'
import { testEachUpstream } from '../../testing/support/pairs.ts'
import { OPERATORS_SHARE, OWNERS_SHARE, reasons, sharing } from '../../testing/support/sharing.ts'

const BOB = { user: 'corp:bob', right: 'read' }

void testEachUpstream('an owner grants, looks, changes it and takes it back, and the upstream hears nothing', async (t, pair) => {
  const { alice, grants, run, upstream } = await sharing(t, undefined, { pair })
  await run(alice)
  const before = upstream.beginnings()
  t.same((await grants(alice)).json, { grants: [] })
  const given = await grants(alice, BOB)
  t.match(given, { status: 201, json: { ...BOB, grantedBy: 'corp:alice' } })
  const { grantedAt } = given.json as { grantedAt: string }
  t.equal(new Date(grantedAt).toISOString(), grantedAt)
  t.match(await grants(alice, BOB), { status: 200, json: given.json })
  t.match(await grants(alice, { group: 'corp:eng', right: 'write' }), {
    status: 201,
    json: { group: 'corp:eng', right: 'write' },
  })
  t.match(await grants(alice, { ...BOB, right: 'write' }), { status: 201, json: { user: 'corp:bob', right: 'write' } })
  t.match((await grants(alice)).json, { grants: [{ group: 'corp:eng' }, { user: 'corp:bob', right: 'write' }] })
  const gone = await grants(alice, { user: 'corp:bob' }, 'DELETE')
  t.same([gone.status, gone.text, gone.headers.get('content-type')], [204, '', null])
  t.match((await grants(alice)).json, { grants: [{ group: 'corp:eng', right: 'write', grantedBy: 'corp:alice' }] })
  t.equal(upstream.beginnings(), before)
})

void test('what was granted by an operator is seen by the owner, and theirs to take back', async (t) => {
  const { alice, grants, operate, run } = await sharing(t)
  await run(alice)
  t.equal((await operate(BOB)).status, 201)
  t.match((await grants(alice)).json, { grants: [{ ...BOB, grantedBy: 'operator' }] })
  t.equal((await grants(alice, { user: 'corp:bob' }, 'DELETE')).status, 204)
  t.same((await operate()).json, { grants: [] })
})

void test('nobody else may: not whom it was granted to, not on a thread that there is not, not without a token', async (t) => {
  const { alice, call, bob, olga, base, signer, grants, run, upstream } = await sharing(t)
  await run(alice)
  await grants(alice, { ...BOB, right: 'write' })
  const eve = signer.sign('eve', { groups: ['eng'] })
  await grants(alice, { group: 'corp:eng', right: 'write' })
  const before = upstream.beginnings()
  for (const token of [bob, eve, olga]) {
    for (const [body, method] of [
      [undefined, 'GET'],
      [{ user: 'corp:eve', right: 'read' }, 'POST'],
      [{ group: 'corp:eng' }, 'DELETE'],
    ] as const) {
      const foreign = await grants(token, body, method)
      const missing = await grants(token, body, method, 't-none')
      t.same([foreign.status, codeOf(foreign)], [403, 'not-owner'])
      t.same([missing.status, missing.text], [foreign.status, foreign.text], 'nothing tells that there is such a thread')
    }
  }
  t.equal((await call(`${base}/threadwarden/threads/t1/grants`)).status, 401)
  t.match((await grants(alice)).json, { grants: [{ user: 'corp:bob' }, { group: 'corp:eng' }] })
  t.equal(upstream.beginnings(), before)
})

void test('a thread that its owner has deleted has no grants, and takes none', async (t) => {
  const gate = await sharing(t)
  const { alice, call, base, grants, run } = gate
  await run(alice)
  t.equal((await call(`${base}/threads/t1`, { method: 'DELETE', token: alice })).status, 200)
  for (const answer of [await grants(alice), await grants(alice, BOB), await grants(alice, { user: 'corp:bob' }, 'DELETE')]) {
    t.same([answer.status, codeOf(answer)], [403, 'not-owner'])
  }
  t.same(reasons(gate), ['thread-unknown', 'thread-unknown', 'thread-unknown'])
})

void test('by the shipped policy owners may not: operators share', async (t) => {
  const gate = await sharing(t, undefined, { policy: SHIPPED })
  await gate.run(gate.alice)
  for (const body of [undefined, BOB]) {
    const answer = await gate.grants(gate.alice, body)
    t.same([answer.status, codeOf(answer)], [403, 'not-allowed'])
  }
  t.same(reasons(gate), ['no-rule-allows', 'no-rule-allows'])
  t.equal((await gate.operate(BOB)).status, 201)
})

void test('a policy that hides refusals hides these', async (t) => {
  const hiding = OWNERS_SHARE.replace('allow: [signed-in]\n    threads: [own]\n\n  # The list', (text) =>
    text.replace('[own]\n', '[own]\n    refusal: 404\n'),
  )
  const { alice, bob, grants, run } = await sharing(t, undefined, { policy: hiding })
  t.not(hiding, OWNERS_SHARE)
  await run(alice)
  for (const threadId of ['t1', 't-none']) {
    const answer = await grants(bob, undefined, 'GET', threadId)
    t.same([answer.status, codeOf(answer)], [404, 'not-found'])
  }
})

const WRONG: readonly unknown[] = [
  {},
  { right: 'read' },
  { user: 'corp:bob' },
  { user: 'corp:bob', group: 'corp:eng', right: 'read' },
  { user: 'corp:bob', right: 'read', until: 'tomorrow' },
  { user: 'corp:bob', right: 'owner' },
  { user: 'corp:bob', right: null },
  { user: 'bob', right: 'read' },
  { user: 'anonymous', right: 'read' },
  { user: 'corp:a\u0000b', right: 'read' },
  { user: ['corp:bob'], right: 'read' },
  { user: 'crop:bob', right: 'read' },
  { user: 'CORP:bob', right: 'read' },
  { user: 'corp:alice', right: 'write' },
  { threadId: 't2', user: 'corp:bob', right: 'read' },
]

void testEachUpstream('what can’t be granted is 400, and nothing is', async (t, pair) => {
  const gate = await sharing(t, undefined, { pair })
  const { alice, grants, run, upstream } = gate
  await run(alice)
  const before = upstream.beginnings()
  for (const body of WRONG) {
    const answer = await grants(alice, body)
    t.same([answer.status, codeOf(answer)], [400, 'body-malformed'], JSON.stringify(body))
  }
  for (const body of [{}, BOB, { user: 'corp:bob', group: 'corp:bob' }, { user: 'bob' }]) {
    t.equal((await grants(alice, body, 'DELETE')).status, 400, JSON.stringify(body))
  }
  t.same(new Set(reasons(gate)), new Set(['grant-malformed']))
  t.same((await grants(alice)).json, { grants: [] })
  t.equal(upstream.beginnings(), before)
})

void test('bodies are read as everywhere: one JSON object, within the limit, and none where none belongs', async (t) => {
  const gate = await sharing(t, undefined, { config: { limits: { body: '1KiB' } } })
  const { alice, base, run, grants } = gate
  await run(alice)
  const target = `${base}/threadwarden/threads/t1/grants`
  const send = async (method: string, body: string | undefined, type = 'application/json') => {
    const headers = { authorization: `Bearer ${alice}`, ...(body === undefined ? {} : { 'content-type': type }) }
    return (await fetch(target, { method, headers, ...(body === undefined ? {} : { body }) })).status
  }
  t.equal(await send('POST', undefined), 400)
  t.equal(await send('DELETE', undefined), 400)
  t.equal(await send('POST', '[]'), 400)
  t.equal(await send('POST', '{"user":"corp:bob","user":"corp:eve","right":"read"}'), 400)
  t.equal(await send('POST', JSON.stringify(BOB), 'text/plain'), 415)
  t.equal(await send('POST', `{"user":"corp:${'b'.repeat(1100)}","right":"read"}`), 413)
  t.same(reasons(gate), [
    'body-not-json',
    'body-not-json',
    'body-not-object',
    'body-key-repeated',
    'media-type-unsupported',
    'body-too-large',
  ])
  t.same((await grants(alice)).json, { grants: [] })
})

void test('there is nothing to take back of what was not granted, whatever the configuration says of its issuer', async (t) => {
  const gate = await sharing(t)
  const { alice, gateway, grants, run } = gate
  await run(alice)
  const store = await openSqliteStore(join(gateway.folder, 'ownership.db'))
  const grant = { kind: 'user', id: 'former:bob', right: 'read', grantedBy: 'corp:alice', grantedAt: 0 } as const
  await store.grant({ scope: '', threadId: 't1' }, 'corp:alice', grant)
  await store.close()
  t.equal((await grants(alice, { user: 'former:bob' }, 'DELETE')).status, 204)
  for (const body of [{ user: 'former:bob' }, { user: 'corp:bob' }, { group: 'former:bob' }]) {
    const answer = await grants(alice, body, 'DELETE')
    t.same([answer.status, codeOf(answer)], [404, 'not-found'])
  }
  t.same(reasons(gate), ['permitted', 'grant-unknown', 'grant-unknown', 'grant-unknown'])
})

void test('a thread has a bounded number of grants', async (t) => {
  const gate = await sharing(t)
  const { alice, grants, run } = gate
  await run(alice)
  for (let at = 0; at < MAX_GRANTS; at += 1) {
    t.equal((await grants(alice, { user: `corp:user-${at}`, right: 'read' })).status, 201)
  }
  const answer = await grants(alice, BOB)
  t.same([answer.status, codeOf(answer), reasons(gate).at(-1)], [400, 'body-malformed', 'grants-too-many'])
  t.equal((await grants(alice, { user: 'corp:user-0' }, 'DELETE')).status, 204)
  t.equal((await grants(alice, BOB)).status, 201)
})

void test('an operator whom the policy lets at foreign threads acts on the owner’s', async (t) => {
  const { alice, olga, bob, gateway, grants, run } = await sharing(t, undefined, { policy: OPERATORS_SHARE })
  await run(alice)
  t.match(await grants(olga, BOB), { status: 201, json: { ...BOB, grantedBy: 'corp:olga' } })
  t.match(await grants(olga, { user: 'corp:alice', right: 'read' }), { status: 400 }, 'the owner, not the operator')
  t.equal((await grants(olga, { user: 'corp:olga', right: 'read' })).status, 201)
  t.match((await grants(alice)).json, { grants: [{ user: 'corp:bob' }, { user: 'corp:olga' }] })
  t.equal((await grants(bob)).status, 403)
  t.equal((await grants(olga, undefined, 'GET', 't-none')).status, 403, 'there is no thread to act on')
  t.match(
    gateway.lines.filter(({ msg }) => msg === 'a thread was shared'),
    [{ thread: 't1', principal: 'corp:olga', owner: 'corp:alice', target: 'user:corp:bob', right: 'read' }, {}],
  )
})
