/** Reads a source to its end before anything of it is written. */
import type { ThreadKey } from '../../store/port.ts'
import type { Entry } from './entry.ts'
import type { Problem } from './problem.ts'
import type { StagingTable } from './staging-table.ts'

export interface Filled {
  /** Lines of a file, or threads of a list. */
  readonly read: number
  readonly invalid: number
  readonly unmapped: number
  /** Threads that the source does not say whose they are, and that have an owner in the table. */
  readonly there: number
  /** Threads that a mapping gives to different users. */
  readonly disputed: number
  /** Threads that something is known of. */
  readonly threads: number
  /** True if the signal came before the end: what was read is of no use. */
  readonly interrupted: boolean
}

/** What is told while it is read. */
export interface FillOptions {
  readonly signal: AbortSignal
  readonly onProblem: (problem: Problem) => void
}

/**
 * Copies a source into a staging table, and seals that.
 * @param isThere whether a thread has an owner in the table, of which the source does not say whose it is
 * @throws SourceFault if it can't be read to its end
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
    // The signal ends what the source waits for, with an error of its own.
    if (!options.signal.aborted) throw error
  }
  const interrupted = options.signal.aborted
  return { ...count, disputed: disputed.size, threads: interrupted ? 0 : staging.seal(), interrupted }
}
