/**
 * What a caller might try on a list that the gateway serves from its own table: cursors that are made up, changed, somebody
 * else's or another list's (CWE-565, CWE-639); limits that ask for everything or nothing; names of other people and their agents
 * in the query; changes of threads that are not theirs, by whatever route and spelling (CWE-863). Nothing of it shows or changes
 * another's thread, and none of the refused ones reaches the upstream.
 */
import { test } from 'tap'
import { codeOf, runInput } from '../../testing/support/client.ts'
import { MULTI_ROUTE, type Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { unlisted, type List, type Unlisted } from '../../testing/support/unlisted.ts'
import { json } from '../../testing/support/upstream.ts'

/** Alice's threads a1 to a3 and bob's b1 to b3, used in turn. */
async function owned(t: Parameters<typeof unlisted>[0], pair: Pair, lists: 'table' | 'auto' = 'table'): Promise<Unlisted> {
  const scene = await unlisted(t, lists, { pair })
  for (const at of [1, 2, 3]) {
    await scene.run(scene.alice, `a${at}`)
    await scene.run(scene.bob, `b${at}`)
  }
  return scene
}

async function cursorOf({ list }: Unlisted, token: string, query = ''): Promise<string> {
  const { nextCursor } = await list(token, `?limit=1${query}`)
  if (typeof nextCursor !== 'string') throw new Error('there is no cursor')
  return nextCursor
}

void testEachPair('a cursor is good for the user and the list that it was given for, and for nothing else', async (t, pair) => {
  const scene = await owned(t, pair)
  const { base, call, alice, bob, signer } = scene
  const [mine, his, named] = [
    await cursorOf(scene, alice),
    await cursorOf(scene, bob),
    await cursorOf(scene, alice, '&agentId=default'),
  ]
  const bytes = Buffer.from(mine, 'base64url')
  const flipped = Array.from({ length: bytes.length }, (_, at) => {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    return changed.toString('base64url')
  })
  for (const [what, cursor, query = ''] of [
    ['bob’s', his],
    ['that of another agent’s list', named],
    ['that of the list of all agents', mine, '&agentId=default'],
    ['that of a list without archived threads', mine, '&includeArchived=true'],
    ['none', ''],
    ['a thread', 'b1'],
    ['a place in the clear', Buffer.from(JSON.stringify(['b1', 0])).toString('base64url')],
    ['another spelling', `${mine}=`],
    ['a piece', mine.slice(0, -4)],
    ['two', mine + mine],
    ...flipped.map((one, at) => [`byte ${at} changed`, one] as const),
  ] as const) {
    const answer = await call(`${base}/threads?limit=1&cursor=${cursor}${query}`, { token: alice })
    t.strictSame([answer.status, codeOf(answer)], [400, 'target-malformed'], what)
  }
  const elsewhere = await call(`${base}/threads?limit=1&cursor=${mine}`, { token: signer.sign('alicE') })
  t.equal(elsewhere.status, 400, 'a user whose id differs by a letter')
  t.match((await call(`${base}/threads?limit=1&cursor=${mine}`, { token: alice })).json, { threads: [{ id: 'a2' }] }, 'its own')
})

void test('a cursor of the upstream’s list is none of the table’s', async (t) => {
  const { base, call, alice, upstream, list } = await owned(t, MULTI_ROUTE, 'auto')
  const fromTable = (await list(alice, '?limit=1')).nextCursor
  // The place behind it is in the upstream's second page, whose name could be a thread's.
  upstream.answer((request, response) => {
    const isSecond = request.target.includes('cursor=')
    return json({ threads: [{ id: isSecond ? 'a2' : 'a1' }], nextCursor: isSecond ? null : 'a2' })(request, response)
  })
  const fromUpstream = (await list(alice, '?limit=1')).nextCursor
  upstream.answer(json({ error: 'no lists' }, 422))
  const late = await call(`${base}/threads?limit=1&cursor=${fromUpstream}`, { token: alice })
  t.strictSame([late.status, codeOf(late)], [400, 'target-malformed'], 'the upstream has lost its lists meanwhile')
  t.match(await list(alice, `?limit=1&cursor=${fromTable}`), { threads: [{ id: 'a2' }] })
})

void testEachPair('a limit that is none is 400; a huge one gives the caller’s own threads, and no more', async (t, pair) => {
  const { base, call, alice, ids } = await owned(t, pair)
  for (const limit of ['0', '-1', '', '1.5', '1e3', '0x1', '01', '+1', '9999999', 'NaN', 'Infinity', 'all', '1%2C1']) {
    const answer = await call(`${base}/threads?limit=${limit}`, { token: alice })
    t.strictSame([answer.status, codeOf(answer)], [400, 'target-malformed'], limit)
  }
  for (const limit of ['1000', '1001', '999999']) t.strictSame(await ids(alice, `?limit=${limit}`), ['a3', 'a2', 'a1'])
})

void testEachPair('nothing in the query makes it anybody else’s list', async (t, pair) => {
  const { base, call, alice, bob, ids } = await owned(t, pair)
  await call(`${base}/agent/hers/run`, { token: alice, body: runInput('a9') })
  t.strictSame(await ids(bob, '?agentId=hers'), [], 'an agent that only others have used')
  for (const query of [
    'userId=corp:alice',
    'user=alice',
    'createdById=corp%3Aalice',
    'owner=corp:alice',
    'organizationId=',
    'scope=',
    'everybody=true',
    'includeArchived=true&includeDeleted=true',
    'q=a1',
  ]) {
    t.strictSame(await ids(bob, `?${query}`), ['b3', 'b2', 'b1'], query)
  }
  for (const [query, code] of [
    ['agentId=default&agentId=hers', 'target-malformed'],
    ['limit=1&limit=1000', 'target-malformed'],
    ['agentId=', 'agent-id-invalid'],
    ['agentId=%27%20OR%201%3D1%20--', 'agent-id-invalid'],
    ['agentId=%25', 'agent-id-invalid'],
    ['agentId=__proto__', 'agent-id-invalid'],
  ] as const) {
    const answer = await call(`${base}/threads?${query}`, { token: bob })
    t.strictSame([answer.status, codeOf(answer)], [400, code], query)
  }
})

void test('a list tells nothing of others’ threads: two worlds that differ in them alone are one', async (t) => {
  const [alone, among] = [await unlisted(t, 'table'), await unlisted(t, 'table')]
  for (const scene of [alone, among]) await scene.run(scene.alice, 'a1', 'a2')
  for (let at = 0; at < 30; at += 1)
    await among.call(`${among.base}/agent/default/run`, { token: among.bob, body: runInput(`b${at}`) })
  const shown = async ({ list, alice }: Unlisted, query: string) => {
    const { threads, nextCursor, ...more } = await list(alice, query)
    return { threads: threads.map(({ id }) => id), length: nextCursor?.length ?? nextCursor, more }
  }
  for (const query of ['', '?limit=1', '?limit=2', '?agentId=default', '?includeArchived=true&limit=1']) {
    t.strictSame(await shown(among, query), await shown(alone, query), query)
  }
  const { threads, nextCursor } = await among.list(among.alice, '?limit=1')
  t.notMatch(JSON.stringify(threads), /corp|alice|bob|b\d/, 'no user, no thread of others’')
  t.notMatch(Buffer.from(String(nextCursor), 'base64url').toString('latin1'), /corp|alice|bob/)
})

void testEachPair('a thread of another user is not changed, by any route, and the upstream is not asked', async (t, pair) => {
  const { base, call, alice, bob, ids, list, asked } = await owned(t, pair)
  const before = await list(alice, '?includeArchived=true')
  const attempts = [
    ['PATCH', 'a1', { name: 'mine' }],
    ['PATCH', 'a1', { archived: true }],
    ['PATCH', 'a1', { name: 'mine', userId: 'corp:alice', createdById: 'corp:alice' }],
    ['POST', 'a1/archive', { threadId: 'b1' }],
    ['DELETE', 'a1', { threadId: 'b1' }],
    ['DELETE', 'a1', {}],
    ['DELETE', 'new', {}],
    ['PATCH', 'new', { name: 'mine' }],
  ] as const
  for (const [method, path, body] of attempts) {
    const answer = await call(`${base}/threads/${path}`, { method, token: bob, body: { agentId: 'default', ...body } })
    t.strictSame([answer.status, codeOf(answer)], [403, 'not-owner'], `${method} ${path}`)
  }
  const unsigned = await call(`${base}/threads/a1`, { method: 'DELETE', body: { agentId: 'default' } })
  t.equal(unsigned.status, 401)
  t.strictSame(asked(), [])
  t.strictSame(await list(alice, '?includeArchived=true'), before)
  t.strictSame(await ids(bob), ['b3', 'b2', 'b1'])
})

void test('a body can’t name another thread than the path: only its name and archive are read', async (t) => {
  const { change, alice, list, asked, upstream } = await owned(t, MULTI_ROUTE)
  const sent = { name: 'Holidays', id: 'b1', threadId: 'b1', userId: 'corp:bob', createdById: 'corp:bob', organizationId: 'x' }
  const answer = await change(alice, 'PATCH', 'a1', sent)
  t.match(answer.json, { id: 'a1', name: 'Holidays', createdById: '', organizationId: '' })
  t.strictSame(asked(), ['PATCH /threads/a1'])
  t.strictSame(upstream.requests.at(-1)?.json, { agentId: 'default', name: 'Holidays' })
  t.equal(((await list(alice)) satisfies List).threads.filter(({ name }) => name !== null).length, 1)
})
