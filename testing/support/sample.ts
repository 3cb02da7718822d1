/**
 * How much of a large set a test runs (docs/contributing/testing.md). `npm test` runs a sample; `npm run test:all` runs everything that
 * the sample leaves out.
 */

/** `others` where the sample has run in the same way and only what it left out is missing. */
export const EXTENT = (process.env['THREADWARDEN_TEST_EXTENT'] ?? 'sample') as 'sample' | 'others' | 'all'

/** How many cases a test makes up: one in `step` of them in `npm test`. */
export function runsOf(runs: number, step: number): number {
  return EXTENT === 'sample' ? Math.ceil(runs / step) : runs
}

/**
 * Every `step`th of some cases in `npm test`, and all of them elsewhere.
 * @param first of those of the sample: tests of one set with several others begin at different ones
 */
export function sampleOf<Case>(cases: readonly Case[], step: number, first = 0): readonly Case[] {
  return EXTENT === 'sample' ? cases.filter((_, at) => at % step === first % step) : cases
}
