/**
 * What a filtered list still tells of the threads that were taken out: totals, headers, join codes, the upstream's cursor, the
 * length of one's own, an error text, a page that is shorter than asked for (CWE-213, CWE-203; the codes of the managed platform
 * are live subscriptions, runtime-behaviour.md, "What the runtime does not check"). Two worlds that differ only in other people's threads are one to a caller,
 * byte for byte but for the sealed cursor, which says nothing, even by its length, and is good for nobody else.
 */
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import type { Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { sendRaw } from '../../testing/support/raw.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'
import { BASE, codeIn, run } from './thread-routes.ts'

const LIST = `${BASE}/threads`

/** A gateway where alice owns the threads a1 to a3, and bob b1. */
async function owned(t: Parameters<typeof gated>[0], pair: Pair, config: object = {}): Promise<GatedUpstream> {
  const gate = await gated(t, events(), { pair, config: { ...config } })
  for (const id of ['a1', 'a2', 'a3']) t.equal(await run(gate.gateway, gate.alice, id), 200)
  t.equal(await run(gate.gateway, gate.bob, 'b1'), 200)
  return gate
}

const items = (...ids: string[]): { id: string }[] => ids.map((id) => ({ id }))

/** Everything that an upstream might write beside the threads. */
const BESIDE = {
  joinCode: 'code-of-all',
  joinToken: 'token-of-all',
  total: 17,
  count: 17,
  totalCount: 17,
  hasMore: true,
  has_more: true,
  pageInfo: { total: 17, endCursor: 'b1' },
  meta: { users: ['bob'] },
  owner: 'bob',
  prevCursor: 'b1',
  deleted: ['b9'],
  __typename: 'b1',
}
const TELLING = {
  etag: '"17"',
  'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT',
  'x-total-count': '17',
  'x-next-cursor': 'b1',
  'content-range': 'items 0-1/17',
  link: '</threads?cursor=b1>; rel="next"',
  'set-cookie': 'owner=bob',
  'server-timing': 'db;desc="17 rows"',
  'x-owner': 'bob',
  vary: 'x-user',
}

void testEachPair('what else stands beside the threads, or in the headers, is dropped', async (t, pair) => {
  const { gateway, alice, upstream } = await owned(t, pair)
  upstream.answer(json({ ...BESIDE, threads: [{ id: 'a1', name: 'mine', any: { thing: [1] } }] }, 200, TELLING))
  const answer = await gateway.ask({ target: LIST, token: alice })
  t.equal(answer.body, '{"threads":[{"id":"a1","name":"mine","any":{"thing":[1]}}],"nextCursor":null}')
  t.same([...answer.headers.keys()].sort(), [
    'cache-control',
    'connection',
    'content-length',
    'content-type',
    'date',
    'x-request-id',
  ])
  t.equal(answer.headers.get('content-type'), 'application/json')
  t.equal(answer.headers.get('cache-control'), 'private, no-store')
})

void testEachPair('join codes pass where the upstream scopes users itself, and only strings', async (t, pair) => {
  const { gateway, alice, upstream } = await owned(t, pair, { upstream: { userScoped: true } })
  for (const [codes, body] of [
    [{}, '{"threads":[{"id":"a1"}],"nextCursor":null,"joinCode":"code-of-all","joinToken":"token-of-all"}'],
    [{ joinCode: { a: 1 }, joinToken: 1 }, '{"threads":[{"id":"a1"}],"nextCursor":null}'],
  ] as const) {
    upstream.answer(json({ ...BESIDE, ...codes, threads: items('a1') }, 200, TELLING))
    t.equal((await gateway.ask({ target: LIST, token: alice })).body, body)
  }
})

void testEachPair('of several pages the join codes of the first pass, for they are those of the whole list', async (t, pair) => {
  const { gateway, alice, upstream } = await owned(t, pair, { upstream: { userScoped: true } })
  upstream.answer((request, response) =>
    (request.target.includes('cursor=')
      ? json({ threads: items('a2'), joinCode: 'code-of-the-second' })
      : json({ threads: items('a1'), nextCursor: 'two', joinCode: 'code-of-the-first' }))(request, response),
  )
  const answer = await gateway.ask({ target: LIST, token: alice })
  t.equal(answer.body, '{"threads":[{"id":"a1"},{"id":"a2"}],"nextCursor":null,"joinCode":"code-of-the-first"}')
})

/** The whole answer without what differs between any two: date, request id and the sealed cursor. */
async function seen(gate: GatedUpstream, query: string): Promise<string> {
  const text = await sendRaw(gate.gateway.url, gate.gateway.bytes({ target: `${LIST}${query}`, token: gate.alice }))
  return text
    .replace(/\r\ndate: [^\r]*/i, '')
    .replace(/\r\nx-request-id: [^\r]*/i, '')
    .replace(/"nextCursor":"([A-Za-z0-9_-]*)"/, (_, cursor: string) => `"nextCursor":"${'.'.repeat(cursor.length)}"`)
}

void testEachPair(
  'other people’s threads change nothing of an answer: neither a byte nor the length of a cursor',
  async (t, pair) => {
    const gate = await owned(t, pair)
    const page = (list: { id: string }[], more: object = {}): Answering => json({ threads: list, ...more })
    const more = Array.from({ length: 400 }, (_, at) => `b-other-${at}`)
    const worlds: Record<string, Answering> = {
      'alone in the world': page(items('a1', 'a2', 'a3')),
      'others before': page(items(...more, 'a1', 'a2', 'a3')),
      'others between': page(items('a1', 'b1', ...more, 'a2', 'b2', 'a3')),
      'others behind': page(items('a1', 'a2', 'a3', 'b1', ...more)),
      'with counts': page(items('a1', 'a2', 'b1', 'a3'), BESIDE),
      'others on a page behind': (request, response) =>
        (request.target.includes('cursor=')
          ? page(items('b1', ...more))
          : page(items('a1', 'a2', 'a3'), { nextCursor: 'b1-and-400-others' }))(request, response),
      'own ones on pages between those of others': (request, response) => {
        const at = Number(new URL(request.target, 'http://a').searchParams.get('cursor') ?? 0)
        const pages = [items('b1'), items('a1'), items(...more), items('a2', 'b2'), [], items('a3'), items('b3')]
        return page(pages[at] ?? [], at + 1 < pages.length ? { nextCursor: String(at + 1) } : {})(request, response)
      },
    }
    for (const query of ['', '?limit=1', '?limit=2', '?limit=3', '?limit=4', '?limit=1000&agentId=default']) {
      gate.upstream.answer(worlds['alone in the world']!)
      const alone = await seen(gate, query)
      t.match(alone, /^HTTP\/1\.1 200 /)
      t.equal(alone.includes('"nextCursor":"'), query === '?limit=1' || query === '?limit=2')
      for (const [name, answering] of Object.entries(worlds)) {
        gate.upstream.answer(answering)
        t.equal(await seen(gate, query), alone, `${name}, ${query}`)
      }
    }
  },
)

void testEachPair('a refusal of a list says nothing but its code', async (t, pair) => {
  const { gateway, alice, upstream } = await owned(t, pair)
  for (const answering of [
    json({ threads: [{ id: 'b1', name: 'secret' }, 5] }),
    json({ error: 'thread b1 of bob is broken', threads: 'secret' }),
    json('secret b1'),
  ]) {
    upstream.answer(answering)
    const answer = await gateway.ask({ target: LIST, token: alice })
    t.same([answer.status, codeIn(answer)], [502, 'upstream-unusable'])
    t.notMatch(answer.body, /secret|b1|bob/)
  }
})

async function withCursor(t: Parameters<typeof gated>[0], pair: Pair) {
  const gate = await owned(t, pair)
  gate.upstream.answer(json({ threads: items('a1', 'a2', 'a3', 'b1'), nextCursor: null }))
  const { body } = await gate.gateway.ask({ target: `${LIST}?limit=1`, token: gate.alice })
  return { ...gate, cursor: (JSON.parse(body) as { nextCursor: string }).nextCursor, before: gate.upstream.beginnings() }
}

void testEachPair('a cursor that was not sealed here is 400 and the upstream is not asked', async (t, pair) => {
  const { gateway, alice, upstream, cursor, before } = await withCursor(t, pair)
  const bytes = Buffer.from(cursor, 'base64url')
  const flipped = Array.from({ length: bytes.length }, (_, at) => {
    const copy = Buffer.from(bytes)
    copy[at]! ^= 1
    return copy.toString('base64url')
  })
  const forged = [
    '',
    '0',
    '1',
    'page-1',
    'null',
    'b1',
    'AAAA',
    '%5Bnull,0%5D',
    Buffer.from('[null,0]').toString('base64url'),
    Buffer.from('{"page":null,"offset":0}').toString('base64url'),
    ...[0, 1, 11, 12, 27, 28, 29, bytes.length].map((length) => Buffer.alloc(length).toString('base64url')),
    bytes.subarray(0, 28).toString('base64url'),
    bytes.subarray(12).toString('base64url'),
    Buffer.concat([bytes, bytes]).toString('base64url'),
    bytes.toString('hex'),
    encodeURIComponent(bytes.toString('base64')),
    cursor.slice(0, -1),
    cursor.slice(0, -4),
    cursor.slice(4),
    `${cursor}A`,
    `${cursor}AAAA`,
    `${cursor}%3D`,
    `${cursor}%20`,
    `%20${cursor}`,
    `${cursor}.`,
    cursor.toLowerCase(),
    'A'.repeat(4000),
    ...flipped,
  ].filter((one) => one !== cursor)
  for (const one of forged) {
    const answer = await gateway.ask({ target: `${LIST}?limit=1&cursor=${one}`, token: alice })
    t.same([answer.status, codeIn(answer)], [400, 'target-malformed'], one.slice(0, 60))
  }
  const twice = await gateway.ask({ target: `${LIST}?cursor=${cursor}&cursor=${cursor}`, token: alice })
  t.same([twice.status, codeIn(twice)], [400, 'target-malformed'])
  t.equal(upstream.beginnings(), before)
})

void testEachPair('a cursor is good for the user and the query that it was made for, and for no other', async (t, pair) => {
  const { gateway, alice, bob, olga, signer, upstream, cursor, before } = await withCursor(t, pair)
  for (const [token, query] of [
    [bob, ''],
    [olga, ''],
    [signer.sign('Alice'), ''],
    [signer.sign('alice '), ''],
    [signer.sign('alice",[],"'), ''],
    [alice, '&agentId=default'],
    [alice, '&agentId=other'],
    [alice, '&includeArchived=true'],
    [alice, '&includeArchived='],
  ] as const) {
    const answer = await gateway.ask({ target: `${LIST}?limit=1&cursor=${cursor}${query}`, token })
    t.same([answer.status, codeIn(answer)], [400, 'target-malformed'], query)
  }
  t.equal(upstream.beginnings(), before)
  for (const query of ['?limit=5&', '?', '?unknown=1&']) {
    const rest = await gateway.ask({ target: `${LIST}${query}cursor=${cursor}`, token: signer.sign('alice') })
    t.equal(
      rest.body,
      '{"threads":[{"id":"a2"},{"id":"a3"}],"nextCursor":null}',
      'another limit is no other query, another token no other user',
    )
  }
  t.equal(upstream.requests.at(-1)?.target, LIST, 'the upstream never sees it')
})

void testEachPair('a cursor of one gateway is none at another with a store of its own', async (t, pair) => {
  const one = await withCursor(t, pair)
  const two = await withCursor(t, pair)
  const target = `${LIST}?limit=1&cursor=${one.cursor}`
  t.equal((await two.gateway.ask({ target, token: two.alice })).status, 400)
  t.equal((await one.gateway.ask({ target, token: one.alice })).status, 200)
})

void testEachPair('a cursor can’t be read, and no two are alike', async (t, pair) => {
  const { gateway, alice, upstream, cursor } = await withCursor(t, pair)
  const next = async (): Promise<string> => {
    const { body } = await gateway.ask({ target: `${LIST}?limit=1`, token: alice })
    return (JSON.parse(body) as { nextCursor: string }).nextCursor
  }
  upstream.answer((request, response) =>
    (request.target.includes('cursor=')
      ? json({ threads: items('b1', 'a2') })
      : json({ threads: items('a1'), nextCursor: 'b1-is-the-last' }))(request, response),
  )
  const [second, third] = [await next(), await next()]
  for (const one of [cursor, second, third]) {
    t.match(one, /^[A-Za-z0-9_-]+$/)
    t.notMatch(
      Buffer.from(one, 'base64url').toString('latin1'),
      /is-the-last|null|alice/,
      'nothing short is looked for: encrypted bytes may hold it by chance',
    )
    t.equal(one.length, cursor.length)
  }
  t.not(second, third)
  t.not(second.slice(0, 16), third.slice(0, 16), 'no part that is counted up')
})
