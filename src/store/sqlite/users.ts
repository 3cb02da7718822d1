/** Transfers or erases all data of a user in the SQLite file, in steps. */
import type { UserStore } from '../port/administration.ts'
import { NOBODY, type ThreadKey } from '../port/thread.ts'
import { keyStatements } from '../sql/keys.ts'
import type { Sql } from '../sql/statement.ts'
import { userStatements } from '../sql/users.ts'
import type { Connection } from './connection.ts'
import { keysOf, SQLITE } from './dialect.ts'
import type { SqliteInvalidations } from './invalidations.ts'

const USERS = userStatements(SQLITE)
const KEYS = keyStatements(SQLITE)

export function usersIn(invalidations: SqliteInvalidations): Omit<UserStore, 'userData'> {
  const step = (work: (database: Connection) => number): Promise<number> =>
    invalidations.write((database) => {
      const count = work(database)
      return { result: count, changed: count > 0 ? 'many' : 'nothing' }
    })
  return {
    // No user owns an unowned thread, so no user can transfer it.
    transfer: async (from, to, limit, scope) =>
      from === to || from === NOBODY || to === NOBODY ? 0 : step((database) => transfer(database, { from, to, scope }, limit)),
    erase: async (userId, now, limit) => (userId === NOBODY ? 0 : step((database) => erase(database, userId, now, limit))),
  }
}

interface Move {
  readonly from: string
  readonly to: string
  readonly scope: string | undefined
}

function transfer(database: Connection, { from, to, scope }: Move, limit: number): number {
  const pick = (statement: Sql<ThreadKey>, most: number) =>
    database.all(statement, { userId: from, scope: scope ?? null, limit: most })
  const threads = pick(USERS.threads(scope), limit)
  database.all(USERS.move, { ...keysOf(threads), from, to })
  database.all(USERS.removeGrant, { ...keysOf(threads), userId: to })
  const received = pick(USERS.received(scope), limit - threads.length)
  database.run(USERS.moveGrant, { ...keysOf(received), from, to })
  database.all(USERS.removeGrant, { ...keysOf(received), userId: from })
  const seen = pick(USERS.seen(scope), limit - threads.length - received.length)
  database.run(USERS.moveSeen, { ...keysOf(seen), from, to })
  database.all(USERS.removeSeen, { ...keysOf(seen), userId: from })
  return threads.length + received.length + seen.length
}

function erase(database: Connection, userId: string, now: number, limit: number): number {
  let left = limit
  const pick = (statement: Sql<ThreadKey>) => {
    const keys = database.all(statement, { userId, limit: left })
    left -= keys.length
    return keysOf(keys)
  }
  const threads = pick(USERS.threads())
  database.all(USERS.bury, { ...threads, userId, now })
  database.run(KEYS.removeGrants, threads)
  database.all(USERS.removeGrant, { ...pick(USERS.received()), userId })
  left -= database.all(USERS.removeGiven, { userId, limit: left }).length
  const seen = pick(USERS.seen())
  database.run(USERS.burySeen, { ...seen, userId, now })
  database.all(USERS.removeSeen, { ...seen, userId })
  return limit - left
}
