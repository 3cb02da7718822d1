/** What the gateway reads of the events of a run, in both encodings. */

/** Text in bytes; usage in tokens, 0 where the event has none. */
export interface SeenEvent {
  readonly kind: 'run-started' | 'run-over' | 'other'
  readonly text: number
  readonly usage: number
}

/** Reads a stream piece by piece, and keeps nothing of it but counts. */
export interface EventScanner {
  see(chunk: Uint8Array): void
  /** Bytes of text of the event under way. */
  underWay(): number
  /** The stream is over: its last event may lack its end. */
  end(): void
}

/** Never leaves the numbers that are exact. */
export function addTokens(one: number, other: number): number {
  return Math.min(one + other, Number.MAX_SAFE_INTEGER)
}

/** The counts of one entry of `usage`. The other counts are parts of these (AG-UI 1.0, `TokenUsage`). */
export interface UsageEntry {
  readonly inputTokens?: unknown
  readonly outputTokens?: unknown
  readonly totalTokens?: unknown
}

/** One entry for each provider and model. A count that is no number of tokens counts as absent. */
export function usageTokens(entries: readonly UsageEntry[]): number {
  let tokens = 0
  for (const { inputTokens, outputTokens, totalTokens } of entries) {
    const parts = addTokens(countOf(inputTokens), countOf(outputTokens))
    tokens = addTokens(tokens, Math.max(parts, countOf(totalTokens)))
  }
  return tokens
}

function countOf(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0
}
