/** The list from the ownership table: whose threads, in which form and order. */
import { test } from 'tap'
import { codeOf, runInput } from '../../testing/support/client.ts'
import { edited } from '../../testing/support/policies.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { unlisted, withoutLists, type List } from '../../testing/support/unlisted.ts'
import { json } from '../../testing/support/upstream.ts'

void testEachPair('everybody gets their own threads, the last used first, and the upstream is not asked', async (t, pair) => {
  const { run, ids, alice, bob, olga, asked } = await unlisted(t, 'table', { pair })
  await run(alice, 'a1', 'a2')
  await run(bob, 'b1')
  await run(alice, 'a3')
  t.strictSame(await ids(alice), ['a3', 'a2', 'a1'])
  t.strictSame(await ids(bob), ['b1'])
  t.strictSame(await ids(olga), [], 'an operator is not an owner')
  t.strictSame(asked(), [])
})

void test('a thread stands there as the runtime would write it, and nothing else', async (t) => {
  const { base, call, run, alice } = await unlisted(t, 'table')
  await run(alice, 'a1')
  const answer = await call(`${base}/threads?agentId=default`, { token: alice })
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
  const { threads, nextCursor } = answer.json as { threads: readonly Record<string, string>[]; nextCursor: null }
  t.equal(nextCursor, null, 'the end, as the runtime writes it')
  const [{ createdAt = '', updatedAt = '', ...item } = {}] = threads
  t.strictSame(item, { id: 'a1', name: null, agentId: 'default', organizationId: '', createdById: '', archived: false })
  t.match(createdAt, at)
  t.match(updatedAt, at)
  t.equal(Date.parse(updatedAt) - Date.parse(createdAt), 1000, 'updated when it was used last')
  t.match(answer.headers.get('content-type'), /^application\/json/)
  t.equal(answer.headers.get('cache-control'), 'private, no-store')
})

void testEachPair('limit and cursor walk the list, each thread once', async (t, pair) => {
  const { run, list, alice, bob } = await unlisted(t, 'table', { pair })
  await run(alice, 'a1', 'a2', 'a3')
  await run(bob, 'b1')
  await run(alice, 'a4', 'a5')
  for (const limit of [1, 2, 3, 4, 5, 6]) {
    const pages: List[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: List = await list(alice, `?limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`)
      pages.push(page)
      cursor = page.nextCursor as string | null
    }
    t.strictSame(
      pages.flatMap(({ threads }) => threads.map(({ id }) => id)),
      ['a5', 'a4', 'a3', 'a2', 'a1'],
    )
    t.equal(pages.length, Math.ceil(5 / limit), 'as few pages as it takes')
  }
})

void test('a list is of one agent, if the caller names it', async (t) => {
  const { base, call, run, ids, alice } = await unlisted(t, 'table')
  await run(alice, 'a1')
  await call(`${base}/agent/other/run`, { token: alice, body: runInput('a2') })
  t.strictSame([...(await ids(alice))].toSorted(), ['a1', 'a2'])
  t.strictSame(await ids(alice, '?agentId=default'), ['a1'])
  t.strictSame(await ids(alice, '?agentId=other'), ['a2'])
  t.strictSame(await ids(alice, '?agentId=Other'), [], 'to the letter')
  t.strictSame(await ids(alice, '?agentId=third'), [])
})

/** Operators may read everybody's messages. */
const SUPPORTED = edited(
  '  # The list has exactly',
  '  - name: support\n    routes: [threads/messages]\n    allow: [operator]\n    threads: [foreign]\n\n  # The list has exactly',
)

void test('deleted threads, withheld ones and such as were only suggested on or connected to are in nobody’s list', async (t) => {
  const { base, call, run, ids, change, alice, olga, store } = await unlisted(t, 'table', { policy: SUPPORTED })
  await run(alice, 'a1', 'a2', 'a3')
  await call(`${base}/agent/default/suggest`, { token: alice, body: runInput('s1') })
  await call(`${base}/agent/default/connect`, { token: alice, body: runInput('c1') })
  await change(alice, 'DELETE', 'a1')
  await (await store()).withhold({ scope: '', threadId: 'a2' }, 1)
  for (const query of ['', '?includeArchived=true']) {
    t.strictSame(await ids(alice, query), ['a3'])
    t.strictSame(await ids(olga, query), ['a3'])
  }
})

void test('whoever may read everybody’s messages gets everybody’s threads, page by page', async (t) => {
  const { run, ids, list, alice, bob, olga } = await unlisted(t, 'table', { policy: SUPPORTED })
  await run(alice, 'a1', 'a2')
  await run(bob, 'b1')
  await run(olga, 'o1')
  t.strictSame(await ids(olga), ['o1', 'b1', 'a2', 'a1'])
  const { threads, nextCursor } = await list(olga, '?limit=3')
  t.match(threads, [{ id: 'o1' }, { id: 'b1' }, { id: 'a2' }])
  t.strictSame(await ids(olga, `?limit=3&cursor=${nextCursor}`), ['a1'])
  t.strictSame(await ids(bob), ['b1'])
})

void testEachPair('what was granted is in the list of whoever may read it, as long as it is granted', async (t, pair) => {
  const { run, ids, alice, bob, olga, signer, store } = await unlisted(t, 'table', { pair })
  await run(alice, 'a1', 'a2', 'a3', 'a4')
  const engineer = signer.sign('erin', { groups: ['eng', 'ops'] })
  const keeper = await store()
  const grant = (threadId: string, kind: 'user' | 'group', id: string, right: 'read' | 'write') =>
    keeper.grant({ scope: '', threadId }, null, { kind, id, right, grantedBy: 'operator', grantedAt: 1 })
  await grant('a1', 'user', 'corp:bob', 'read')
  await grant('a2', 'user', 'corp:bob', 'write')
  await grant('a3', 'group', 'corp:eng', 'read')
  await grant('a3', 'group', 'corp:ops', 'write')
  await run(bob, 'b1')
  t.strictSame(await ids(bob), ['b1', 'a2', 'a1'])
  t.strictSame(await ids(engineer), ['a3'], 'once, though both groups have it')
  t.strictSame(await ids(alice), ['a4', 'a3', 'a2', 'a1'], 'they are hers as before')
  t.strictSame(await ids(olga), [])
  await keeper.ungrant({ scope: '', threadId: 'a2' }, null, { kind: 'user', id: 'corp:bob' })
  t.strictSame(await ids(bob), ['b1', 'a1'])
})

void test('a policy that counts no grants keeps what was granted out of the list', async (t) => {
  const policy = edited('sharing: true', 'sharing: false')
  const { run, ids, alice, bob, store } = await unlisted(t, 'table', { policy })
  await run(alice, 'a1')
  const granted = { kind: 'user', id: 'corp:bob', right: 'write', grantedBy: 'operator', grantedAt: 1 } as const
  await (await store()).grant({ scope: '', threadId: 'a1' }, null, granted)
  t.strictSame(await ids(bob), [])
})

void test('anonymous callers get no list; where everybody is one user, they get that one’s', async (t) => {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const authentication = { ...signer.authentication, mode: 'optional' }
  const optional = await unlisted(t, 'table', { signer, config: { authentication } })
  const refused = await optional.call(`${optional.base}/threads`)
  t.strictSame([refused.status, codeOf(refused)], [403, 'not-allowed'])
  const off = await unlisted(t, 'table', { config: { authentication: { mode: 'off' } } })
  for (const id of ['x1', 'x2']) await off.call(`${off.base}/agent/default/run`, { body: runInput(id) })
  const { threads } = (await off.call(`${off.base}/threads`)).json as List
  t.strictSame(threads.map(({ id }) => id).toSorted(), ['x1', 'x2'])
})

void test('a run that the upstream refused leaves nothing in the list', async (t) => {
  const { base, call, ids, alice, upstream } = await unlisted(t, 'table')
  upstream.answer(json({ error: 'no' }, 400))
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('a1') })
  t.strictSame(await ids(alice), [])
  upstream.answer(withoutLists)
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('a1') })
  t.strictSame(await ids(alice), ['a1'])
})
