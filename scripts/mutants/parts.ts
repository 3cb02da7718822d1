/** What is mutated, and by which tests it has to be held. A part is small enough that its tests are quick. */

/** One part. */
export interface Part {
  /** Files or patterns below the repository. */
  readonly mutate: readonly string[]
  /** Test files: each is run for every mutant that it reaches, until one fails. */
  readonly tests: readonly string[]
}

/** The parts, in the order of a request's way. */
export const PARTS: Readonly<Record<string, Part>> = {
  core: {
    mutate: ['src/core/**/*.ts'],
    tests: ['test/core/*.test.ts', 'test/policy/*.test.ts', 'test/docs/errors.test.ts'],
  },
}
