/** Runs an import: reads the source to its end, then takes it over. A repeated import continues where an interrupted one ended. */
import { NOBODY, type ThreadKey } from '../../store/port/thread.ts'
import type { Entry } from './entry.ts'
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

interface ImportOptions extends Omit<TakeoverOptions, 'onProgress'>, FillOptions {
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

interface ReadMapping {
  readonly mapping: StagingTable
  readonly invalid: number
  /** Ids of the mapping that the gateway refuses; the first ones, if there are very many. */
  readonly refusedIds: ReadonlySet<string>
}

const MOST_REFUSED_IDS = 10_000

/** @returns the mapping, which the caller closes; null if the signal came before the end */
export async function readMapping(entries: AsyncIterable<Entry>, options: FillOptions): Promise<ReadMapping | null> {
  const mapping = makeStagingTable()
  const refusedIds = new Set<string>()
  const noting = async function* (): AsyncGenerator<Entry> {
    for await (const entry of entries) {
      if (entry.kind === 'fault' && entry.refusedId !== null && refusedIds.size < MOST_REFUSED_IDS)
        refusedIds.add(entry.refusedId)
      yield entry
    }
  }
  let isKept = false
  try {
    const { invalid, interrupted } = await fill(noting(), mapping, options)
    isKept = !interrupted
    return interrupted ? null : { mapping, invalid, refusedIds }
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

interface Filled {
  readonly read: number
  readonly invalid: number
  readonly unmapped: number
  /** Threads without an owner in the source, and with an owner in the table. */
  readonly there: number
  readonly disputed: number
  readonly threads: number
  /** True if the signal came before the end: the data is then incomplete and of no use. */
  readonly interrupted: boolean
}

interface FillOptions {
  readonly signal: AbortSignal
  readonly onProblem: (problem: Problem) => void
}

/**
 * @param isThere whether a thread without an owner in the source has an owner in the table
 * @throws SourceFault if the source cannot be read to its end
 */
export async function fill(
  source: AsyncIterable<Entry | Problem>,
  staging: StagingTable,
  options: FillOptions,
  isThere: (key: ThreadKey) => Promise<boolean> = async () => false,
): Promise<Filled> {
  const count = { read: 0, invalid: 0, unmapped: 0, there: 0 }
  const disputed = new Set<string>()
  const take = async (entry: Entry | Problem): Promise<void> => {
    switch (entry.kind) {
      case 'row':
        staging.add(entry)
        break
      case 'fault':
        count.invalid += 1
        staging.add(entry)
        options.onProblem({ ...entry, kind: 'invalid', users: [], line: entry.line === 0 ? null : entry.line })
        break
      case 'unmapped':
        if (entry.threadId !== null && (await isThere({ scope: entry.scope, threadId: entry.threadId }))) {
          count.there += 1
          break
        }
        count.unmapped += 1
        options.onProblem(entry)
        break
      case 'invalid':
      case 'conflict':
        if (entry.threadId !== null) disputed.add(entry.threadId)
        options.onProblem(entry)
        break
    }
  }
  try {
    for await (const entry of source) {
      if (options.signal.aborted) break
      count.read += 1
      await take(entry)
    }
  } catch (error) {
    // The signal ends the source's pending reads with an error of its own.
    if (!options.signal.aborted) throw error
  }
  const interrupted = options.signal.aborted
  return { ...count, disputed: disputed.size, threads: interrupted ? 0 : staging.seal(), interrupted }
}
