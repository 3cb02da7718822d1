/**
 * The four pairs of transports: what a client speaks and what an upstream takes. A test that runs on each of them says what
 * holds whoever speaks what; it is written once, in the terms of the multi-route transport. Clients (client.ts, raw.ts) and
 * upstreams (upstream.ts, raw-upstream.ts, stack.ts) of a test ask here for their part.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { test, type Test } from 'tap'
import { TRANSPORTS, type Transport } from '../../src/core/transport.ts'

/** Who speaks what. */
export interface Pair {
  readonly client: Transport
  readonly upstream: Transport
}

/** The public and the upstream's base path where a test names no other. */
export const BASE_PATH = '/api/copilotkit'

/** All of them. */
export const PAIRS: readonly Pair[] = TRANSPORTS.flatMap((upstream) => TRANSPORTS.map((client) => ({ client, upstream })))

// Not an argument: it would have to go through every helper of every test to the one place that writes or reads a request.
const playing = new AsyncLocalStorage<Pair>()

/** The pair of the test that is running; multi-route on both sides where a test is not about pairs. */
export function currentPair(): Pair {
  return playing.getStore() ?? { client: 'multi-route', upstream: 'multi-route' }
}

/** Does something as part of a pair. */
export function withPair<Result>(pair: Pair, act: () => Result): Result {
  return playing.run(pair, act)
}

/** How a pair is called. */
export function pairName({ client, upstream }: Pair): string {
  return `${client} client, ${upstream} upstream`
}

/**
 * A test that runs once for each pair, with everything of its own each time.
 * @param pairs by default all
 */
export function testEachPair(
  name: string,
  body: (t: Test, pair: Pair) => unknown,
  pairs: readonly Pair[] = PAIRS,
): Promise<unknown> {
  return test(name, async (t) => {
    for (const pair of pairs) {
      await t.test(pairName(pair), async (one) => {
        await withPair(pair, () => body(one, pair))
      })
    }
  })
}

/** A test of requests that stand on the wire as they are written here: once for each upstream. */
export function testEachUpstream(name: string, body: (t: Test, pair: Pair) => unknown): Promise<unknown> {
  return testEachPair(
    name,
    body,
    PAIRS.filter(({ client }) => client === 'multi-route'),
  )
}

/**
 * A test that runs for the two pairs whose client and upstream speak alike. For long tables of what a bridge has no part in:
 * what is said before anybody looks at the upstream, or of an answer that passes.
 */
export function testUnbridged(name: string, body: (t: Test, pair: Pair) => unknown): Promise<unknown> {
  return testEachPair(
    name,
    body,
    PAIRS.filter(({ client, upstream }) => client === upstream),
  )
}
