/** What decisions go by of a thread: its row, or what it means that somebody was seen on it without one. */
import type { OwnerRecord } from '../../core/decide/decide.ts'
import type { Principal } from '../../core/decide/principal.ts'
import { readerOf } from '../../core/decide/sharing.ts'
import type { OwnershipStore, RowFacts, ThreadAccess, ThreadKey } from '../../store/port.ts'

export interface OwnerRecords {
  /** The record of a thread, as it stands to a caller. At once where it is remembered. */
  record(key: ThreadKey, principal: Principal): OwnerRecord | Promise<OwnerRecord>
  /** Those of several; threads without one are not in the map. One query, however many ids. */
  records(
    scope: string,
    threadIds: readonly string[],
    principal: Principal,
  ): Promise<ReadonlyMap<string, NonNullable<OwnerRecord>>>
  /**
   * The ids of the threads whose records name a caller: all that could be own or shared. Null where these are too many to
   * tell, or where others may count as the caller's too.
   */
  naming(scope: string, principal: Principal): Promise<ReadonlySet<string> | null>
}

/** Telling so many ids takes a few milliseconds of SQLite. */
const MOST_NAMED = 10_000

/**
 * Makes the look-up.
 * @param observing while nothing is enforced, who was seen first counts as the owner that a row would name; after it, what
 * was seen is not for others to claim
 */
export function makeOwnerRecords(
  store: Pick<OwnershipStore, 'standing' | 'standings' | 'naming'>,
  observing: boolean,
): OwnerRecords {
  return {
    record(key, principal) {
      const threadAccess = store.standing(key, readerOf(principal))
      return threadAccess instanceof Promise
        ? threadAccess.then((known) => recordOf(known, observing))
        : recordOf(threadAccess, observing)
    },
    async records(scope, threadIds, principal) {
      const standings = await store.standings(scope, threadIds, readerOf(principal))
      return new Map(
        [...standings].flatMap(([threadId, threadAccess]) => {
          const record = recordOf(threadAccess, observing)
          return record === null ? [] : [[threadId, record] as const]
        }),
      )
    },
    // What somebody was only seen on is theirs while nothing is enforced.
    naming: async (scope, principal) => (observing ? null : store.naming(scope, readerOf(principal), MOST_NAMED)),
  }
}

/** What decisions go by of a thread that has a row. */
export function recordOfRow({ owner, deleted, provisional, granted }: RowFacts): NonNullable<OwnerRecord> {
  return { owner, deleted, ...(provisional ? { provisional } : {}), ...(granted === null ? {} : { granted }) }
}

function recordOf({ row, runners }: ThreadAccess, observing: boolean): OwnerRecord {
  if (row !== null) return recordOfRow(row)
  const [first, ...others] = runners
  if (first === undefined) return null
  if (observing) return { owner: first, deleted: false }
  return { owner: others.length === 0 ? first : '', deleted: false, seen: true }
}
