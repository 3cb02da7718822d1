/** The store on SQLite, all of it in one file, shared safely by several processes on one machine. */
import type { Store } from './port.ts'
import { assignmentIn } from './sqlite-assignment.ts'
import { SqliteFile } from './sqlite-file.ts'
import { grantsIn } from './sqlite-grants.ts'
import { healthOf } from './sqlite-health.ts'
import { importIn } from './sqlite-import.ts'
import { listedIn } from './sqlite-lists.ts'
import { newsOf } from './sqlite-news.ts'
import { observationsIn } from './sqlite-observations.ts'
import { ownershipIn } from './sqlite-ownership.ts'
import { peopleIn } from './sqlite-people.ts'
import { pruningIn } from './sqlite-prune.ts'
import { revocationsIn } from './sqlite-revocations.ts'
import { rowsIn } from './sqlite-rows.ts'
import { standingsRememberedOf } from './sqlite-standings.ts'
import { makeSlots, makeSteps } from './steps.ts'

/** What may be set. */
export interface SqliteOptions {
  /** How long another process's lock is waited for, in milliseconds, by default 5000. */
  readonly patience?: number
  /** Of how many threads it is remembered who may use them, by default 20,000. */
  readonly cache?: number
}

/** So many lists are read at once, because what they hold meanwhile is not counted. */
const LISTS_AT_ONCE = 8

/** A few megabytes. */
const CACHE = 20_000

/**
 * Opens the store, making file and folder where they are missing.
 * @param path the path of the database
 * @throws StoreUnavailable with the path and what to do, if it can't be opened or written
 */
export async function openSqliteStore(path: string, { patience, cache = CACHE }: SqliteOptions = {}): Promise<Store> {
  const file = await SqliteFile.open(path, patience)
  const remembered = standingsRememberedOf(file, cache)
  const steps = makeSteps()
  const listing = makeSlots(LISTS_AT_ONCE, LISTS_AT_ONCE / 2)
  const news = newsOf(file, { onOwn: (changed) => remembered.forget(changed), onNews: () => remembered.askAgain() })
  return {
    ...ownershipIn(file, news, remembered),
    listed: (scope, reader, window) =>
      listing(reader === 'everybody' ? reader : reader.userId, () => listedIn(file, steps, scope, reader, window)),
    ...observationsIn(file),
    ...grantsIn(file, news),
    ...rowsIn(file),
    ...importIn(file, news),
    ...assignmentIn(news),
    ...peopleIn(news),
    ...pruningIn(file, news),
    ...revocationsIn(file),
    onStanding: (listener) => news.onStanding(listener),
    fault: healthOf(file),
    async close() {
      news.stop()
      file.close()
    },
  }
}
