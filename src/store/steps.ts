/**
 * Steps of work that holds the process: each is short, and between two spells of them the event loop turns, however many
 * works are under way at once.
 */

export interface Steps {
  /** Takes a step when those before it are done, whoever's they are. */
  take<T>(step: () => Promise<T>): Promise<T>
}

/** So long a spell of steps goes on, in milliseconds; a step that has begun is not broken off. */
const SPELL_MS = 3

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

/**
 * Lets so many works run at once; the others wait.
 * @param share how many of them one caller may have, so that others always find a slot that is not theirs
 */
export function makeSlots(most: number, share: number): <T>(caller: string, work: () => Promise<T>) => Promise<T> {
  const waiting: { readonly caller: string; readonly begin: () => void }[] = []
  const running = new Map<string, number>()
  let free = most
  const take = (caller: string): boolean => {
    const theirs = running.get(caller) ?? 0
    if (free === 0 || theirs === share) return false
    free -= 1
    running.set(caller, theirs + 1)
    return true
  }
  const give = (caller: string): void => {
    free += 1
    const left = (running.get(caller) ?? 1) - 1
    if (left === 0) running.delete(caller)
    else running.set(caller, left)
    const next = waiting.findIndex((one) => take(one.caller))
    if (next !== -1) waiting.splice(next, 1)[0]?.begin()
  }
  return async (caller, work) => {
    if (!take(caller)) await new Promise<void>((begin) => waiting.push({ caller, begin }))
    try {
      return await work()
    } finally {
      give(caller)
    }
  }
}
