/** Tests that run for several pairs (pair.ts). What a script uses besides tests must not come from here: the runner would take it over. */
import { test, type Test } from 'tap'
import { reasonAgainst } from './not-in-process.ts'
import { pairName, USUAL_PAIRS, type Pair } from './pair.ts'
import { EXTENT } from './sample.ts'

/** What stands for the others in `npm test`: each transport on each side, with a bridge between them, and the hooks. */
const isOfSample = ({ client, upstream, place }: Pair): boolean => client !== upstream || place === 'in-process'

/** Those of some pairs for which a test runs. */
function chosen(pairs: readonly Pair[], sample: readonly Pair[]): readonly Pair[] {
  if (EXTENT === 'all') return pairs
  return EXTENT === 'others' ? pairs.filter((pair) => !sample.includes(pair)) : sample
}

/** Those of some pairs for which `testEachPair` runs its tests. */
export function chosenPairs(pairs: readonly Pair[]): readonly Pair[] {
  return chosen(pairs, pairs.filter(isOfSample))
}

function testPairs(name: string, body: (t: Test, pair: Pair) => unknown, pairs: readonly Pair[]): Promise<unknown> {
  // It would run for one pair, as often as there are pairs.
  if (body.length < 2) throw new Error(`${name}: takes no pair`)
  const possible = pairs.filter(({ place }) => place === 'proxy' || reasonAgainst(name) === null)
  if (possible.length === 0) return Promise.resolve()
  return test(name, async (t) => {
    for (const pair of possible) {
      await t.test(pairName(pair), async (one) => {
        await body(one, pair)
      })
    }
  })
}

/**
 * A test that runs once for each pair, with everything of its own each time; not in process if there is a reason against it
 * (not-in-process.ts).
 * @param pairs by default those of the proxy, and one in process
 */
export function testEachPair(
  name: string,
  body: (t: Test, pair: Pair) => unknown,
  pairs: readonly Pair[] = USUAL_PAIRS,
): Promise<unknown> {
  return testPairs(name, body, chosenPairs(pairs))
}

/** A test of requests that stand on the wire as they are written here: once for each upstream, and in process. */
export function testEachUpstream(name: string, body: (t: Test, pair: Pair) => unknown): Promise<unknown> {
  return testEachPair(
    name,
    body,
    USUAL_PAIRS.filter(({ client }) => client === 'multi-route'),
  )
}

/** A test of what reads neither a body nor an id: in `npm test`, the first pair stands for all. */
export function testFirstPair(
  name: string,
  body: (t: Test, pair: Pair) => unknown,
  pairs: readonly Pair[] = USUAL_PAIRS,
): Promise<unknown> {
  return testPairs(name, body, chosen(pairs, pairs.slice(0, 1)))
}

/**
 * The same for the pairs whose client and upstream speak alike. For long tables of what a bridge has no part in: what is said
 * before anybody looks at the upstream, or of an answer that passes.
 */
export function testUnbridged(name: string, body: (t: Test, pair: Pair) => unknown): Promise<unknown> {
  return testFirstPair(
    name,
    body,
    USUAL_PAIRS.filter(({ client, upstream }) => client === upstream),
  )
}
