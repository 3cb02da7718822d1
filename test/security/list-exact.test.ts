/**
 * A list that goes by another rule than the read by id: the runtime's own list is everybody's (runtime-behaviour.md, "What the runtime does not check"), and a
 * proxy that filters it by names of its own drifts from what it would let through (broken object level authorization,
 * OWASP API1:2023, as in Open WebUI's CVE-2026-45349, where one route checked the owner and another did not). Of what the
 * upstream lists, a caller's list holds exactly the threads whose messages the same caller gets by id.
 */
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import type { TestGateway } from '../../testing/support/gateway.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'
import { edited } from '../../testing/support/policies.ts'
import { BASE, codeIn, run } from './thread-routes.ts'

const UUID = '0f8fad5b-d9cb-469f-a165-70867728950e'

/** Threads that somebody owns, by the first letter of their owner. */
const OWNED = ['a-1', 'a-2', 'A-1', 'a_1', 'a.1', 'a:1', 'b-1', 'b-2', 'B-1', 'o-1', 'a-gone', 'b-gone', 'a-revived']

/** Ids that an upstream might list beside those: nobody's, or another spelling of somebody's. */
const STRANGE = [
  'nobodys',
  '',
  ' ',
  'a-1 ',
  ' a-1',
  'a-1\t',
  'a-1\n',
  'a-1\u0000',
  'a-1\u00a0',
  'a-1\u200b',
  '\ufeffa-1',
  'a-1.',
  'a-1/',
  'a-1?',
  'a-1#',
  'a-1;x',
  'a%2D1',
  'a-1%20',
  'a-1,b-1',
  'a\u20101',
  'a\u22121',
  '\u0430-1',
  'ａ-1',
  'a\u0301-1',
  '\u00e1-1',
  'x/../a-1',
  '../threads/a-1',
  'threads/a-1',
  'a-1/messages',
  'a\\-1',
  '-1',
  '.a-1',
  'clear',
  'Info',
  'subscribe',
  '__proto__',
  'constructor',
  'null',
  'undefined',
  '[object Object]',
  'x'.repeat(128),
  'x'.repeat(129),
  UUID.toUpperCase(),
  UUID.replaceAll('-', ''),
  `{${UUID}}`,
  `urn:uuid:${UUID}`,
  "a-1' OR '1'='1",
  'a-1"',
  '%',
  'a-_',
  'a-*',
  '\ud83d\ude00',
]

const LISTED = [...OWNED, UUID, ...STRANGE]

/** The upstream as a runtime that holds every thread: it lists them all, in pages of this many, and has messages of each. */
function runtime(size: number): Answering {
  return (request, response) => {
    const url = new URL(request.target, 'http://a')
    if (!url.pathname.endsWith('/threads')) {
      return (request.method === 'GET' ? json({ messages: [] }) : events())(request, response)
    }
    const at = Number(url.searchParams.get('cursor') ?? 0)
    const threads = LISTED.slice(at, at + size).map((id) => ({ id, name: `name of ${id}`, threadId: 'b-1', owner: 'corp:alice' }))
    return json({ threads, nextCursor: at + size < LISTED.length ? String(at + size) : null })(request, response)
  }
}

/** Ids of the threads in all pages that a caller gets by following the cursors. */
async function listed(gateway: TestGateway, token: string | undefined, query: string): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | null = null
  do {
    const target = `${BASE}/threads?${query}${cursor === null ? '' : `&cursor=${cursor}`}`
    const { body } = await gateway.ask({ target, ...(token === undefined ? {} : { token }) })
    const page = JSON.parse(body) as { threads: { id: string }[]; nextCursor: string | null }
    ids.push(...page.threads.map(({ id }) => id))
    cursor = page.nextCursor
  } while (cursor !== null)
  return ids
}

/** Ids of the threads whose messages a caller gets by their ids. */
async function readable(gateway: TestGateway, token: string | undefined): Promise<string[]> {
  const statuses = await Promise.all(
    LISTED.map(async (id) => {
      const target = `${BASE}/threads/${encodeURIComponent(id)}/messages`
      return (await gateway.ask({ target, ...(token === undefined ? {} : { token }) })).status
    }),
  )
  return LISTED.filter((_, at) => statuses[at] === 200)
}

/** Everybody runs what is theirs; two threads are deleted, one of them was revived. */
async function populated(gate: GatedUpstream): Promise<void> {
  const { gateway, alice, bob, olga, upstream } = gate
  upstream.answer(runtime(7))
  const tokens: Readonly<Record<string, string>> = { a: alice, b: bob, o: olga }
  for (const id of OWNED) await run(gateway, tokens[id.slice(0, 1).toLowerCase()]!, id)
  await run(gateway, bob, UUID)
  for (const id of ['a-gone', 'b-gone', 'a-revived']) {
    await gateway.ask({ method: 'DELETE', target: `${BASE}/threads/${id}`, token: tokens[id.slice(0, 1)]! })
  }
  await run(gateway, alice, 'a-revived')
}

const POLICIES: Record<string, string | undefined> = {
  'the shipped policy': undefined,
  'operators may read foreign messages': edited(
    'rules:\n',
    'rules:\n  - routes: [threads/messages]\n    allow: [operator]\n    threads: [own, foreign]\n',
  ),
  'nobody may read messages': edited('[agent/stop, threads/messages,', '[agent/stop,'),
  'only operators may read messages': edited(
    '  - name: threads\n    routes: [agent/stop, threads/messages,',
    '  - routes: [threads/messages]\n    allow: [operator]\n    threads: [own]\n  - routes: [agent/stop,',
  ),
  'a rule denies one user their messages': edited(
    'rules:\n',
    'rules:\n  - routes: [threads/messages]\n    deny: [signed-in]\n    claims: [{ at: /sub, equals: alice }]\n',
  ),
  'a rule denies operators their own messages': edited(
    'rules:\n',
    'rules:\n  - routes: [threads/messages]\n    allow: [operator]\n    threads: [own, foreign]\n  - routes: [threads/messages]\n    deny: [operator]\n    threads: [own]\n',
  ),
  'a rule about messages can not be evaluated': edited(
    'rules:\n',
    'rules:\n  - routes: [threads/messages]\n    deny: [signed-in]\n    claims: [{ at: /sub, equals: 5 }]\n',
  ),
}

for (const [name, policy] of Object.entries(POLICIES)) {
  void testEachPair(
    `a list is what the same caller may read by id, for every user and every thread: ${name}`,
    async (t, pair) => {
      const gate = await gated(t, events(), { pair, ...(policy === undefined ? {} : { policy }) })
      await populated(gate)
      const { gateway, alice, bob, olga, signer, upstream } = gate
      const people = {
        alice,
        bob,
        olga,
        carol: signer.sign('carol'),
        Alice: signer.sign('Alice'),
        'alice ': signer.sign('alice '),
      }
      for (const [who, token] of Object.entries(people)) {
        const own = await readable(gateway, token)
        for (const [size, query] of [
          [1000, ''],
          [7, 'limit=3'],
          [4, 'limit=1000'],
          [5, 'limit=1'],
        ] as const) {
          upstream.answer(runtime(size))
          t.same(await listed(gateway, token, query), own, `${who}, ${query}`)
        }
      }
      const alices = ['a-1', 'a-2', 'A-1', 'a_1', 'a.1', 'a:1', 'a-revived']
      const expected = /^the shipped|^operators|^a rule denies operators/.test(name) ? alices : []
      t.same(await listed(gateway, alice, ''), expected)
    },
  )
}

void testEachPair('the list follows at once: a claim, a release, a deletion and a revival', async (t, pair) => {
  const { gateway, alice, bob, upstream } = await gated(t, events(), { pair })
  const look = async (): Promise<readonly string[][]> => {
    upstream.answer(runtime(1000))
    const lists = []
    for (const token of [alice, bob]) {
      const list = await listed(gateway, token, '')
      t.same(list, await readable(gateway, token))
      lists.push(list)
    }
    return lists
  }
  t.same(await look(), [[], []])
  upstream.answer(json({}, 422))
  await run(gateway, alice, 'b-1')
  t.same(await look(), [[], []], 'a run that was refused claims nothing')
  upstream.answer(json({}, 500))
  await run(gateway, bob, 'b-1')
  t.same(await look(), [[], []], 'one that may have started does, and says not yet whose it is')
  upstream.answer(json({}, 422))
  await run(gateway, alice, 'b-1')
  t.same(await look(), [[], []], 'it is nobody else’s')
  upstream.answer(events())
  await run(gateway, bob, 'b-1')
  t.same(await look(), [[], ['b-1']], 'a run that was confirmed does')
  await gateway.ask({ method: 'DELETE', target: `${BASE}/threads/b-1`, token: bob })
  t.same(await look(), [[], []])
  await run(gateway, alice, 'b-1')
  t.same(await look(), [[], []], 'nobody else gets it')
  await run(gateway, bob, 'b-1')
  t.same(await look(), [[], ['b-1']])
})

void testEachPair('while a claim is not confirmed yet the list and the read say the same', async (t, pair) => {
  const { gateway, alice, bob, upstream } = await gated(t, undefined, { pair })
  let finish = (): void => {}
  upstream.answer((request, response) => {
    finish = () => void events()(request, response)
  })
  const first = run(gateway, alice, 'a-1')
  await upstream.arrived(1)
  upstream.answer(runtime(1000))
  const look = async (token: string, own: readonly string[]) => {
    t.same(await listed(gateway, token, ''), own)
    t.same(await readable(gateway, token), own)
  }
  for (const token of [alice, bob]) await look(token, [])
  finish()
  t.equal(await first, 200)
  await look(alice, ['a-1'])
  await look(bob, [])
})

void testEachPair('in mode off everybody is one user, with one list', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair, config: { authentication: { mode: 'off' } } })
  upstream.answer(runtime(1000))
  const target = `${BASE}/agent/default/run`
  const body = '{"threadId":"a-1"}'
  t.equal((await gateway.ask({ target, body })).status, 200)
  for (const token of [undefined, alice]) {
    t.same(await listed(gateway, token, ''), ['a-1'])
    t.same(await readable(gateway, token), ['a-1'])
  }
})

void testEachPair('in mode optional anonymous callers get no list, and users none of theirs', async (t, pair) => {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const { gateway, alice, bob, upstream } = await gated(t, events(), {
    pair,
    signer,
    policy: edited(
      'agent/suggest]\n    allow: [signed-in]\n    threads: [own, shared, unknown]',
      'agent/suggest]\n    allow: [anonymous, signed-in]\n    threads: [own, shared, unknown]',
    ).replace('annotate]\n    allow: [signed-in]', 'annotate]\n    allow: [anonymous, signed-in]'),
    config: { authentication: { ...signer.authentication, mode: 'optional' } },
  })
  const target = `${BASE}/agent/default/run`
  t.equal((await gateway.ask({ target, body: '{"threadId":"a-1"}' })).status, 200)
  t.equal(await run(gateway, bob, 'b-1'), 200)
  upstream.answer(runtime(1000))
  t.same(await readable(gateway, undefined), ['a-1'], 'by its id they have it')
  const before = upstream.beginnings()
  for (const query of ['', '?limit=1', '?agentId=default']) {
    const answer = await gateway.ask({ target: `${BASE}/threads${query}` })
    t.same([answer.status, codeIn(answer)], [403, 'not-allowed'], 'a list would be that of all of them')
  }
  t.equal(upstream.beginnings(), before)
  for (const [token, own] of [
    [alice, []],
    [bob, ['b-1']],
  ] as const) {
    t.same(await listed(gateway, token, ''), own)
    t.same(await readable(gateway, token), own)
  }
})
