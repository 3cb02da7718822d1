/**
 * Two who claim one thread at once, or a claim that crosses a deletion: a check and a write that are two steps let both in
 * (CWE-367, time of check to time of use). The first claim wins, once; a deleted thread can be claimed by nobody else, in
 * whatever order the upstream answers.
 */
import { runInput } from '../../testing/support/client.ts'
import { gateBefore, gated, type Gated } from '../../testing/support/gated.ts'
import type { TestGateway } from '../../testing/support/gateway.ts'
import type { Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import type { ask } from '../../testing/support/raw.ts'
import { firstAnswer, openRaw } from '../../testing/support/raw.ts'
import { rows } from '../../testing/support/rows.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'
import { BASE, run } from './thread-routes.ts'

const runOn = (gateway: TestGateway, token: string, threadId: string): Buffer =>
  gateway.bytes({ target: `${BASE}/agent/default/run`, token, body: JSON.stringify(runInput(threadId)) })

/** Runs of many users that are written at once, each on a connection that was open before; their statuses, in order. */
async function atOnce(gates: readonly Gated[], tokens: readonly string[], threadId: string): Promise<number[]> {
  const gatewayOf = (at: number): TestGateway => gates[at % gates.length]!.gateway
  const opened = await Promise.all(tokens.map((_, at) => openRaw(gatewayOf(at).url)))
  tokens.forEach((token, at) => opened[at]!.write(runOn(gatewayOf(at), token, threadId)))
  return Promise.all(opened.map(async (connection) => firstAnswer(await connection.ended()).status))
}

void testEachPair(
  'of many users’ first runs at once those of one pass, at one gateway and at two on one store',
  async (t, pair) => {
    const one = await gated(t, events(), { pair })
    const two = await gateBefore(t, one.upstream.url, { pair, shared: one.gateway.folder, signer: one.signer })
    const users = Array.from({ length: 12 }, (_, at) => `user-${at % 6}`)
    for (const gates of [[one], [one, two]]) {
      for (const threadId of ['t1', 't2', 't3', 't4'].map((id) => `${id}-${gates.length}`)) {
        const before = one.upstream.requests.length
        const tokens = users.map((user, at) => one.signer.sign(user, { jti: String(at) }))
        const statuses = await atOnce(gates, tokens, threadId)
        const owner = rows(one.gateway.folder).find((row) => row.thread_id === threadId)?.user_id
        t.match(owner, /^corp:user-/)
        t.same(
          statuses,
          users.map((user) => (`corp:${user}` === owner ? 200 : 403)),
          threadId,
        )
        const arrived = one.upstream.requests.slice(before).map(({ headers }) => headers.get('authorization')?.[0])
        const winning = tokens.filter((_, at) => `corp:${users[at]}` === owner).map((token) => `Bearer ${token}`)
        t.same(arrived.sort(), winning.sort(), 'the runs of that user arrived, and no other')
        t.equal(rows(one.gateway.folder).filter((row) => row.thread_id === threadId).length, 1)
      }
    }
  },
)

/** A gateway whose upstream answers when and how the test says. */
async function held(t: Parameters<typeof gated>[0], pair: Pair) {
  const gate = await gated(t, undefined, { pair })
  const { gateway, alice, bob, upstream } = gate
  const waiting: ((how: Answering) => void)[] = []
  upstream.answer((request, response) => void waiting.push((how) => void how(request, response)))
  /** Starts a request and gives how to answer it, once it is at the upstream. */
  const start = async (request: Parameters<typeof ask>[1]): Promise<(how: Answering) => Promise<number>> => {
    const before = upstream.requests.length
    const answer = gateway.ask(request)
    await upstream.arrived(before + 1)
    const reply = waiting.at(-1)!
    return async (how) => {
      reply(how)
      return (await answer).status
    }
  }
  return {
    ...gate,
    startRun: () => start({ target: `${BASE}/agent/default/run`, token: alice, body: JSON.stringify(runInput('t1')) }),
    startDelete: () => start({ method: 'DELETE', target: `${BASE}/threads/t1`, token: alice }),
    /** Bob’s run, which must never arrive. */
    crossing: async () => {
      const before = upstream.beginnings()
      t.equal(await run(gateway, bob, 't1'), 403)
      t.equal(upstream.beginnings(), before)
      t.match(rows(gateway.folder), [{ thread_id: 't1', user_id: 'corp:alice' }])
    },
  }
}

const fine = events()
const refused = json({}, 404)
const failed = json({}, 500)

void testEachPair('while a first run is under way, and after it, nobody else’s claim crosses', async (t, pair) => {
  for (const end of [fine, failed]) {
    const { startRun, crossing } = await held(t, pair)
    const answer = await startRun()
    await crossing()
    await answer(end)
    await crossing()
  }
})

void testEachPair('a deletion and a claim do not cross, whatever comes of the deletion', async (t, pair) => {
  for (const end of [json({}), refused, failed]) {
    const { startRun, startDelete, crossing } = await held(t, pair)
    await (
      await startRun()
    )(fine)
    const answer = await startDelete()
    await crossing()
    await answer(end)
    await crossing()
  }
})

void testEachPair('a run that ends after the deletion takes no tombstone away', async (t, pair) => {
  for (const end of [fine, refused, failed]) {
    const { startRun, startDelete, crossing } = await held(t, pair)
    const first = await startRun()
    // Another confirms the thread: before that nobody deletes it.
    await (
      await startRun()
    )(fine)
    await (
      await startDelete()
    )(json({}))
    await crossing()
    await first(end)
    await crossing()
  }
})

void testEachPair('nor does a run of an earlier life settle a later one', async (t, pair) => {
  for (const [old, late] of [
    [refused, refused],
    [fine, refused],
    [refused, fine],
    [failed, refused],
  ] as const) {
    const { gateway, startRun, startDelete, crossing } = await held(t, pair)
    const first = await startRun()
    // Another confirms the thread: before that nobody deletes it.
    await (
      await startRun()
    )(fine)
    await (
      await startDelete()
    )(json({}))
    const revival = await startRun()
    await crossing()
    await first(old)
    await crossing()
    await revival(late)
    await crossing()
    // The later run alone says whether the thread is there again.
    t.equal(rows(gateway.folder)[0]?.deleted_at === null, late === fine)
  }
})

void testEachPair('what was released is free, once, and then it is the next one’s', async (t, pair) => {
  const { gateway, alice, bob, startRun, upstream } = await held(t, pair)
  t.equal(await (await startRun())(refused), 404)
  t.same(rows(gateway.folder), [])
  upstream.answer(fine)
  t.equal(await run(gateway, bob, 't1'), 200)
  t.equal(await run(gateway, alice, 't1'), 403)
  t.match(rows(gateway.folder), [{ thread_id: 't1', user_id: 'corp:bob' }])
})
