/** Estimates the V8 old-space size, from the heap limit and the options of Node. */
import { getHeapStatistics } from 'node:v8'

/** Node's default size of each part of the new space, in MiB, and the number of parts. */
const MOST_OF_NEW = 64
const PARTS_OF_NEW = 3

/**
 * @param options of Node: its own arguments, and NODE_OPTIONS
 * @returns bytes; rather too few, where no option says how large the new space is
 */
export function oldSpaceOf(limit: number, options: readonly string[]): number {
  const said = options.flatMap((option) => [...option.matchAll(/--max[-_]semi[-_]space[-_]size[= ](\d+)/g)]).at(-1)?.[1]
  const ofNew = PARTS_OF_NEW * Number(said ?? MOST_OF_NEW) * 2 ** 20
  return Math.max(limit - ofNew, limit * 0.4)
}

export function oldSpace(): number {
  return oldSpaceOf(getHeapStatistics().heap_size_limit, nodeOptions())
}

export function nodeOptions(): readonly string[] {
  return [...process.execArgv, process.env['NODE_OPTIONS'] ?? '']
}
