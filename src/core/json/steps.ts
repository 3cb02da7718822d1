/** Work in steps, between which other requests may have their turn. */

export type Steps<Result> = Generator<undefined, Result, undefined>

export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
