/**
 * In place of the package by which tap finds the test of an error that nobody caught (run-files.ts). That package follows every promise
 * and every socket by async hooks, which costs a tenth of the time of all tests. Here tests run one at a time, so that such an error
 * belongs to the test that runs.
 */

type Handle = (error: unknown, event: string) => void

/** What tap makes for each test. */
export class Domain {
  readonly onerror: Handle

  constructor(onerror: Handle) {
    this.onerror = onerror
  }

  destroy(): void {
    // It holds nothing: the worker asks the test that runs.
  }
}
