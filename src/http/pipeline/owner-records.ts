/** Looks up what a decision needs to know about a thread: its row or, without a row, the users seen on it. */
import type { Enforcement, OwnerRecord } from '../../core/decide/decide.ts'
import { readerOf, type Principal } from '../../core/decide/principal.ts'
import type { AccessStore, RowFacts, ThreadAccess } from '../../store/port/access.ts'
import type { ThreadKey } from '../../store/port/thread.ts'

export interface OwnerRecords {
  record(key: ThreadKey, principal: Principal): OwnerRecord | Promise<OwnerRecord>
  /** Threads without a record are not in the map. */
  records(
    scope: string,
    threadIds: readonly string[],
    principal: Principal,
  ): Promise<ReadonlyMap<string, NonNullable<OwnerRecord>>>
  /** Null if there are too many, or under `observe`. */
  naming(scope: string, principal: Principal): Promise<ReadonlySet<string> | null>
}

/** Listing this many ids takes a few milliseconds of SQLite. */
const MOST_NAMED = 10_000

/** Under `observe`, the user seen first counts as the owner that a row would name. */
export function makeOwnerRecords(store: AccessStore, enforcement: Enforcement): OwnerRecords {
  return {
    record(key, principal) {
      const threadAccess = store.accessTo(key, readerOf(principal))
      return threadAccess instanceof Promise
        ? threadAccess.then((known) => recordOf(known, enforcement))
        : recordOf(threadAccess, enforcement)
    },
    async records(scope, threadIds, principal) {
      const several = await store.accessToSeveral(scope, threadIds, readerOf(principal))
      return new Map(
        [...several].flatMap(([threadId, threadAccess]) => {
          const record = recordOf(threadAccess, enforcement)
          return record === null ? [] : [[threadId, record] as const]
        }),
      )
    },
    // While nothing is enforced, a user also owns threads on which they were only seen.
    naming: async (scope, principal) => (enforcement === 'observe' ? null : store.naming(scope, readerOf(principal), MOST_NAMED)),
  }
}

export function recordOfRow({ owner, deleted, provisional, granted }: RowFacts): NonNullable<OwnerRecord> {
  return { owner, deleted, ...(provisional ? { provisional } : {}), ...(granted === null ? {} : { granted }) }
}

function recordOf({ row, runners }: ThreadAccess, enforcement: Enforcement): OwnerRecord {
  if (row !== null) return recordOfRow(row)
  const [first, ...others] = runners
  if (first === undefined) return null
  if (enforcement === 'observe') return { owner: first, deleted: false }
  return { owner: others.length === 0 ? first : '', deleted: false, seen: true }
}
