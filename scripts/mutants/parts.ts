/** What is mutated, and by which tests it has to be held. A part is small enough that its tests are quick. */

/** One part. */
export interface Part {
  /** Files or patterns below the repository. */
  readonly mutate: readonly string[]
  /** Test files: each is run for every mutant that it reaches, until one fails. */
  readonly tests: readonly string[]
}

/** The parts. */
export const PARTS: Readonly<Record<string, Part>> = {
  core: {
    mutate: ['src/core/**/*.ts'],
    tests: ['test/core/*.test.ts', 'test/policy/*.test.ts', 'test/docs/errors.test.ts'],
  },
  lists: {
    mutate: ['src/http/lists/thread-list.ts', 'src/http/lists/cursor.ts'],
    tests: ['test/http/cursor.test.ts', 'test/http/list-*.test.ts', 'test/security/list-*.test.ts'],
  },
  bodies: {
    mutate: ['src/http/pipeline/payload.ts', 'src/http/pipeline/request-body.ts'],
    tests: [
      'test/http/{payload,request-body,chunk-coalescing,caller-message,expect,handshake,hostile-callers}.test.ts',
      'test/http/body-*.test.ts',
      'test/security/{body-*,hostile-json,multipart,single-route-envelope}.test.ts',
    ],
  },
}
