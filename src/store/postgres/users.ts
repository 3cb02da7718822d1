/** Transfers or erases all data of a user in PostgreSQL, in steps. */
import type { Queries } from '../../postgres/pool.ts'
import type { UserStore } from '../port/administration.ts'
import { NOBODY, type ThreadKey } from '../port/thread.ts'
import { keyStatements } from '../sql/keys.ts'
import { sql, type Dialect, type Sql } from '../sql/statement.ts'
import { userStatements } from '../sql/users.ts'
import { keysOf, run } from './database.ts'
import type { PostgresInvalidations } from './invalidations.ts'

export function usersOn(dialect: Dialect, invalidations: PostgresInvalidations): Omit<UserStore, 'userData'> {
  const users = userStatements(dialect)
  const { removeGrants } = keyStatements(dialect)
  // Serializes grants with statements that remove them.
  const lock = sql(`SELECT 1 AS locked FROM ${dialect.asked} JOIN ${dialect.threads} AS there USING (scope, thread_id)
    ORDER BY there.scope, there.thread_id FOR UPDATE OF there`)

  const step = (work: (queries: Queries) => Promise<number>): Promise<number> =>
    invalidations.change(async (queries, changed) => {
      const count = await work(queries)
      if (count > 0) changed(null)
      return count
    })
  /** The rows of these threads are locked. */
  const find = async (queries: Queries, statement: Sql<ThreadKey>, userId: string, limit: number, scope?: string) => {
    const keys = keysOf(await run(queries, statement, { userId, limit, scope }))
    await run(queries, lock, keys)
    return keys
  }

  return {
    transfer: async (from, to, limit, scope) => {
      // No user owns an unowned thread, so no user can transfer it.
      if (from === to || from === NOBODY || to === NOBODY) return 0
      return step(async (queries) => {
        let left = limit
        const threads = await find(queries, users.threads(scope), from, left, scope)
        const moved = await run(queries, users.move, { ...threads, from, to })
        await run(queries, users.removeGrant, { ...keysOf(moved), userId: to })
        left -= moved.length
        const received = await find(queries, users.received(scope), from, left, scope)
        await run(queries, users.moveGrant, { ...received, from, to })
        left -= (await run(queries, users.removeGrant, { ...received, userId: from })).length
        const seen = await find(queries, users.seen(scope), from, left, scope)
        await run(queries, users.moveSeen, { ...seen, from, to })
        left -= (await run(queries, users.removeSeen, { ...seen, userId: from })).length
        return limit - left
      })
    },
    erase: async (userId, now, limit) => {
      if (userId === NOBODY) return 0
      return step(async (queries) => {
        let left = limit
        const threads = await find(queries, users.threads(), userId, left)
        const buried = await run(queries, users.bury, { ...threads, userId, now })
        await run(queries, removeGrants, keysOf(buried))
        left -= buried.length
        const received = await find(queries, users.received(), userId, left)
        left -= (await run(queries, users.removeGrant, { ...received, userId })).length
        left -= (await run(queries, users.removeGiven, { userId, limit: left })).length
        const seen = await find(queries, users.seen(), userId, left)
        await run(queries, users.burySeen, { ...seen, userId, now })
        left -= (await run(queries, users.removeSeen, { ...seen, userId })).length
        return limit - left
      })
    },
  }
}
