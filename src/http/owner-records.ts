/** What decisions go by of a thread: its row, or what it means that somebody was seen on it without one. */
import type { OwnerRecord } from '../core/decide.ts'
import type { Principal } from '../core/principal.ts'
import { readerOf } from '../core/sharing.ts'
import type { OwnershipStore, RowFacts, Standing, ThreadKey } from '../store/port.ts'

/** Looks records up. */
export interface OwnerRecords {
  /** The record of a thread, as it stands to a caller. At once where it is remembered. */
  record(key: ThreadKey, principal: Principal): OwnerRecord | Promise<OwnerRecord>
  /** Those of several; threads without one are not in the map. One query, however many ids. */
  records(
    scope: string,
    threadIds: readonly string[],
    principal: Principal,
  ): Promise<ReadonlyMap<string, NonNullable<OwnerRecord>>>
}

/**
 * Makes the look-up.
 * @param observing while nothing is enforced, who was seen first counts as the owner that a row would name; after it, what
 * was seen is not for others to claim
 */
export function makeOwnerRecords(store: Pick<OwnershipStore, 'standing' | 'standings'>, observing: boolean): OwnerRecords {
  return {
    record(key, principal) {
      const standing = store.standing(key, readerOf(principal))
      return standing instanceof Promise ? standing.then((known) => recordOf(known, observing)) : recordOf(standing, observing)
    },
    async records(scope, threadIds, principal) {
      const standings = await store.standings(scope, threadIds, readerOf(principal))
      return new Map(
        [...standings].flatMap(([threadId, standing]) => {
          const record = recordOf(standing, observing)
          return record === null ? [] : [[threadId, record] as const]
        }),
      )
    },
  }
}

/** What decisions go by of a thread that has a row. */
export function recordOfRow({ owner, deleted, provisional, granted }: RowFacts): NonNullable<OwnerRecord> {
  return { owner, deleted, ...(provisional ? { provisional } : {}), ...(granted === null ? {} : { granted }) }
}

function recordOf({ row, runners }: Standing, observing: boolean): OwnerRecord {
  if (row !== null) return recordOfRow(row)
  const [first, ...others] = runners
  if (first === undefined) return null
  if (observing) return { owner: first, deleted: false }
  return { owner: others.length === 0 ? first : '', deleted: false, seen: true }
}
