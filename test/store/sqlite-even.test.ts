/**
 * The time of a refusal tells nothing: for a thread of somebody else's, with grants to others or without, for one that others
 * were seen on, and for one that nobody ever heard of, the same statements are run, and each finds as many rows.
 */
import { join } from 'node:path'
import { test } from 'tap'
import { type Sql } from '../../src/store/sql/statement.ts'
import { connect, type Connection } from '../../src/store/sqlite/connection.ts'
import { accessOf } from '../../src/store/sqlite/ownership.ts'
import { migrate } from '../../src/store/sqlite/schema.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { ALICE, at, BOB, CAROL, grant, group, NOW, own, readerOf, user } from './contract/under-test.ts'

/** A connection that writes down what is asked of it, and how many rows each answer has. */
function listening(connection: Connection, asked: unknown[]): Connection {
  const note = <T>(sql: Sql<unknown>, rows: number, answer: T): T => {
    asked.push([sql.text, rows])
    return answer
  }
  return {
    ...connection,
    get(sql, values) {
      const row = connection.get(sql, values)
      return note(sql, row === undefined ? 0 : 1, row)
    },
    all(sql, values) {
      const rows = connection.all(sql, values)
      return note(sql, rows.length, rows)
    },
  }
}

void test('whose a thread is, and whether it is there, takes the same steps to say', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const store = await openSqliteStore(file)
  t.teardown(() => store.close())
  for (const id of ['b', 'd', 'z']) await own(store, ALICE, at(id))
  await own(store, ALICE, at('deleted'))
  await store.bury(at('deleted'), ALICE, NOW, 'deleted')
  await grant(store, user(CAROL), 'write', at('b'))
  for (let n = 0; n < 50; n += 1) await grant(store, group(`corp:team-${n}`), 'read', at('b'))
  const connection = connect(file, migrate)
  t.teardown(() => connection.close())
  const stepsFor = (id: string): unknown => {
    const asked: unknown[] = []
    accessOf(listening(connection, asked), at(id), readerOf(BOB, 'corp:bobs', 'corp:others'))
    return asked
  }
  const compare = (what: string): void => {
    const missing = stepsFor('c')
    for (const id of ['b', 'd', 'deleted', 'seen', 'a', 'deleted~']) t.same(stepsFor(id), missing, `${id} ${what}`)
  }
  compare('where nobody was seen')
  await store.observe(at('seen'), ALICE, 'agent', 'run', NOW)
  await store.observe(at('z'), ALICE, 'agent', 'run', NOW)
  compare('where somebody was')
})
