/** Opens the counters of limits: replicas that share a database share them, too. */
import { storeOf } from '../config/store-place.ts'
import type { Config } from '../config/schema.ts'
import { makeMemoryLimiter } from './memory.ts'
import type { Limiter } from './port.ts'
import { makePostgresLimiter } from './postgres.ts'
import type { Logger } from '../observe/log.ts'
import type { PostgresPool } from '../postgres/pool.ts'

export interface OpenLimiter extends Limiter {
  stop(): void
}

export function openLimiter(ownership: Config['ownership'], pool: PostgresPool | null, log: Logger): OpenLimiter {
  const named = storeOf(ownership)
  if (named.kind !== 'postgres' || pool === null) return { ...makeMemoryLimiter(), stop() {} }
  return makePostgresLimiter({
    pool,
    schema: named.settings.schema,
    onOutage: (error) => {
      if (error === null) log.info('limits are shared with the other replicas again')
      else log.warn({ err: error }, 'limits cannot be counted in the database: until they can, each replica counts separately')
    },
  })
}
