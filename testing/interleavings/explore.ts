/** Takes every history of a few operations: each choice of the schedule at each step, once. */
import type { Test } from 'tap'
import type { Engine } from './engine.ts'
import { SCENARIOS, type Scenario } from './histories.ts'
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
 * Explores the histories in the order of how often they differ from the plain one, in which whatever waited longest happens
 * first. Where a bound ends the exploration, the few unusual steps that most faults need have been tried at every place.
 * @param most the most histories that are taken, those included that reached a known state
 */
export async function explore(
  template: Template,
  acts: readonly Act[],
  beginning: Beginning,
  most = Infinity,
): Promise<Exploration> {
  const visited = new Set<string>()
  /** Histories to take, each as the choices of its first steps, by the number of those that are unusual. */
  const left: (readonly number[])[][] = [[[]]]
  const next = (): readonly number[] | undefined => {
    const some = left.find((level) => level.length > 0)
    if (some === undefined) return undefined
    // From all over the level: the first ones all differ at the same place.
    const at = ((histories + pruned) * 7919) % some.length
    const [taken] = some.splice(at, 1)
    return taken
  }
  const violations: string[] = []
  let histories = 0
  let pruned = 0
  while (histories + pruned < most) {
    const first = next()
    if (first === undefined) break
    const unusual = first.filter((choice) => choice > 0).length + 1
    const world = await World.make(template, acts, beginning)
    try {
      for (const choice of first) await world.step(choice)
      const path = [...first]
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
        for (let other = count - 1; other > 0; other -= 1) (left[unusual] ??= []).push([...path, other])
        await world.step(0)
        path.push(0)
      }
      violations.push(...world.violations)
      if (violations.length > 0) break
    } finally {
      await world.close()
    }
  }
  return { histories, pruned, states: visited.size, isPartial: left.some((level) => level.length > 0), violations }
}

/**
 * Explores some histories of each scenario. At no moment may a caller be given or let do what they have no access to, a thread
 * have two owners, an owner inherit what others wrote, or a claim be lost.
 * @param most of one scenario, those included that reached a known state
 */
export async function inEveryOrder(
  t: Test,
  engine: Engine,
  most: number,
  scenarios: Readonly<Record<string, Scenario>> = SCENARIOS,
): Promise<void> {
  const template = makeTemplate(engine)
  t.teardown(() => template.remove())
  for (const [name, { acts, beginning }] of Object.entries(scenarios)) {
    const { histories, states, violations } = await explore(template, acts, beginning, most)
    t.same(violations, [], name)
    t.ok(histories > 0 && states > 10, `${name}: ${histories} histories, ${states} states`)
  }
}
