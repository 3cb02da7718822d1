/** V8 old-space size. */
import { getHeapStatistics } from 'node:v8'

/** As much as Node takes by itself for each part of what is new, in MiB, and how many parts there are. */
const MOST_OF_NEW = 64
const PARTS_OF_NEW = 3

/**
 * What is left of a heap for what is not new.
 * @param limit what V8 says that the whole heap may grow to, in bytes
 * @param options of Node: its own arguments, and NODE_OPTIONS
 * @returns bytes; rather too few, where nothing says how much is for what is new
 */
export function oldSpaceOf(limit: number, options: readonly string[]): number {
  const said = options.flatMap((option) => [...option.matchAll(/--max[-_]semi[-_]space[-_]size[= ](\d+)/g)]).at(-1)?.[1]
  const ofNew = PARTS_OF_NEW * Number(said ?? MOST_OF_NEW) * 2 ** 20
  return Math.max(limit - ofNew, limit * 0.4)
}

/** That of this process. */
export function oldSpace(): number {
  return oldSpaceOf(getHeapStatistics().heap_size_limit, nodeOptions())
}

/** What Node was started with here: its own arguments, and NODE_OPTIONS. */
export function nodeOptions(): readonly string[] {
  return [...process.execArgv, process.env['NODE_OPTIONS'] ?? '']
}
