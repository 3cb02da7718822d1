/**
 * What bodies and answers may take of the memory that Node has: more of them is refused, before the process ends for want of it. A JSON body
 * takes several times its bytes while it is read, and is worth its bytes alone again once it is written anew.
 */

/**
 * For each byte of a body while it is read: its text, what JSON.parse makes of it, and the text that it is written as. Up to 6.3
 * were measured, where one character beyond Latin-1 makes all of it two bytes wide.
 */
const PER_BYTE = 6

/** For each value in it: `{"999":1}` takes the most. */
const PER_VALUE = 200

/** What reading a body takes, in bytes. */
export function readingCost(bytes: number, values: number): number {
  return bytes * PER_BYTE + values * PER_VALUE
}

/** The largest body that can be read where so many bytes may be taken. */
export function largestReadable(most: number): number {
  return Math.floor(most / PER_BYTE)
}

/** The shares of bodies, in bytes. */
export interface BodyMemory {
  /** Of what has come of all of them; text takes up to twice that. */
  readonly held: number
  /** Of reading them. */
  readonly reading: number
  /** Of answers that are read whole. */
  readonly answers: number
}

/**
 * Shares the heap out. What is left of it, a quarter, is for everything else, and for bodies that have come and wait.
 * @param heap what Node has for what is not new, in bytes
 */
export function bodyMemory(heap: number): BodyMemory {
  return { held: heap / 8, reading: (heap * 3) / 8, answers: heap / 4 }
}

/** What to do about it where the memory is too little for the bodies that are allowed, or null. */
export function bodyMemoryWarning(heap: number, limits: { readonly body: number; readonly runBody: number }): string | null {
  const largest = largestReadable(bodyMemory(heap).reading)
  if (Math.max(limits.body, limits.runBody) <= largest) return null
  const mebibytes = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)} MiB`
  return `bodies of more than ${mebibytes(largest)} are refused with 413: Node has ${mebibytes(heap)} here for all that lives. Give the container more memory, or lower limits.runBody`
}
