/** Runs short blocking steps. The event loop turns between two spells of them. */

export interface Steps {
  /** Runs a step after all steps queued before it, of any caller. */
  take<T>(step: () => Promise<T>): Promise<T>
}

/** Milliseconds that a spell of steps lasts; a started step is not interrupted. */
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

/** Limits concurrent work. `share` limits each caller, so that one caller cannot take all slots. */
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
