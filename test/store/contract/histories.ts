/** Generated histories: after each step of each of them a store says what its model says. */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import type { Store } from '../../../src/store/port/store.ts'
import { everythingIn, historyOf, worldOf, type Step, type World } from '../histories.ts'
import { Model } from '../model.ts'
import { NOW, steps, type Holds } from './under-test.ts'

/** Of the longest history. */
const LENGTH = 30
/** Everything is asked for after so many steps, and at the end. */
const LOOKS = 3

/** The part of the contract. */
export function historyContract(holds: Holds, runs: number): void {
  holds(`${runs} histories of claims, grants, imports and all else come out as the model says`, async (t, { store, connect }) => {
    const other = await connect()
    const world = worldOf('w')
    const property = fc.asyncProperty(historyOf(world, LENGTH), async (history) => {
      try {
        await compare(store, other, history, world)
      } finally {
        await clear(store, world)
      }
    })
    await fc.assert(property, { numRuns: runs })
    t.pass(`${runs} histories`)
  })
}

/** Takes each step on the model and on the store, and asks for everything there, and on another connection by turns. */
async function compare(store: Store, other: Store, history: readonly Step[], world: World): Promise<void> {
  const model = new Model()
  let now = NOW
  for (const [at, step] of history.entries()) {
    now += step.after
    const [expected, answer] = [await step.take(model, now), await step.take(store, now)]
    same(answer, expected, `step ${at}, ${step.name}`)
    if (at % LOOKS !== 0 && at < history.length - 1) continue
    const alone = at % 2 === 0
    const all = await everythingIn(alone ? store : other, world, alone)
    same(all, await everythingIn(model, world, alone), `after step ${at}, ${step.name}`)
  }
}

/** Leaves nothing to the next history. */
async function clear(store: Store, { users, keys }: World): Promise<void> {
  for (const userId of users) await steps(() => store.erase(userId, NOW, 100))
  // What was erased or withheld is nobody's, and stays until somebody has it.
  for (const key of keys) await store.assign(key, users[0] ?? '', NOW)
  await steps(() => store.prune({ unusedSince: Number.MAX_SAFE_INTEGER }, 100))
}

function same(answer: unknown, expected: unknown, where: string): void {
  const [plain, plainExpected] = [plainly(answer), plainly(expected)]
  if (isDeepStrictEqual(plain, plainExpected)) return
  throw new Error(`${where}: ${JSON.stringify(plain)} instead of ${JSON.stringify(plainExpected)}`)
}

/** Without prototypes and the order of names. */
function plainly(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}
