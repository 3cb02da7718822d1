/** Names, archives and ends where threads are listed from the table: the upstream is asked first, and its 422 is done here. */
import { test } from 'tap'
import { codeOf, runInput } from '../../testing/support/client.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { NO_LISTS, unlisted, type Unlisted } from '../../testing/support/unlisted.ts'
import { json } from '../../testing/support/upstream.ts'

const ITEM = { agentId: 'default', organizationId: '', createdById: '', createdAt: /Z$/, updatedAt: /Z$/ }

/** Grants bob a thread of alice's. */
async function granted({ store }: Unlisted, threadId: string, right: 'read' | 'write'): Promise<void> {
  const grant = { kind: 'user', id: 'corp:bob', right, grantedBy: 'operator', grantedAt: 1 } as const
  await (await store()).grant({ scope: '', threadId }, null, grant)
}

void testEachPair(
  'a new name, an archive and its end are kept in the table, and answered as the runtime would',
  async (t, pair) => {
    const { run, list, ids, change, alice, asked } = await unlisted(t, 'table', { pair })
    await run(alice, 'a1', 'a2')
    const named = await change(alice, 'PATCH', 'a1', { name: 'Holidays' })
    t.match([named.status, named.json], [200, { ...ITEM, id: 'a1', name: 'Holidays', archived: false }])
    t.match(
      await list(alice),
      {
        threads: [
          { id: 'a2', name: null },
          { id: 'a1', name: 'Holidays' },
        ],
      },
      'in its place as before',
    )

    const archived = await change(alice, 'POST', 'a1/archive')
    t.strictSame([archived.status, archived.json], [200, { threadId: 'a1', archived: true }])
    t.strictSame(await ids(alice), ['a2'])
    t.match(await list(alice, '?includeArchived=true'), {
      threads: [
        { id: 'a2', archived: false },
        { id: 'a1', archived: true },
      ],
    })
    const again = await change(alice, 'PATCH', 'a1', { archived: false })
    t.match([again.status, again.json], [200, { id: 'a1', name: 'Holidays', archived: false }])
    t.strictSame(await ids(alice), ['a2', 'a1'])

    const deleted = await change(alice, 'DELETE', 'a1')
    t.strictSame([deleted.status, deleted.json], [200, { threadId: 'a1', deleted: true }])
    t.strictSame(await ids(alice, '?includeArchived=true'), ['a2'])
    const calls = ['PATCH /threads/a1', 'POST /threads/a1/archive', 'PATCH /threads/a1', 'DELETE /threads/a1']
    t.strictSame(asked(), calls, 'each was the upstream’s to do first')
  },
)

void test('a thread that the table alone deleted is nobody else’s, and its owner begins it anew', async (t) => {
  const { base, call, run, ids, change, alice, bob, store } = await unlisted(t, 'table')
  await run(alice, 'a1')
  await change(alice, 'DELETE', 'a1')
  const row = (await (await store()).thread({ scope: '', threadId: 'a1' }))?.row
  t.match(row, { owner: 'corp:alice', deletedAt: Number })
  for (const path of ['run', 'connect']) {
    const refused = await call(`${base}/agent/default/${path}`, { token: bob, body: runInput('a1') })
    t.strictSame([refused.status, codeOf(refused)], [403, 'not-owner'], path)
  }
  const connect = await call(`${base}/agent/default/connect`, { token: alice, body: runInput('a1') })
  t.strictSame([connect.status, connect.text], [200, ''], 'a page that opens it finds nothing')
  t.equal((await change(alice, 'DELETE', 'a1')).status, 403, 'it is not there any more')
  await run(alice, 'a1')
  t.strictSame(await ids(alice), ['a1'])
})

void test('such a tombstone is never thrown away by its age, unlike one that the upstream has confirmed', async (t) => {
  const { run, change, alice, upstream, store } = await unlisted(t, 'table')
  await run(alice, 'a1', 'a2')
  await change(alice, 'DELETE', 'a1')
  upstream.answer(json({ threadId: 'a2', deleted: true }))
  await change(alice, 'DELETE', 'a2')
  const keeper = await store()
  t.equal(await keeper.prune({ deletedBefore: Date.now() + 1e9 }, 10), 1)
  t.equal((await keeper.thread({ scope: '', threadId: 'a2' }))?.row ?? null, null)
  t.ok((await keeper.thread({ scope: '', threadId: 'a1' }))?.row)
})

void testEachPair(
  'whoever was granted writing may give a name, and neither archive nor delete; readers may nothing of it',
  async (t, pair) => {
    const scene = await unlisted(t, 'table', { pair })
    const { run, list, change, alice, bob, olga } = scene
    await run(alice, 'a1', 'a2')
    await granted(scene, 'a1', 'write')
    await granted(scene, 'a2', 'read')
    const named = await change(bob, 'PATCH', 'a1', { name: 'Ours' })
    t.match([named.status, named.json], [200, { id: 'a1', name: 'Ours', createdById: '' }])
    t.notMatch(named.text, /alice/, 'nobody’s id')
    t.match(await list(alice), { threads: [{ id: 'a2' }, { id: 'a1', name: 'Ours' }] })
    for (const [token, method, path, body] of [
      [bob, 'PATCH', 'a1', { archived: true }],
      [bob, 'PATCH', 'a1', { archived: false }],
      [bob, 'PATCH', 'a1', { name: 'Mine', archived: true }],
      [bob, 'POST', 'a1/archive', {}],
      [bob, 'DELETE', 'a1', {}],
      [bob, 'PATCH', 'a2', { name: 'Mine' }],
      [bob, 'DELETE', 'a2', {}],
      [olga, 'PATCH', 'a1', { name: 'Mine' }],
      [olga, 'DELETE', 'a1', {}],
    ] as const) {
      const refused = await change(token, method, path, body)
      t.strictSame([refused.status, codeOf(refused)], [403, 'not-owner'], `${method} ${path} ${JSON.stringify(body)}`)
    }
    t.match(await list(alice), {
      threads: [
        { id: 'a2', name: null },
        { id: 'a1', name: 'Ours', archived: false },
      ],
    })
  },
)

void test('a body that no client sends is not made something of: the 422 passes', async (t) => {
  const { run, list, change, alice } = await unlisted(t, 'table')
  await run(alice, 'a1')
  await change(alice, 'PATCH', 'a1', { name: 'Holidays' })
  for (const body of [
    { name: 5 },
    { name: ['x'] },
    { name: {} },
    { name: true },
    { archived: 'true' },
    { archived: null },
    { archived: 1 },
    { name: 'x', archived: 'no' },
    { name: 5, archived: true },
  ]) {
    const answer = await change(alice, 'PATCH', 'a1', body)
    t.strictSame([answer.status, answer.json], [422, NO_LISTS], JSON.stringify(body))
  }
  t.match(await list(alice), { threads: [{ id: 'a1', name: 'Holidays', archived: false }] })
})

void test('a name is cut at 1000 characters, may be taken away, and is a text in every store', async (t) => {
  const { run, change, alice } = await unlisted(t, 'table')
  await run(alice, 'a1')
  for (const [name, kept] of [
    ['x'.repeat(1500), 'x'.repeat(1000)],
    [null, null],
    ['', ''],
    ['a\0b', 'a\ufffdb'],
    ['\ud800', '\ufffd'],
    ['é 漢 🙂', 'é 漢 🙂'],
  ] as const) {
    t.match((await change(alice, 'PATCH', 'a1', { name })).json, { name: kept }, JSON.stringify(name?.slice(0, 10)))
  }
  t.match((await change(alice, 'PATCH', 'a1')).json, { id: 'a1', name: 'é 漢 🙂' }, 'nothing to change is no fault')
})
