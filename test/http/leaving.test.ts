/** Whoever a thread was shared with may leave it: they take back the grant that names exactly them, and no other one. */
import { test } from 'tap'
import { edited, SHIPPED } from '../../testing/support/policies.ts'
import { call, codeOf } from '../../testing/support/client.ts'
import { reasons, sharing, type Sharing } from '../../testing/support/sharing.ts'
import type { Test } from 'tap'
import { json } from '../../testing/support/upstream.ts'

const BOB = { user: 'corp:bob' }

/** A thread of alice's that bob may read, and a group may, by the shipped policy. */
async function shared(t: Test, right = 'read'): Promise<Sharing> {
  const gate = await sharing(t, undefined, { policy: SHIPPED })
  await gate.run(gate.alice)
  await gate.operate({ ...BOB, right })
  await gate.operate({ user: 'corp:carol', right: 'write' })
  await gate.operate({ group: 'corp:eng', right: 'write' })
  return gate
}

const GRANTEES = ['corp:bob', 'corp:carol', 'corp:eng']

/** To whom the thread is shared, as the admin API says. */
async function grantees(gate: Sharing): Promise<readonly string[]> {
  const { grants } = (await gate.operate()).json as { grants: readonly { user?: string; group?: string }[] }
  return grants.map(({ user = '', group = '' }) => user + group).sort()
}

for (const right of ['read', 'write']) {
  void test(`whoever may ${right} leaves, by the shipped policy, and nobody else is put out`, async (t) => {
    const gate = await shared(t, right)
    const { bob, base, grants, upstream } = gate
    const read = () => call(`${base}/threads/t1/messages`, { token: bob })
    t.equal((await read()).status, 200)
    const before = upstream.beginnings()
    t.equal((await grants(bob, BOB, 'DELETE')).status, 204)
    t.equal(upstream.beginnings(), before, 'the upstream hears nothing')
    t.same(await grantees(gate), ['corp:carol', 'corp:eng'])
    t.equal((await read()).status, 403)
    const again = await grants(bob, BOB, 'DELETE')
    t.same([again.status, codeOf(again)], [403, 'not-owner'], 'to whom it is not shared any more it looks like any other')
  })
}

void test('nobody takes back what names somebody else, however it is written', async (t) => {
  const gate = await shared(t, 'write')
  const { bob, signer, grants } = gate
  const eve = signer.sign('eve', { groups: ['eng'] })
  for (const token of [bob, eve]) {
    for (const body of [
      { user: 'corp:carol' },
      { group: 'corp:eng' },
      { group: 'corp:bob' },
      { user: 'corp:BOB' },
      { user: 'corp:bob ' },
      { user: 'bob' },
      { user: ['corp:bob'] },
      { user: { id: 'corp:bob' } },
      { user: null, group: 'corp:eng' },
      { ...BOB, group: 'corp:eng' },
      { ...BOB, group: null },
      {},
    ]) {
      const answer = await grants(token, body, 'DELETE')
      t.match(answer.status, /^40[03]$/, JSON.stringify(body))
    }
    for (const [body, method] of [
      [undefined, 'GET'],
      [{ ...BOB, right: 'write' }, 'POST'],
    ] as const)
      t.equal((await grants(token, body, method)).status, 403, `${method} stays with the owner`)
  }
  const more = await grants(bob, { ...BOB, right: 'read' }, 'DELETE')
  t.same([more.status, codeOf(more)], [400, 'body-malformed'], 'a body is taken to the letter')
  t.same(await grantees(gate), GRANTEES)
})

void test('a repeated key names nobody', async (t) => {
  const gate = await shared(t)
  const text = '{"user":"corp:bob","user":"corp:carol"}'
  const headers = { authorization: `Bearer ${gate.bob}`, 'content-type': 'application/json' }
  const answer = await fetch(`${gate.base}/threadwarden/threads/t1/grants`, { method: 'DELETE', headers, body: text })
  t.equal(answer.status, 400)
  t.same(await grantees(gate), GRANTEES)
})

void test('whom a group was let in with has no grant of their own to take back', async (t) => {
  const gate = await shared(t)
  const eve = gate.signer.sign('eve', { groups: ['eng'] })
  const answer = await gate.grants(eve, { user: 'corp:eve' }, 'DELETE')
  t.same([answer.status, reasons(gate).at(-1)], [404, 'grant-unknown'])
  t.same(await grantees(gate), GRANTEES)
})

void test('to everybody else a thread looks as if it were not there', async (t) => {
  const gate = await shared(t)
  const mallory = gate.signer.sign('mallory')
  const there = await gate.grants(mallory, { user: 'corp:mallory' }, 'DELETE')
  const missing = await gate.grants(mallory, { user: 'corp:mallory' }, 'DELETE', 'none')
  t.equal(there.status, 403)
  t.same([missing.status, missing.text], [there.status, there.text])
})

void test('it is the policy that opens it: not without its rule, and not where grants don’t count', async (t) => {
  for (const policy of [
    edited('threads: [shared]\n\n  # Owners cannot', 'threads: [own]\n\n  # Owners cannot'),
    edited('sharing: true', 'sharing: false'),
  ]) {
    const gate = await sharing(t, undefined, { policy })
    await gate.run(gate.alice)
    await gate.operate({ ...BOB, right: 'read' })
    t.equal((await gate.grants(gate.bob, BOB, 'DELETE')).status, 403)
    t.same(await grantees(gate), ['corp:bob'])
  }
})

void test('grants are limited per owner and time, and taking back is not', async (t) => {
  const gate = await sharing(t, undefined, { config: { limits: { grants: '1/m' } } })
  const { alice, grants, run } = gate
  await run(alice)
  const give = (name: string) => grants(alice, { user: `corp:${name}`, right: 'read' })
  t.equal((await give('one')).status, 201)
  t.equal((await grants(alice, { user: 'one' })).status, 400, 'what is malformed is not counted')
  t.equal((await give('two')).status, 201)
  const third = await give('three')
  t.same([third.status, codeOf(third), reasons(gate).at(-1)], [429, 'rate-limited', 'grants-limited'])
  t.equal(third.headers.get('ratelimit-policy'), '"grants";q=2;w=120')
  t.ok(Number(third.headers.get('retry-after')) > 0)
  for (const name of ['one', 'two']) t.equal((await grants(alice, { user: `corp:${name}` }, 'DELETE')).status, 204)
  t.equal((await gate.operate({ user: 'corp:four', right: 'read' })).status, 201, 'operators are not limited by it')
})

void test('grants per claim count the owners of a tenant together', async (t) => {
  const gate = await sharing(t, undefined, { config: { limits: { grants: { rate: '1/m', per: '/tenant' } } } })
  const { run, grants, signer } = gate
  const give = async (name: string, claims: Record<string, unknown>): Promise<number> => {
    const token = signer.sign(name, claims)
    await run(token, `of-${name}`)
    return (await grants(token, { user: 'corp:friend', right: 'read' }, undefined, `of-${name}`)).status
  }
  const acme = { tenant: 'acme' }
  t.same([await give('one', acme), await give('two', acme), await give('three', acme)], [201, 201, 429])
  t.equal(await give('four', { tenant: 'other' }), 201)
})

void test('of a thread that was shared nobody is told whose it is, by a list or by a new name', async (t) => {
  const { base, alice, bob, operate, run, upstream } = await sharing(t, undefined, { policy: SHIPPED })
  await run(alice)
  await run(bob, 't2')
  await operate({ ...BOB, right: 'write' })
  const item = (id: string) => ({
    id,
    name: 'n',
    createdById: 'upstream-id-of-the-owner',
    createdBy: { id: 'upstream-id-of-the-owner' },
    ownerId: 'corp:the-owner',
    userId: 'the-owner',
    updatedAt: 'today',
  })
  upstream.answer(json({ threads: [item('t1'), item('t2')] }))
  const list = async (token: string) => ((await call(`${base}/threads`, { token })).json as { threads: unknown[] }).threads
  const plain = { id: 't1', name: 'n', createdById: '', updatedAt: 'today' }
  t.strictSame(await list(bob), [plain, item('t2')], 'their own stay as they are')
  t.strictSame(await list(alice), [item('t1')])
  upstream.answer(json(item('t1')))
  const rename = (token: string) =>
    call(`${base}/threads/t1`, { token, method: 'PATCH', body: { agentId: 'default', name: 'n' } })
  t.strictSame((await rename(bob)).json, plain)
  t.strictSame((await rename(alice)).json, item('t1'))
  upstream.answer(json({ error: 'upstream-id-of-the-owner is away' }, 503))
  t.equal((await rename(bob)).status, 503)
})
