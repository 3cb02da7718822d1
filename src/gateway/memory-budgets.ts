/** Divides the memory of the process between bodies, the reading of bodies, and answers. */
import type { Config } from '../config/schema.ts'
import { bodyMemory, largestReadable, readingCost, makeBudget } from '../http/pipeline/request-body.ts'
import { MAX_PAGE_BYTES } from '../http/lists/thread-list.ts'
import type { RequestMemory } from '../snapshot/assemble-pipeline.ts'
import { oldSpace } from './v8-old-space.ts'

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
