/** Tests that run for several pairs (pair.ts). What a script uses besides tests must not come from here: the runner would take it over. */
import { test, type Test } from 'tap'
import { reasonAgainst } from './not-in-process.ts'
import { pairName, USUAL_PAIRS, type Pair } from './pair.ts'

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
  // It would run for one pair, as often as there are pairs.
  if (body.length < 2) throw new Error(`${name}: takes no pair`)
  return test(name, async (t) => {
    for (const pair of pairs) {
      if (pair.place === 'in-process' && reasonAgainst(name) !== null) continue
      await t.test(pairName(pair), async (one) => {
        await body(one, pair)
      })
    }
  })
}

/** A test of requests that stand on the wire as they are written here: once for each upstream, and in process. */
export function testEachUpstream(name: string, body: (t: Test, pair: Pair) => unknown): Promise<unknown> {
  return testEachPair(
    name,
    body,
    USUAL_PAIRS.filter(({ client }) => client === 'multi-route'),
  )
}

/**
 * A test of what reads neither a body nor an id: the first pair stands for all in `npm test`. `npm run test:all` runs every pair.
 */
export function testFirstPair(
  name: string,
  body: (t: Test, pair: Pair) => unknown,
  pairs: readonly Pair[] = USUAL_PAIRS,
): Promise<unknown> {
  return testEachPair(name, body, process.env['THREADWARDEN_TEST_PAIRS'] === 'all' ? pairs : pairs.slice(0, 1))
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
