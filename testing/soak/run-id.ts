/** What a run is to be answered by, in its id: the gateway passes that on as it is. */

/** An answer of the upstream of a soak. */
export interface Script {
  readonly events: number
  /** Milliseconds between two of them. */
  readonly every: number
  /** Whether they are large. */
  readonly isFilled: boolean
}

/** Writes it. @param nonce makes it another one than all others */
export function writeRunId({ events, every, isFilled }: Script, nonce: string): string {
  return `${isFilled ? 'filled' : 'small'}-${events}-${every}-${nonce}`
}

/** Reads it. */
export function readRunId(runId: string): Script {
  const [filled, events, every] = runId.split('-')
  return { events: Number(events), every: Number(every), isFilled: filled === 'filled' }
}
