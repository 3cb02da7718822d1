/** Real parts for each pair of transports, shared by the tests of a file: they take too long to be started for each test. */
import { after, before, type Test } from 'tap'
import { sayOnFailure } from './decided.ts'
import { PAIRS_EVERYWHERE, pairName, type Pair } from './pair.ts'
import { chosenPairs, testEachPair } from './pairs.ts'
import { startSharedStack, type Stack, type StackOptions } from './stack.ts'

/** A test that runs once for each pair, with the stack of that pair. */
export type TestEachStack = (name: string, body: (t: Test, stack: Stack, pair: Pair) => Promise<void>) => Promise<unknown>

/**
 * Starts a stack for each pair before the first test of a file, and ends them after the last one.
 * @param prepare called for each when all are there: each start empties the one thread store of the process
 */
export function stackEachPair(options: StackOptions = {}, prepare?: (stack: Stack) => Promise<unknown>): TestEachStack {
  const stacks = new Map<string, Stack>()
  const pairs = chosenPairs(PAIRS_EVERYWHERE)
  before(async () => {
    for (const pair of pairs) stacks.set(pairName(pair), await startSharedStack({ ...options, pair }))
    for (const pair of pairs) await prepare?.(stacks.get(pairName(pair))!)
  })
  after(async () => {
    for (const stack of stacks.values()) await stack.close()
  })
  return (name, body) =>
    testEachPair(
      name,
      (t, pair) => {
        const stack = stacks.get(pairName(pair))!
        sayOnFailure(t, stack.gateway)
        return body(t, stack, pair)
      },
      PAIRS_EVERYWHERE,
    )
}
