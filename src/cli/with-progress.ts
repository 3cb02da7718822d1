/** Long work on the store: with progress, retries for transient failures, and a stop by signal that loses nothing. */
import { makeRetry, PATIENT, type Retry } from '../tools/import-export/retry.ts'
import { complain } from './command.ts'
import { listenForInterruption } from './interruption.ts'
import { makeProgress, type Progress } from './progress.ts'

export interface LongWork {
  readonly progress: Progress
  readonly retry: Retry
  readonly signal: AbortSignal
}

export async function withProgress<T>(quiet: boolean, work: (steady: LongWork) => Promise<T>): Promise<T> {
  const interruption = listenForInterruption()
  const progress = makeProgress(process.stderr, quiet)
  const { signal } = interruption
  const onTrouble = (error: Error): void => complain(`${error.message}; it is tried again for ${PATIENT.limit / 1000} s`)
  try {
    return await work({ progress, signal, retry: makeRetry({ ...PATIENT, signal, onTrouble }) })
  } finally {
    progress.end()
    interruption.over()
  }
}
