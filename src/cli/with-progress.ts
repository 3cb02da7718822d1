/** Long work on the store: with progress, retries for transient failures, and a stop by signal after the current step. */
import { inSteps, makeRetry, COMMAND_RETRY, type Retry, type Steps } from '../tools/import-export/retry.ts'
import { EXIT } from './command.ts'
import { complain, type Terminal } from './terminal.ts'
import { makeProgress, type Progress } from './progress.ts'

export interface LongWork {
  readonly progress: Progress
  readonly retry: Retry
  /** Aborted by the first SIGINT or SIGTERM. The second one ends the process at once. */
  readonly signal: AbortSignal
  /**
   * @param step processes some rows, and returns how many; 0 when none are left
   * @param before how many rows were processed before
   */
  readonly steps: (step: () => Promise<number>, before?: number) => Promise<Steps>
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

export async function withProgress<T>(
  terminal: Terminal,
  options: { readonly quiet: boolean },
  work: (long: LongWork) => Promise<T>,
): Promise<T> {
  const progress = makeProgress(terminal.stderr, options)
  const interruption = new AbortController()
  const { signal } = interruption
  const onSignal = (): void => {
    if (signal.aborted) process.exit(EXIT.failure)
    interruption.abort()
  }
  for (const name of SIGNALS) process.on(name, onSignal)
  const onTrouble = (error: Error): void =>
    complain(terminal, `${error.message}; it is tried again for ${COMMAND_RETRY.limit / 1000} s`)
  try {
    const retry = makeRetry({ ...COMMAND_RETRY, signal, onTrouble })
    const steps: LongWork['steps'] = (step, before = 0) => inSteps(step, retry, signal, (done) => progress.at(before + done))
    return await work({ progress, signal, retry, steps })
  } finally {
    progress.end()
    for (const name of SIGNALS) process.off(name, onSignal)
  }
}
