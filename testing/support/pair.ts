/**
 * The pairs of transports: what a client speaks and what an upstream takes; and where the gateway stands, before the upstream's
 * server or as hooks in its process. A test that runs on each of them says what holds whoever speaks what, and wherever; it is
 * written once, in the terms of the multi-route transport and the proxy. It gives its pair to what it starts: upstreams
 * (upstream.ts, raw-upstream.ts, stack.ts) and gateways (gateway.ts), which write the requests to them as their client would.
 */
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

/** The pair of a test that is not about pairs. */
export const MULTI_ROUTE: Pair = { client: 'multi-route', upstream: 'multi-route', place: 'proxy' }

/** All of them. */
export const PAIRS_EVERYWHERE: readonly Pair[] = [...PAIRS, ...PAIRS_IN_PROCESS]

/** The proxy's, and one in process: how envelopes are read does not depend on the place. */
export const USUAL_PAIRS: readonly Pair[] = [...PAIRS, ...PAIRS_IN_PROCESS.filter(({ client }) => client === 'multi-route')]

/** Those of some methods that a server hands on to the gateway: fetch, and so every hook, knows no TRACE. */
export function methodsAt(place: Place, methods: readonly string[]): readonly string[] {
  return place === 'proxy' ? methods : methods.filter((method) => method !== 'TRACE')
}

/** How a pair is called. */
export function pairName({ client, upstream, place }: Pair): string {
  return place === 'proxy' ? `${client} client, ${upstream} upstream` : `${client} client, in process`
}
