/** Bounds the memory of bodies and answers: the gateway refuses more before the process runs out of memory. */

/** In bytes. */
export interface BodyBudget {
  readonly most: number
  take(bytes: number): boolean
  give(bytes: number): void
}

/** A budget of which no caller may take all. */
export interface SharedBudget extends BodyBudget {
  of(caller: string): BodyBudget
}

/** @param share bytes that a caller may hold. A caller who holds nothing may take more: a large body is taken whole. */
export function makeBudget(most: number, share = most): SharedBudget {
  let left = most
  const taken = new Map<string, number>()
  return {
    most,
    take(bytes) {
      if (bytes > left) return false
      left -= bytes
      return true
    },
    give(bytes) {
      left += bytes
    },
    of: (caller) => ({
      most: Math.min(most, share),
      take(bytes) {
        const theirs = taken.get(caller) ?? 0
        if (bytes > left || (theirs > 0 && theirs + bytes > share)) return false
        left -= bytes
        taken.set(caller, theirs + bytes)
        return true
      },
      give(bytes) {
        left += bytes
        const theirs = (taken.get(caller) ?? 0) - bytes
        if (theirs > 0) taken.set(caller, theirs)
        else taken.delete(caller)
      },
    }),
  }
}

/** Memory per byte of a body that is read and written. Up to 6.3 were measured, for text with a character beyond Latin-1. */
const PER_BYTE = 6

/** For each value in a body: `{"999":1}` takes the most. */
const PER_VALUE = 200

/** In bytes. */
export function readingCost(bytes: number, values: number): number {
  return bytes * PER_BYTE + values * PER_VALUE
}

export function largestReadable(most: number): number {
  return Math.floor(most / PER_BYTE)
}

/** In bytes. */
export interface BodyMemory {
  /** For what has arrived of all bodies; text takes up to twice that. */
  readonly held: number
  readonly reading: number
  readonly answers: number
}

/** A quarter of the heap is for everything else, and for bodies that wait. `heap` is V8's old space in bytes. */
export function bodyMemory(heap: number): BodyMemory {
  return { held: heap / 8, reading: (heap * 3) / 8, answers: heap / 4 }
}

export function bodyMemoryWarning(heap: number, limits: { readonly body: number; readonly runBody: number }): string | null {
  const largest = largestReadable(bodyMemory(heap).reading)
  if (Math.max(limits.body, limits.runBody) <= largest) return null
  const mebibytes = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)} MiB`
  return `bodies of more than ${mebibytes(largest)} are refused with 413: Node has ${mebibytes(heap)} here for all that lives. Give the container more memory, or lower limits.runBody`
}
