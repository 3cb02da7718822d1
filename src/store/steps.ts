/**
 * Steps of work that holds the process: each is short, and between two spells of them the event loop turns, however many
 * works are under way at once.
 */

/** Takes steps in turn. */
export interface Steps {
  /** Takes a step when those before it are done, whoever's they are. */
  take<T>(step: () => Promise<T>): Promise<T>
}

/** So long a spell of steps goes on, in milliseconds; a step that has begun is not broken off. */
const SPELL_MS = 3

/** Makes them. */
export function makeSteps(): Steps {
  const waiting: (() => void)[] = []
  let isComing = false
  const come = (): void => {
    isComing = true
    setImmediate(() => {
      isComing = false
      const until = performance.now() + SPELL_MS
      do waiting.shift()?.()
      while (performance.now() < until && waiting.length > 0)
      if (waiting.length > 0) come()
    })
  }
  return {
    take: (step) =>
      new Promise((resolve, reject) => {
        waiting.push(() => void step().then(resolve, reject))
        if (!isComing) come()
      }),
  }
}

/** Lets so many works be under way at once; the others wait until one of them is over. */
export function makePlaces(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let taken = 0
  return async (work) => {
    if (taken === most) await new Promise<void>((resolve) => waiting.push(resolve))
    else taken += 1
    try {
      return await work()
    } finally {
      // Whoever waits takes the place over.
      const next = waiting.shift()
      if (next === undefined) taken -= 1
      else next()
    }
  }
}
