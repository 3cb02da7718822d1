/** The memory of the process: V8's old space and semi-spaces, and its division between bodies, their reading, and answers. */
import type { Config } from '../config/schema.ts'
import { bodyMemory, largestReadable, readingCost, makeBudget } from '../http/pipeline/request-body.ts'
import { MAX_PAGE_BYTES } from '../http/lists/thread-list.ts'
import type { RequestMemory } from '../snapshot/assemble-pipeline.ts'
import { getHeapStatistics } from 'node:v8'

/** One caller may have half of each, and at least as much as the largest body or the largest page of a list takes. */
export function memoryBudgets({ bodiesInFlight, runBody }: Pick<Config['limits'], 'bodiesInFlight' | 'runBody'>): RequestMemory {
  const { held, reading, answers } = bodyMemory(oldSpace())
  const bodies = Math.min(bodiesInFlight, held)
  const largestPage = readingCost(MAX_PAGE_BYTES, 0)
  return {
    bodies: makeBudget(bodies, Math.max(bodies / 2, Math.min(runBody, largestReadable(reading)))),
    reading: makeBudget(reading, reading / 2),
    answers: makeBudget(Math.max(answers, largestPage), Math.max(answers / 2, largestPage)),
  }
}

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

/** Containers of at most this many bytes get semi-spaces of 1 MiB each, larger ones 16 MiB (Node 24, measured): collecting new
 * objects then costs more than all else. */
const SMALL_CONTAINER = 512 * 2 ** 20

/** Gives a small container the semi-space of a larger one. The image sets it. */
export const ENOUGH_ROOM = '--max-semi-space-size=16'

interface NodeSetting {
  /** The container's memory limit in bytes; 0 or undefined without a limit. */
  readonly constrained: number | undefined
  readonly options: readonly string[]
}

export function roomWarning({ constrained, options }: NodeSetting): string | null {
  if (constrained === undefined || constrained === 0 || constrained > SMALL_CONTAINER) return null
  if (options.some((option) => /--max[-_]semi[-_]space[-_]size/.test(option))) return null
  return `In a container this small, Node's V8 semi-space is 1 MiB and a request costs three times the CPU: set NODE_OPTIONS=${ENOUGH_ROOM}`
}
