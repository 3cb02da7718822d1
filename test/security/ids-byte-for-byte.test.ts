/**
 * Ids that a store takes for one and the upstream for two, or the other way round: OpenFGA's MySQL store compared without regard
 * to case and trailing spaces, and gave one object's permissions to another (CVE-2026-55170). Threads and users compare byte for
 * byte: by case, by Unicode form, by spaces, as numbers, as patterns, and by the names that every JavaScript object has.
 */
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { owners } from '../../testing/support/rows.ts'
import { events, json } from '../../testing/support/upstream.ts'
import { BASE, codeIn, PATH_ROUTES, run } from './thread-routes.ts'

/** Ids that somebody might take for the same as the first of their group. */
const GROUPS: readonly (readonly string[])[] = [
  ['Chat-a', 'chat-a', 'CHAT-A', 'cHAT-a', 'chat-A'],
  ['chat_a', 'chatxa', 'chat-_a', 'chat__a', 'chat_a_', 'chat-a-', 'chat.a'],
  ['1', '01', '1.0', '001', '1e0', '0x1', '1_0', '10'],
  ['9007199254740993', '9007199254740992', '9007199254740993.0', '9.007199254740993e15'],
  ['true', 'TRUE', 'null', 'NULL', 'nan', 'Infinity', 'undefined', 'false', '0'],
  ['constructor', 'toString', 'valueOf', 'hasOwnProperty', 'isPrototypeOf', 'prototype', 'length'],
  ['a:b', 'a:b:', 'a::b', 'a-b', 'corp:alice', 'corp:bob', 'anonymous'],
  [`${'x'.repeat(127)}a`, `${'x'.repeat(127)}b`, 'x'.repeat(127), `${'x'.repeat(127)}A`],
  ['0f8fad5b-d9cb-469f-a165-70867728950e', '0f8fad5b-d9cb-469f-a165-70867728950f', 'x0f8fad5b-d9cb-469f-a165-70867728950e'],
  ['kelvin', 'KELVIN', 'Kelvin', 'istanbul', 'ISTANBUL', 'Istanbul'],
]

void testEachPair(
  'each spelling is a thread of its own: in the table, in a read, in the list and at the upstream',
  async (t, pair) => {
    for (const [first, ...others] of GROUPS as readonly (readonly [string, ...string[]])[]) {
      const { gateway, alice, bob, upstream } = await gated(t, events(), { pair })
      t.equal(await run(gateway, alice, first), 200)
      for (const other of others) {
        for (const { name, to } of PATH_ROUTES.filter(({ name }) => ['threads/messages', 'agent/stop'].includes(name))) {
          const answer = await gateway.ask({ ...to(other), token: alice })
          t.ok([403, 404].includes(answer.status), `${name}: ${other} is not ${first}`)
        }
        t.equal(await run(gateway, bob, other), 200, `bob claims ${other}`)
        t.equal(await run(gateway, alice, other), 403)
      }
      t.equal(await run(gateway, bob, first), 403)
      t.same([...owners(gateway.folder)].sort(), [`${first}=corp:alice`, ...others.map((id) => `${id}=corp:bob`)].sort())
      t.same(
        upstream.requests.map((request) => (request.json as { threadId: string }).threadId),
        [first, ...others],
      )
      upstream.answer(json({ threads: [first, ...others].map((id) => ({ id })) }))
      const listOf = async (token: string): Promise<string[]> =>
        (JSON.parse((await gateway.ask({ target: `${BASE}/threads`, token })).body) as { threads: { id: string }[] }).threads.map(
          ({ id }) => id,
        )
      t.same(await listOf(alice), [first])
      t.same(await listOf(bob), others)
      upstream.answer(json({}))
      t.equal((await gateway.ask({ method: 'DELETE', target: `${BASE}/threads/${first}`, token: alice })).status, 200)
      t.equal(upstream.requests.at(-1)?.target, `${BASE}/threads/${encodeURIComponent(first)}`)
      t.same(await listedAfter(), others, 'the deletion of one deletes no other')

      async function listedAfter(): Promise<string[]> {
        upstream.answer(json({ threads: [first, ...others].map((id) => ({ id })) }))
        return listOf(bob)
      }
    }
  },
)

void testEachPair(
  'spellings that no store and upstream would agree on are no ids: refused in body and path, and never claimed',
  async (t, pair) => {
    const { gateway, alice, bob, upstream } = await gated(t, events(), { pair })
    t.equal(await run(gateway, alice, 'cafe'), 200)
    const before = upstream.beginnings()
    // oxfmt-ignore
    for (const id of [
    'cafe ', ' cafe', 'cafe\t', 'cafe\u00a0', 'cafe\u3000', 'cafe\u0000', 'cafe\u200b', 'cafe\ufeff', 'caf\u00e9', 'cafe\u0301', 'ｃａｆｅ', 'c\u0430fe',
    'ca\u017fe', '\u212aelvin', '\u0130stanbul', 'cafe.', 'cafe/', 'cafe%20', 'cafe+', 'cafe\u00ad', 'stra\u00dfe', '\ufb01sh', 'caf%', 'caf*', "cafe'--",
  ]) {
    const body = JSON.stringify(runInput(id))
    const inBody = await gateway.ask({ target: `${BASE}/agent/default/run`, token: bob, body })
    t.same([inBody.status, codeIn(inBody)], [400, 'thread-id-invalid'], `${JSON.stringify(id)} in a body`)
    for (const token of [alice, bob]) {
      const inPath = await gateway.ask({ target: `${BASE}/threads/${encodeURIComponent(id)}/messages`, token })
      t.equal(inPath.status, 400, `${JSON.stringify(id)} in a path`)
    }
  }
    t.equal(upstream.beginnings(), before)
    t.same(owners(gateway.folder), ['cafe=corp:alice'])
  },
)

void testEachPair('users compare byte for byte too, in every Unicode form', async (t, pair) => {
  const { gateway, signer, upstream } = await gated(t, events(), { pair })
  // oxfmt-ignore
  const users = [
    'caf\u00e9', 'cafe\u0301', 'cafe', 'Caf\u00e9', 'CAF\u00c9', 'caf\u00e9 ', ' caf\u00e9', 'caf\u00e9\u200b', '\ufeffcaf\u00e9', 'ｃａｆ\u00e9', 'cafe\u0301\u0301',
    'stra\u00dfe', 'strasse', 'STRASSE', '\u017ftrasse', '\u212a', 'K', 'k', '\u0130', 'I', 'i', '\u0131', 'i\u0307', '1', '01', '1.0', 'corp:cafe', ':cafe', 'cafe:', 'anonymous',
    'null', '%', '_', 'caf_', '\ud83d\ude00',
  ]
  for (const [at, user] of users.entries()) t.equal(await run(gateway, signer.sign(user), `t${at}`), 200, JSON.stringify(user))
  const before = upstream.beginnings()
  upstream.answer(json({ threads: users.map((_, at) => ({ id: `t${at}` })) }))
  for (const [at, user] of users.entries()) {
    const token = signer.sign(user)
    const list = await gateway.ask({ target: `${BASE}/threads`, token })
    t.equal(list.body, `{"threads":[{"id":"t${at}"}],"nextCursor":null}`, `${JSON.stringify(user)} is nobody else`)
    // Those next in line are the ones that are most alike.
    for (const other of [at - 1, at + 1].filter((one) => one in users)) {
      t.equal((await gateway.ask({ target: `${BASE}/threads/t${other}/messages`, token })).status, 403)
    }
  }
  t.equal(upstream.beginnings(), before + users.length)
  t.same([...owners(gateway.folder)].sort(), users.map((user, at) => `t${at}=corp:${user}`).sort())
})
