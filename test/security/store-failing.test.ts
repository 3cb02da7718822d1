/**
 * A store that fails while requests come: a check that ends in an error and is taken for a yes (CWE-636, failing open; OWASP
 * A10:2025). Whatever rests on ownership is 503 and nothing of it reaches the upstream, foreign, own and new threads alike, and
 * it is right again when the store answers.
 */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { call } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import type { Pair } from '../../testing/support/pair.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { sendRaw } from '../../testing/support/raw.ts'
import { owners, rows } from '../../testing/support/rows.ts'
import { events, json } from '../../testing/support/upstream.ts'
import { BASE, BODY_ROUTES, codeIn, PATH_ROUTES, run } from './thread-routes.ts'

/** Ways for a file to stop answering, each with the way back. */
const FAILURES: Record<string, { readonly breaks: string; readonly mends: string }> = {
  'its table is gone': { breaks: 'ALTER TABLE threads RENAME TO gone', mends: 'ALTER TABLE gone RENAME TO threads' },
  'a column is gone': {
    breaks: 'ALTER TABLE threads RENAME COLUMN user_id TO vanished',
    mends: 'ALTER TABLE threads RENAME COLUMN vanished TO user_id',
  },
  'another column is gone': {
    breaks: 'ALTER TABLE threads RENAME COLUMN deleted_at TO vanished',
    mends: 'ALTER TABLE threads RENAME COLUMN vanished TO deleted_at',
  },
  'a view that can’t be read is in its place': {
    breaks: 'ALTER TABLE threads RENAME TO gone; CREATE VIEW threads AS SELECT * FROM nowhere',
    mends: 'DROP VIEW threads; ALTER TABLE gone RENAME TO threads',
  },
}

async function started(
  t: Parameters<typeof gated>[0],
  pair: Pair,
): Promise<GatedUpstream & { readonly database: Database.Database }> {
  const gate = await gated(t, events(), { pair })
  t.equal(await run(gate.gateway, gate.alice, 'mine'), 200)
  t.equal(await run(gate.gateway, gate.bob, 'foreign'), 200)
  await gate.gateway.ready()
  const database = new Database(join(gate.gateway.folder, 'ownership.db'))
  t.teardown(() => database.close())
  return { ...gate, database }
}

async function pendingStore(healthUrl: string): Promise<unknown> {
  const { json: answer } = await call(`${healthUrl}/readyz`)
  return (answer as { pending: Record<string, unknown> }).pending['store']
}

for (const [name, { breaks, mends }] of Object.entries(FAILURES)) {
  void testFirstPair(`503 and never yes, and right again when the store answers: ${name}`, async (t, pair) => {
    const { gateway, alice, bob, olga, upstream, database } = await started(t, pair)
    const before = upstream.beginnings()
    database.exec(breaks)
    for (const token of [alice, bob, olga]) {
      for (const { name: route, to } of [...PATH_ROUTES, ...BODY_ROUTES]) {
        const told = await Promise.all(
          ['mine', 'foreign', 'unknown'].map(async (id) => {
            const text = await sendRaw(gateway.url, gateway.bytes({ ...to(id), token }))
            return text.replace(/\r\n(?:date|x-request-id): [^\r]*/gi, '')
          }),
        )
        t.match(told[0], /^HTTP\/1\.1 503 [^]*"code":"store-unavailable"/, route)
        t.match(told[0], /\r\nretry-after: /i)
        t.equal(new Set(told).size, 1, 'and nothing of whose it is')
        t.notMatch(told[0], /sql|table|column|view|threads|ownership\.db/i)
      }
    }
    t.equal(upstream.beginnings(), before, 'none of it arrived')
    upstream.answer(json({ threads: [{ id: 'mine' }, { id: 'foreign' }] }))
    const list = await gateway.ask({ target: `${BASE}/threads`, token: alice })
    t.same([list.status, codeIn(list)], [503, 'store-unavailable'])
    t.equal((await gateway.ask({ target: `${BASE}/info`, token: alice })).status, 200, 'what needs no store goes on')
    database.exec(mends)
    await gateway.ready()
    t.equal((await gateway.ask({ ...PATH_ROUTES[0]!.to('mine'), token: alice })).status, 200)
    t.equal((await gateway.ask({ ...PATH_ROUTES[0]!.to('foreign'), token: alice })).status, 403)
    t.same(owners(gateway.folder), ['foreign=corp:bob', 'mine=corp:alice'])
  })
}

void testFirstPair('a store that fails is pending by name', async (t, pair) => {
  const { gateway, database } = await started(t, pair)
  database.exec('ALTER TABLE threads RENAME TO gone')
  t.match(await pendingStore(gateway.healthUrl), /ownership store failed/)
  database.exec('ALTER TABLE gone RENAME TO threads')
  await gateway.ready()
  t.equal(await pendingStore(gateway.healthUrl), undefined)
})

/** Makes every write of a kind fail, or those that set a column, while reads go on. */
const refuse = (kind: string, column?: string): string =>
  `CREATE TRIGGER refuse_${kind} BEFORE ${kind}${column === undefined ? '' : ` OF ${column}`} ON threads BEGIN SELECT RAISE(ABORT, 'disk is full'); END`

void testFirstPair('a claim that can’t be written is 503 and nothing is sent, though the store can be read', async (t, pair) => {
  const { gateway, alice, upstream, database } = await started(t, pair)
  const before = upstream.beginnings()
  database.exec(refuse('INSERT'))
  for (const id of ['new-1', 'new-2']) t.equal(await run(gateway, alice, id), 503)
  t.equal(upstream.beginnings(), before)
  t.equal(await run(gateway, alice, 'mine'), 200, 'a thread that is theirs needs no row')
  t.same(owners(gateway.folder), ['foreign=corp:bob', 'mine=corp:alice'])
  database.exec('DROP TRIGGER refuse_INSERT')
  t.equal(await run(gateway, alice, 'new-1'), 200)
})

void testFirstPair(
  'what can’t be settled or buried stays its owner’s: the answer passes, and nobody else gets the thread',
  async (t, pair) => {
    const { gateway, alice, bob, upstream, database } = await started(t, pair)
    database.exec(refuse('UPDATE'))
    database.exec(refuse('DELETE'))
    for (const [id, status] of [
      ['run-confirmed', 200],
      ['run-refused', 404],
    ] as const) {
      upstream.answer(json({}, status))
      t.equal(await run(gateway, alice, id), status, 'the upstream has answered')
    }
    upstream.answer(json({}))
    const remove = async () => (await gateway.ask({ method: 'DELETE', target: `${BASE}/threads/mine`, token: alice })).status
    let before = upstream.beginnings()
    t.equal(await remove(), 503, 'a deletion that can’t be noted is not sent')
    t.equal(upstream.beginnings(), before)
    database.exec(`DROP TRIGGER refuse_UPDATE; ${refuse('UPDATE', 'deleted_at')}`)
    t.equal(await remove(), 200, 'one that was noted has happened, whatever becomes of its row')
    before = upstream.beginnings()
    for (const id of ['run-confirmed', 'run-refused', 'mine']) t.equal(await run(gateway, bob, id), 403, id)
    t.equal(upstream.beginnings(), before)
    t.match(rows(gateway.folder), [
      { user_id: 'corp:bob' },
      { user_id: 'corp:alice' },
      { user_id: 'corp:alice' },
      { user_id: 'corp:alice' },
    ])
    t.ok(gateway.lines.some((line) => line['msg'] === 'the ownership table could not be updated'))
  },
)
