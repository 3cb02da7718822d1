/** Runs an import: reads the source, then takes it over. A repeated import continues where an interrupted one ended. */
import { NOBODY, type ThreadKey } from '../../store/port/thread.ts'
import type { Entry } from './entry.ts'
import { fill, type FillOptions } from './fill.ts'
import type { Problem } from './problem.ts'
import { makeStagingTable, type StagingTable } from './staging-table.ts'
import { BATCH, takeOver, type Tally, type TakeoverOptions, type Target } from './takeover.ts'

export interface ImportReport extends Readonly<Tally> {
  /** Lines of the file, or threads of the list. */
  readonly read: number
  readonly repeated: number
  readonly invalid: number
  /** Threads of the list that have an owner neither in the source nor in the table. */
  readonly unmapped: number
  /** Threads of the mapping that are not in the list; null without a mapping. */
  readonly unlisted: number | null
  /** False after an interruption: a repeated import continues. */
  readonly complete: boolean
}

export interface ImportOptions extends Omit<TakeoverOptions, 'onProgress'>, FillOptions {
  readonly onRead: (threads: number) => void
  readonly onSettled: (done: number) => void
}

export interface Source {
  readonly entries: AsyncIterable<Entry | Problem>
  readonly mapping: StagingTable | null
}

/**
 * @param tally counts during the import, so that the caller knows the progress if the store fails
 * @throws SourceFault if the source cannot be read to its end: then nothing was imported
 * @throws StoreUnavailable when the retry limit is reached
 */
export async function importFrom(source: Source, target: Target, tally: Tally, options: ImportOptions): Promise<ImportReport> {
  const staging = makeStagingTable()
  try {
    const isThere = async (key: ThreadKey): Promise<boolean> => {
      const owner = (await options.retry(() => target.thread(key)))?.row?.owner
      return owner !== undefined && owner !== NOBODY
    }
    const filled = await fill(source.entries, staging, options, isThere)
    const { read, invalid, unmapped, disputed, threads, interrupted } = filled
    tally.conflicts += disputed
    tally.same += filled.there
    const counts = { read, invalid, unmapped, unlisted: null }
    if (interrupted) return { ...tally, ...counts, repeated: 0, complete: false }
    options.onRead(threads)
    const taken = await takeOver(staging, target, tally, { ...options, onProgress: options.onSettled })
    const unlisted = source.mapping === null ? null : countUnlisted(source.mapping, staging)
    return { ...tally, ...counts, repeated: taken.repeated, unlisted, complete: !taken.interrupted }
  } finally {
    staging.close()
  }
}

/** @returns the mapping, which the caller closes; null if the signal came before the end */
export async function readMapping(
  entries: AsyncIterable<Entry>,
  options: FillOptions,
): Promise<{ readonly mapping: StagingTable; readonly invalid: number } | null> {
  const mapping = makeStagingTable()
  let isKept = false
  try {
    const { invalid, interrupted } = await fill(entries, mapping, options)
    isKept = !interrupted
    return interrupted ? null : { mapping, invalid }
  } finally {
    if (!isKept) mapping.close()
  }
}

function countUnlisted(mapping: StagingTable, listed: StagingTable): number {
  let count = 0
  for (let after: ThreadKey | null = null; ;) {
    const page = mapping.page(after, BATCH)
    count += page.rows.filter((row) => listed.ownerOf(row) === null).length
    if (page.next === null) return count
    after = page.next
  }
}
