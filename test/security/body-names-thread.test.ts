/**
 * A thread named in the body of a request that nobody checks there. Open WebUI let anybody go on with anybody's chat by its
 * id in a body (CVE-2026-45349); the sample hook of the runtime looks at run and connect and forgets suggest and annotate
 * (runtime-behaviour.md, "What the runtime does not check"), and the empty id skips its check. Every route whose body names a thread is checked, by the
 * one key that the upstream reads.
 */
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import type { Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { owners } from '../../testing/support/rows.ts'
import { events } from '../../testing/support/upstream.ts'
import { BODY_TARGETS, codeIn, run } from './thread-routes.ts'

/** A gateway where `mine` is alice's and `foreign` is bob's. */
async function owned(t: Parameters<typeof gated>[0], pair: Pair): Promise<GatedUpstream & { readonly before: number }> {
  const gate = await gated(t, events(), { pair })
  t.equal(await run(gate.gateway, gate.alice, 'mine'), 200)
  t.equal(await run(gate.gateway, gate.bob, 'foreign'), 200)
  return { ...gate, before: gate.upstream.beginnings() }
}

void testEachPair(
  'run, connect, suggest and annotate are refused for a foreign thread and pass for an own one',
  async (t, pair) => {
    const { gateway, alice, olga, upstream, before } = await owned(t, pair)
    for (const { name, target, body } of BODY_TARGETS) {
      for (const token of [alice, olga]) {
        const answer = await gateway.ask({ target, token, body: JSON.stringify(body('foreign')) })
        t.same([answer.status, codeIn(answer)], [403, 'not-owner'], name)
      }
    }
    t.equal(upstream.beginnings(), before)
    for (const { name, target, body } of BODY_TARGETS) {
      t.equal((await gateway.ask({ target, token: alice, body: JSON.stringify(body('mine')) })).status, 200, name)
      t.equal(upstream.requests.at(-1)?.target, target)
      t.match(upstream.requests.at(-1)?.json, { threadId: 'mine' }, name)
    }
  },
)

const NOT_IDS: readonly unknown[] = [
  undefined,
  null,
  0,
  1,
  -1,
  1e21,
  true,
  false,
  '',
  ' ',
  [],
  ['mine'],
  [['mine']],
  ['mine', 'foreign'],
  {},
  { id: 'mine' },
  { toString: 'mine' },
  { threadId: 'mine' },
  { $ne: null },
  { 0: 'm', length: 1 },
  'foreign ',
  ' foreign',
  'foreign\u0000',
  'foreign\n',
  'foreign\t',
  'foreign\u200b',
  'foreign\ufeff',
  'foreign.',
  'foreign/',
  'foreign?x=1',
  'foreign#',
  'foreign%20',
  'mine/../foreign',
  'mine\\..\\foreign',
  'mine/../../threads/foreign',
  'mine,foreign',
  'mine;foreign',
  'mine\r\nx: y',
  '../threads/foreign',
  './foreign',
  '.foreign',
  '-foreign',
  '%66oreign',
  'f\u006f\u0308reign',
  'ｆoreign',
  '\ud800',
  '\u202eforeign',
  '__proto__',
  'clear',
  'Info',
  'THREADS',
  'subscribe',
  'x'.repeat(129),
  'x'.repeat(100_000),
  '0F8FAD5B-D9CB-469F-A165-70867728950E',
  '0f8fad5bd9cb469fa16570867728950e',
  '{0f8fad5b-d9cb-469f-a165-70867728950e}',
  'urn:uuid:0f8fad5b-d9cb-469f-a165-70867728950e',
]

void testEachPair(
  'an id that is missing, of another type or outside the grammar is 400 on all of them, and owns nothing',
  async (t, pair) => {
    const { gateway, alice, upstream, before } = await owned(t, pair)
    for (const { name, target, body } of BODY_TARGETS) {
      for (const id of NOT_IDS) {
        const answer = await gateway.ask({ target, token: alice, body: JSON.stringify(body(id)) })
        t.same([answer.status, codeIn(answer)], [400, 'thread-id-invalid'], `${name} ${JSON.stringify(id ?? null).slice(0, 60)}`)
      }
    }
    t.equal(upstream.beginnings(), before)
    t.same(owners(gateway.folder), ['foreign=corp:bob', 'mine=corp:alice'])
  },
)

/** What else a reader might take for the thread of a request: none of it may count, and none of it may arrive. */
const ELSEWHERE: Record<string, Record<string, unknown>> = {
  thread_id: { thread_id: 'foreign' },
  threadid: { threadid: 'foreign', ThreadId: 'foreign', threadID: 'foreign', THREADID: 'foreign' },
  'thread-id': { 'thread-id': 'foreign', 'thread id': 'foreign', thread: 'foreign', thread_ID: 'foreign' },
  'id and session': { id: 'foreign', sessionId: 'foreign', conversationId: 'foreign', chatId: 'foreign' },
  'the key with a character that nobody sees': {
    'threadId\u0000': 'foreign',
    'threadId ': 'foreign',
    'threadId\u200b': 'foreign',
  },
  'the key in other letters': { ｔhreadId: 'foreign', 'thread\u0406d': 'foreign', 'threadId[]': ['foreign'] },
  'a path as a key': { 'input.threadId': 'foreign', 'params.threadId': 'foreign', '$.threadId': 'foreign' },
  params: { params: { threadId: 'foreign', agentId: 'other' } },
  input: { input: { threadId: 'foreign' }, inputs: [{ threadId: 'foreign' }] },
  body: { body: { threadId: 'foreign' }, data: { threadId: 'foreign' } },
  'body as a string': { body: '{"threadId":"foreign"}' },
  'config of a graph': { config: { configurable: { thread_id: 'foreign' } }, configurable: { thread_id: 'foreign' } },
  'names of every object': { constructor: { threadId: 'foreign' }, prototype: { threadId: 'foreign' }, toString: 'foreign' },
}

void testEachPair('a thread named under any other key counts for nothing and does not arrive', async (t, pair) => {
  const { gateway, alice, upstream, before } = await owned(t, pair)
  for (const { name, target, body } of BODY_TARGETS) {
    for (const [where, more] of Object.entries(ELSEWHERE)) {
      const alone = await gateway.ask({ target, token: alice, body: JSON.stringify({ ...body(undefined), ...more }) })
      t.same([alone.status, codeIn(alone)], [400, 'thread-id-invalid'], `${name} by ${where} alone`)
    }
  }
  t.equal(upstream.beginnings(), before)
  for (const { name, target, body } of BODY_TARGETS) {
    for (const [where, more] of Object.entries(ELSEWHERE)) {
      for (const sent of [
        { ...more, ...body('mine') },
        { ...body('mine'), ...more },
      ]) {
        t.equal((await gateway.ask({ target, token: alice, body: JSON.stringify(sent) })).status, 200, `${name} ${where}`)
        const arrived = upstream.requests.at(-1)!
        t.match(arrived.json, { threadId: 'mine' })
        t.notMatch(arrived.body.toString(), 'foreign', `${name} ${where}`)
      }
      const foreign = JSON.stringify({ ...body('foreign'), ...more, thread_id: 'mine', params: { threadId: 'mine' } })
      t.equal((await gateway.ask({ target, token: alice, body: foreign })).status, 403, `${name} ${where}, the other way`)
    }
  }
})

void testEachPair(
  'a thread named in the query, in a header or in the path of a body route counts for nothing',
  async (t, pair) => {
    const { gateway, alice, upstream, before } = await owned(t, pair)
    const lines = ['x-thread-id: mine', 'thread-id: mine', 'X-CopilotKit-Thread-Id: mine', 'Cookie: threadId=mine']
    for (const { name, target, body } of BODY_TARGETS) {
      for (const query of [
        '?threadId=mine',
        '?thread_id=mine',
        '?threadId=mine&threadId=foreign',
        '?threadId[]=mine',
        '?params.threadId=mine',
      ]) {
        const raw = { token: alice, target: `${target}${query.replaceAll('[', '%5B').replaceAll(']', '%5D')}`, lines }
        const foreign = await gateway.ask({ ...raw, body: JSON.stringify(body('foreign')) })
        t.same([foreign.status, codeIn(foreign)], [403, 'not-owner'], `${name} ${query}`)
        const none = await gateway.ask({ ...raw, body: JSON.stringify(body(undefined)) })
        t.same([none.status, codeIn(none)], [400, 'thread-id-invalid'], `${name} ${query}`)
      }
      for (const more of ['/mine', '/mine/run', '/threads/mine', '/threads/mine/messages']) {
        const answer = await gateway.ask({ target: `${target}${more}`, token: alice, body: JSON.stringify(body('foreign')) })
        t.equal(answer.status, 404, `${target}${more}`)
      }
    }
    t.equal(upstream.beginnings(), before)
    for (const { name, target, body } of BODY_TARGETS) {
      const request = { target: `${target}?threadId=foreign&thread_id=foreign`, token: alice, lines: ['x-thread-id: foreign'] }
      t.equal((await gateway.ask({ ...request, body: JSON.stringify(body('mine')) })).status, 200, name)
      const arrived = upstream.requests.at(-1)!
      t.equal(arrived.target, target, 'no query of it arrives')
      t.notMatch(JSON.stringify([arrived.rawHeaders, arrived.body.toString()]), 'foreign')
    }
  },
)
