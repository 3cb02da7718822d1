/** Access invalidations between all processes on one PostgreSQL database, and the cache that depends on them. */
import { makeChangeFeed } from './change-feed.ts'
import type { PostgresPool, Queries } from '../../postgres/pool.ts'
import type { PostgresSettings } from '../../postgres/settings.ts'
import type { AccessInvalidations } from '../port/access.ts'
import type { ThreadKey } from '../port/thread.ts'
import type { Database, SchemaIdentity } from './database.ts'
import { makeAccessCache, type AccessCache } from '../access-cache.ts'

/** Null for many. */
export type Changed = (keys: readonly ThreadKey[] | null) => void

export interface PostgresInvalidations extends AccessInvalidations {
  change<T>(work: (queries: Queries, changed: Changed) => Promise<T>): Promise<T>
  /** Null for none. It answers only after `start`, once changes are received. */
  readonly cache: AccessCache | null
  start(): void
  stop(): void
}

type Listener = (key: ThreadKey | null) => void

const FEED = 'standing'

/** A change of more threads than this is announced as a change of all. */
const MOST_KEYS = 100

/** `cacheSize` is in threads; 0: no cache. */
export function makePostgresInvalidations(
  database: Database,
  pool: PostgresPool,
  settings: PostgresSettings,
  cacheSize: number,
  identity: SchemaIdentity,
): PostgresInvalidations {
  const listeners = new Set<Listener>()
  const invalidate = (key: ThreadKey | null): void => {
    cache?.drop(key)
    for (const listener of [...listeners]) listener(key)
  }
  const feed = makeChangeFeed({
    settings,
    pool,
    name: FEED,
    onChange: (about) => keysOf(about).forEach(invalidate),
    onLost: () => invalidate(null),
    onAnswer: (made) => identity.note(made),
    now: () => performance.now(),
  })
  const cache = cacheSize === 0 ? null : makeAccessCache(cacheSize, () => feed.isFresh())
  identity.onChange(() => invalidate(null))
  return {
    cache,
    async change(work) {
      const invalidated: (ThreadKey | null)[] = []
      try {
        return await database.transaction(async (queries) => {
          invalidated.length = 0
          const result = await work(queries, (keys) => {
            for (const key of keys === null || keys.length > MOST_KEYS ? [null] : keys) invalidated.push(key)
          })
          if (invalidated.length > 0) await feed.announce(queries, announced(invalidated))
          return result
        })
      } finally {
        // Also if it is unknown whether the transaction was committed.
        invalidated.forEach(invalidate)
      }
    },
    onInvalidation(listener) {
      feed.start()
      // Each call is a listener of its own, even if the function is not.
      const own: Listener = (key) => listener(key)
      listeners.add(own)
      return () => void listeners.delete(own)
    },
    start: () => feed.start(),
    stop: () => feed.stop(),
  }
}

function announced(keys: readonly (ThreadKey | null)[]): readonly (readonly [scope: string, threadId: string])[] | null {
  const known = keys.filter((key) => key !== null)
  return known.length < keys.length ? null : known.map(({ scope, threadId }) => [scope, threadId] as const)
}

/** Null for many, and for another program's payload. */
function keysOf(about: unknown): readonly (ThreadKey | null)[] {
  if (!Array.isArray(about)) return [null]
  return about.map((pair: unknown) => {
    const [scope, threadId] = Array.isArray(pair) ? (pair as unknown[]) : []
    return typeof scope === 'string' && typeof threadId === 'string' ? { scope, threadId } : null
  })
}
