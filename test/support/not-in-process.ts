/**
 * Why some tests do not run in process: hooks get a request that a server has parsed already, and what it folded, joined or
 * refused they can't see (docs/hooks.md). What holds there instead is in test/hooks/what-hooks-cannot-hold.test.ts.
 */

/** The tests, by their names, each with its reason. */
export const NOT_IN_PROCESS: Readonly<Record<string, string>> = {}

/** The reason against a test in process; null if there is none. */
export function reasonAgainst(name: string): string | null {
  return NOT_IN_PROCESS[name] ?? null
}
