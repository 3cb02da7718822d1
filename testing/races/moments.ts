/** Moments of one process, in the order in which they were: what happened here before and after what. */
export type Moments = () => number

/** Begins to count. */
export function makeMoments(): Moments {
  let now = 0
  return () => (now += 1)
}
