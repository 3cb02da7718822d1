/** Handles Ctrl-C and SIGTERM in a command that writes: it finishes the current step, and reports its progress. */
import { EXIT } from './command.ts'

export interface Interruption {
  /** Aborted by the first signal. The second signal ends the process at once. */
  readonly signal: AbortSignal
  over(): void
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

export function listenForInterruption(): Interruption {
  const told = new AbortController()
  const onSignal = (): void => {
    if (told.signal.aborted) process.exit(EXIT.failure)
    told.abort()
  }
  for (const name of SIGNALS) process.on(name, onSignal)
  return {
    signal: told.signal,
    over() {
      for (const name of SIGNALS) process.off(name, onSignal)
    },
  }
}
