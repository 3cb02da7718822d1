/**
 * What is fuzzed under coverage: readers of what callers and operators write, each with an oracle of its own. `examine` throws
 * where a property is broken. A target is loaded by itself, so that only what it uses is instrumented.
 */

/** A reader, and how to tell that it is wrong. */
export interface FuzzTarget {
  /** Reads an input and checks what came of it. Whatever it throws is a finding. */
  readonly examine: (input: Buffer) => void | Promise<void>
  /** Words of the format, which a fuzzer that knows only bytes would take long to find. */
  readonly words: readonly string[]
  /** Inputs to begin with, a character for each byte: what has to be taken, and what may be no more than nearly that. */
  readonly seeds: readonly string[]
}

/** All of them, by the name that the command line knows. */
export const TARGETS = {
  target: new URL('targets/request-target.ts', import.meta.url),
  headers: new URL('targets/headers.ts', import.meta.url),
  json: new URL('targets/json.ts', import.meta.url),
  envelope: new URL('targets/envelope.ts', import.meta.url),
  multipart: new URL('targets/multipart.ts', import.meta.url),
  cursor: new URL('targets/cursor.ts', import.meta.url),
  policy: new URL('targets/policy.ts', import.meta.url),
  import: new URL('targets/store-import.ts', import.meta.url),
} as const

export type TargetName = keyof typeof TARGETS

export const TARGET_NAMES = Object.keys(TARGETS) as readonly TargetName[]

/** Loads a target. */
export async function loadTarget(name: TargetName): Promise<FuzzTarget> {
  return (await import(TARGETS[name].href)) as FuzzTarget
}
