/** Takes every history of a few operations: each choice of the schedule at each step, once. */
import type { Test } from 'tap'
import type { Engine } from './engine.ts'
import { SCENARIOS } from './histories.ts'
import { makeTemplate, World, type Act, type Beginning, type Template } from './world.ts'

/** What was found. */
export interface Exploration {
  /** Histories that came to their end. */
  readonly histories: number
  /** Histories that came to a state from which all had been taken before. */
  readonly pruned: number
  readonly states: number
  /** True if the bound was reached before the end. */
  readonly isPartial: boolean
  readonly violations: readonly string[]
}

/**
 * Explores.
 * @param most the most histories that are taken
 */
export async function explore(
  template: Template,
  acts: readonly Act[],
  beginning: Beginning,
  most = Infinity,
): Promise<Exploration> {
  const visited = new Set<string>()
  const left: (readonly number[])[] = [[]]
  const violations: string[] = []
  let histories = 0
  let pruned = 0
  for (let next = left.pop(); next !== undefined && histories + pruned < most; next = left.pop()) {
    const world = await World.make(template, acts, beginning)
    try {
      for (const choice of next) await world.step(choice)
      const path = [...next]
      for (;;) {
        if (world.violations.length > 0) break
        const key = await world.key()
        if (visited.has(key)) {
          pruned += 1
          break
        }
        visited.add(key)
        const count = world.choices().length
        if (count === 0) {
          histories += 1
          break
        }
        for (let other = count - 1; other > 0; other -= 1) left.push([...path, other])
        await world.step(0)
        path.push(0)
      }
      violations.push(...world.violations)
      if (violations.length > 0) break
    } finally {
      await world.close()
    }
  }
  return { histories, pruned, states: visited.size, isPartial: left.length > 0, violations }
}

/**
 * Takes so many histories of each scenario. At no moment is somebody given or let do what they have no access to, has a thread
 * two owners, or does an owner inherit what others wrote.
 * @param most of one scenario, those included that came to a known state
 */
export async function inEveryOrder(t: Test, engine: Engine, most: number): Promise<void> {
  const template = makeTemplate(engine)
  t.teardown(() => template.remove())
  for (const [name, { acts, beginning }] of Object.entries(SCENARIOS)) {
    const { histories, states, violations } = await explore(template, acts, beginning, most)
    t.same(violations, [], name)
    t.ok(histories > 0 && states > 10, `${name}: ${histories} histories, ${states} states`)
  }
}
