/**
 * The pairs of transports: what a client speaks and what an upstream takes; and where the gateway stands, before the upstream's
 * server or as hooks in its process. A test that runs on each of them says what holds whoever speaks what, and wherever; it is
 * written once, in the terms of the multi-route transport and the proxy. Clients (client.ts, raw.ts), upstreams (upstream.ts,
 * raw-upstream.ts, stack.ts) and gateways (gateway.ts) of a test ask here for their part.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { TRANSPORTS, type Transport } from '../../src/core/route/transport.ts'

/** Where the gateway stands: a server of its own, or hooks of the runtime (src/sdk/hooks). */
export type Place = 'proxy' | 'in-process'

/** Who speaks what. */
export interface Pair {
  readonly client: Transport
  readonly upstream: Transport
  readonly place: Place
}

/** The public and the upstream's base path where a test names no other. */
export const BASE_PATH = '/api/copilotkit'

/** Those of the proxy. */
export const PAIRS: readonly Pair[] = TRANSPORTS.flatMap((upstream) =>
  TRANSPORTS.map((client) => ({ client, upstream, place: 'proxy' as const })),
)

/** Those in process: hooks give the runtime the multi-route transport, whatever their callers speak. */
export const PAIRS_IN_PROCESS: readonly Pair[] = TRANSPORTS.map((client) => ({
  client,
  upstream: 'multi-route',
  place: 'in-process',
}))

/** All of them. */
export const PAIRS_EVERYWHERE: readonly Pair[] = [...PAIRS, ...PAIRS_IN_PROCESS]

/** The proxy's, and one in process: how envelopes are read does not depend on the place. */
export const USUAL_PAIRS: readonly Pair[] = [...PAIRS, ...PAIRS_IN_PROCESS.filter(({ client }) => client === 'multi-route')]

// Not an argument: it would have to go through every helper of every test to the one place that writes or reads a request.
const playing = new AsyncLocalStorage<Pair>()

/** The pair of the test that is running; the proxy, and multi-route on both sides, where a test is not about pairs. */
export function currentPair(): Pair {
  return playing.getStore() ?? { client: 'multi-route', upstream: 'multi-route', place: 'proxy' }
}

/** Does something as part of a pair. */
export function withPair<Result>(pair: Pair, act: () => Result): Result {
  return playing.run(pair, act)
}

/** Those of some methods that a server hands on where the test runs: fetch, and so every hook, knows no TRACE. */
export function methodsHere(methods: readonly string[]): readonly string[] {
  return currentPair().place === 'proxy' ? methods : methods.filter((method) => method !== 'TRACE')
}

/** How a pair is called. */
export function pairName({ client, upstream, place }: Pair): string {
  return place === 'proxy' ? `${client} client, ${upstream} upstream` : `${client} client, in process`
}
