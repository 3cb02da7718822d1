/**
 * What is taken away by one gateway, or by the command line, is gone on the other within a second: for requests, though that
 * one remembers what was so before, and for streams that are open there. The report says how long each took.
 */
import { test } from 'tap'
import { call } from '../../testing/support/client.ts'
import { until } from '../../testing/support/until.ts'
import { ENDED, within } from './callers.ts'
import { KEY, replicas, type Replicas } from './scene.ts'

const ALICE = 'corp:alice'
const CAROL = 'corp:carol'

/** A change, and who has nothing left on t1 then: alice, whose it is, or bob, whom she let write there. */
const CHANGES: Readonly<
  Record<string, { readonly loser: 'alice' | 'bob'; readonly change: (all: Replicas) => Promise<unknown> }>
> = {
  'an assignment': { loser: 'alice', change: ({ store }) => store.assign(KEY, CAROL, Date.now()) },
  'a transfer of all that is a user’s': { loser: 'alice', change: ({ store }) => store.transfer(ALICE, CAROL, 10) },
  'the taking of the owner': { loser: 'alice', change: ({ store }) => store.withhold(KEY, Date.now()) },
  'an erasure': { loser: 'alice', change: ({ store }) => store.erase(ALICE, Date.now(), 10) },
  'the end of a grant by an operator': {
    loser: 'bob',
    change: ({ a }) => a.operate('/threads/t1/grants', { user: 'corp:bob' }, 'DELETE'),
  },
  'the end of a grant by the owner': {
    loser: 'bob',
    change: ({ a, alice }) =>
      call(`${a.base}/threadwarden/threads/t1/grants`, {
        token: alice,
        body: { user: 'corp:bob' },
        method: 'DELETE',
        transport: 'multi-route',
      }),
  },
  'a deletion': { loser: 'bob', change: ({ a, alice }) => call(`${a.base}/threads/t1`, { token: alice, method: 'DELETE' }) },
  'a revocation': { loser: 'alice', change: ({ a }) => a.operate('/revocations', { user: ALICE }) },
}

for (const [name, { loser, change }] of Object.entries(CHANGES)) {
  void test(`${name} is in force on the other gateway within a second`, async (t) => {
    const all = await replicas(t)
    const { a, b, alice, warm } = all
    const token = all[loser]
    await a.run(alice)
    t.equal((await a.operate('/threads/t1/grants', { user: 'corp:bob', right: 'write' })).status, 201)
    const stream = await b.connect(token)
    t.notMatch(stream.text(), ENDED)
    t.equal(await b.reads(token), 200)
    await warm()
    await within(t, () => change(all), {
      'requests are refused': () => until(async () => (await b.reads(token)) !== 200),
      'the stream ends': () => stream.until(ENDED),
    })
    t.match(stream.text(), ENDED)
    t.not(await b.reads(token), 200)
  })
}

void test('a change leaves alone on the other gateway what still stands', async (t) => {
  const { a, b, alice, bob, store, warm } = await replicas(t)
  await a.run(alice)
  await a.run(bob, 't2')
  await a.operate('/threads/t1/grants', { user: 'corp:bob', right: 'read' })
  const [guests, own, lost] = [await b.connect(bob), await b.connect(bob, 't2'), await b.connect(alice)]
  await warm()
  await within(t, () => store.transfer(ALICE, CAROL, 10), { 'the former owner’s stream ends': () => lost.until(ENDED) })
  t.equal(await b.reads(bob), 200)
  t.equal(await b.reads(bob, 't2'), 200)
  for (const stream of [guests, own]) {
    t.notMatch(stream.text(), ENDED)
    t.notOk(stream.isClosed())
  }
})
