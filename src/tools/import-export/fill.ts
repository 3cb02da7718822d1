/** Reads a source to its end before the import writes any of it. */
import type { ThreadKey } from '../../store/port/thread.ts'
import type { Entry } from './entry.ts'
import type { Problem } from './problem.ts'
import type { StagingTable } from './staging-table.ts'

export interface Filled {
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

export interface FillOptions {
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
