/** Several processes share one file: opened by all at once, and a thread that all of them claim is one user's alone. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { makeFolder } from '../../testing/support/gateway.ts'

const WORKER = fileURLToPath(new URL('claim-worker.ts', import.meta.url))
const USERS = ['corp:alice', 'corp:bob', 'corp:carol', 'corp:dave']
const COUNT = 200

const next = async (worker: ChildProcess): Promise<unknown> => {
  const gone = once(worker, 'disconnect').then(() => {
    throw new Error('a worker ended without an answer')
  })
  return ((await Promise.race([once(worker, 'message'), gone])) as unknown[])[0]
}

void test('of 200 threads that four processes claim at once, each has exactly one owner', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'ownership.db')
  const workers = USERS.map((user) => fork(WORKER, [file, user, String(COUNT)], { execArgv: [] }))
  t.same(
    await Promise.all(workers.map(next)),
    USERS.map(() => 'open'),
    'the file is made by all of them at once',
  )

  const answers = workers.map(next)
  for (const worker of workers) worker.send('go')
  const outcomes = (await Promise.all(answers)) as string[][]

  const store = await openSqliteStore(file)
  const ids = Array.from({ length: COUNT }, (_, at) => `t-${at}`)
  const access = await store.accessToSeveral('', ids, { userId: 'corp:somebody', groups: [] })
  const ownerOf = (id: string) => access.get(id)?.row?.owner
  await store.close()
  for (const [at, id] of ids.entries()) {
    const winners = USERS.filter((_, user) => outcomes[user]?.[at] === 'new')
    const losers = USERS.filter((_, user) => outcomes[user]?.[at] === 'foreign')
    if (winners.length !== 1 || losers.length !== USERS.length - 1 || ownerOf(id) !== winners[0]) {
      t.fail(`${id}: ${USERS.map((_, user) => outcomes[user]?.[at]).join(', ')}; owner ${String(ownerOf(id))}`)
    }
  }
  t.equal(access.size, COUNT)
})
