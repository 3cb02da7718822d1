/**
 * A request as a hostile caller would write it, as plain data: what fast-check makes, what a counter-example prints, and
 * what stands in `fixed-cases.test.ts`.
 */
import { ROUTES_OF } from '../../src/core/route/all-routes.ts'
import { TRANSPORTS, type Transport } from '../../src/core/route/transport.ts'
import type { HttpVersion } from './message.ts'
import type { Subject } from './tally.ts'

/** How the runtime is mounted; with a JSON parser before it, Express builds address and body in another way (runtime-behaviour.md, "Targets and ids"). */
export const ADAPTERS = ['node', 'express', 'express with a JSON parser'] as const

/** Where the runtime is mounted, and where callers find it. */
export const PLACES = {
  'base path': { publicPath: '/api/copilotkit', basePath: '/api/copilotkit' },
  // Whatever stands before a route is then part of nothing: the runtime takes the end of any path.
  'no base path': { publicPath: '', basePath: '' },
  'public path before no base path': { publicPath: '/chat', basePath: '' },
} as const

export type Adapter = (typeof ADAPTERS)[number]
export type Place = keyof typeof PLACES

/** A request. */
export interface Case {
  readonly adapter: Adapter
  readonly place: Place
  /** How the runtime is mounted: what it takes, whatever the caller writes. */
  readonly upstream: Transport
  readonly method: string
  /** As it stands in the request line. */
  readonly target: string
  readonly httpVersion: HttpVersion
  /** Without those that say how long the body is. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** A character for each byte; null for none at all. */
  readonly body: string | null
  readonly chunked: boolean
}

/** What a case says if it doesn't say otherwise. */
const USUAL = {
  adapter: 'node',
  place: 'base path',
  upstream: 'multi-route',
  method: 'GET',
  httpVersion: '1.1',
  headers: [['host', 'gateway.example']],
  body: null,
  chunked: false,
} as const

/** A case of its target and what is unusual about it. */
export function caseOf(unusual: Partial<Case> & Pick<Case, 'target'>): Case {
  return { ...USUAL, ...unusual }
}

/** What a caller means: an envelope is what is sent to the public path itself, anything else is a path of its own. */
export function clientOf(one: Case): Transport {
  const [path] = one.target.split('?')
  const { publicPath } = PLACES[one.place]
  return path === publicPath || path === `${publicPath}/` ? 'single-route' : 'multi-route'
}

/** Who speaks with whom: the transport of the caller, and that of the upstream. */
export type Pair = `${Transport} to ${Transport}`

/** All of them. */
export const TRANSPORT_PAIRS: readonly Pair[] = TRANSPORTS.flatMap((client) =>
  TRANSPORTS.map((upstream): Pair => `${client} to ${upstream}`),
)

/** The pair of a case. */
export function pairOf(one: Case): Pair {
  return `${clientOf(one)} to ${one.upstream}`
}

/** Cases that are put to the gateway and to the real runtime. */
export const RUNTIME: Subject<Case> = {
  file: 'test/fuzz/fixed-cases.test.ts',
  source: (one) => caseSource('caseOf', one, USUAL),
  routes: ROUTES_OF.runtime.map(({ id }) => id),
  groups: { title: 'transport of the caller and of the upstream', names: TRANSPORT_PAIRS },
  averted: 'of which the runtime would have served',
}

/** Writes a case as the call of a function that adds what is usual. */
export function caseSource(make: string, one: object, usual: object): string {
  const unusual = Object.entries(one).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify((usual as Record<string, unknown>)[key]),
  )
  return `${make}({ ${unusual.map(([key, value]) => `${key}: ${literal(value)}`).join(', ')} })`
}

/** The bytes of the body. */
export function bodyBytes(one: Case): Buffer | null {
  return one.body === null ? null : Buffer.from(one.body, 'latin1')
}

/** The header lines, with those that frame the body. */
export function headerPairs(one: Case): readonly (readonly [string, string])[] {
  if (one.body === null) return one.headers
  return [...one.headers, one.chunked ? ['transfer-encoding', 'chunked'] : ['content-length', String(one.body.length)]]
}

function literal(value: unknown): string {
  const text = JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  // Single quotes, as everywhere here; what holds one is left to the formatter.
  return typeof value === 'string' && !text.includes("'") ? `'${text.slice(1, -1).replaceAll('\\"', '"')}'` : text
}
