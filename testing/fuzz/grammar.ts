/**
 * The grammar of cases: a route of the real runtime, spelled as it should be or not - as a path or as an envelope - with
 * the method, header lines and body that belong to it or not. Without chains, so that a counter-example shrinks part by
 * part.
 */
import fc from 'fast-check'
import { OWN_ROUTES, ROUTES, type Route } from '../../src/core/route/routes.ts'
import { TRANSPORTS, type Transport } from '../../src/core/route/transport.ts'
import { ADAPTERS, PLACES, type Adapter, type Case, type Place } from './case.ts'
import { anyBody, fittingBody, hugeBody, jsonText, utf8, type Member } from './grammar-body.ts'
import { envelope, envelopeTarget } from './grammar-envelope.ts'
import { isForm } from './grammar-form.ts'
import { LISTED_ORIGIN } from './gate-under-test.ts'
import { HOST, jsonType, linesEdits, recordingType, type Line } from './grammar-headers.ts'
import { innerMembers } from './grammar-run.ts'
import { spelling } from './grammar-target.ts'

// oxfmt-ignore
const methods = ['GET', 'POST', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'PUT', 'TRACE', 'get', 'Post', 'patch', 'PROPFIND', 'QUERY', 'PURGE', 'LINK']

const method: fc.Arbitrary<(route: Route) => string> = fc.oneof(
  { arbitrary: fc.constant((route: Route) => route.method), weight: 14 },
  { arbitrary: fc.constantFrom(...methods).map((name) => () => name), weight: 2 },
)

// What is about a thread matters most, and survives least: more often.
const route = fc.constantFrom(
  ...OWN_ROUTES,
  ...ROUTES,
  ...ROUTES.filter((row) => row.thread !== undefined || row.query.length > 0),
  ...ROUTES.filter((row) => row.thread === 'body'),
)

const preflight: fc.Arbitrary<readonly Line[] | null> = fc.oneof(
  { arbitrary: fc.constant(null), weight: 100 },
  {
    arbitrary: fc.constantFrom(LISTED_ORIGIN, 'https://evil.example').map((origin): readonly Line[] => [
      ['origin', origin],
      ['access-control-request-method', 'POST'],
    ]),
    weight: 1,
  },
)

const body = fc.oneof(
  { arbitrary: fittingBody, weight: 280 },
  { arbitrary: anyBody, weight: 20 },
  { arbitrary: hugeBody, weight: 3 },
)

/** The parts that a request has whatever the transport. */
const common = {
  route,
  body,
  jsonType,
  linesEdits,
  preflight,
  chunked: fc.oneof({ arbitrary: fc.constant(false), weight: 5 }, { arbitrary: fc.constant(true), weight: 1 }),
  httpVersion: fc.oneof(
    { arbitrary: fc.constant('1.1' as const), weight: 30 },
    { arbitrary: fc.constant('1.0' as const), weight: 1 },
    { arbitrary: fc.constantFrom('0.9' as const, '2.0' as const), weight: 1 },
  ),
}

/** Requests whose path says what they are about. */
const outer = fc
  .record({ ...common, method, spelling, recordingType })
  .map((parts) => (at: Pick<Case, 'adapter' | 'place' | 'upstream'>): Case => {
    const { route } = parts
    const body = parts.body(route)
    const type = isForm(body) ? parts.recordingType : parts.jsonType
    // The client names the type also where it sends nothing (runtime-behaviour.md, "Clients", stop).
    const lines: readonly Line[] = body === null && route.body.kind === 'none' ? [HOST] : [HOST, ['content-type', type]]
    return {
      ...at,
      method: parts.preflight === null ? parts.method(route) : 'OPTIONS',
      target: parts.spelling(route, PLACES[at.place].publicPath),
      httpVersion: parts.httpVersion,
      headers: parts.linesEdits.reduce<readonly Line[]>((all, change) => change(all), [...lines, ...(parts.preflight ?? [])]),
      body,
      chunked: parts.chunked && body !== null,
    }
  })

const envelopeMethod = fc.oneof(
  { arbitrary: fc.constant('POST'), weight: 20 },
  { arbitrary: fc.constantFrom(...methods), weight: 1 },
)

/** Requests whose envelope says it. */
const enveloped = fc
  .record({ ...common, method: envelopeMethod, envelope, target: envelopeTarget })
  .map((parts) => (at: Pick<Case, 'adapter' | 'place' | 'upstream'>): Case => {
    const lines: readonly Line[] = [HOST, ['content-type', parts.jsonType], ...(parts.preflight ?? [])]
    return {
      ...at,
      method: parts.preflight === null ? parts.method : 'OPTIONS',
      target: parts.target(PLACES[at.place].publicPath),
      httpVersion: parts.httpVersion,
      headers: parts.linesEdits.reduce((all, change) => change(all), lines),
      body: parts.envelope(parts.route, parts.body(parts.route)),
      chunked: parts.chunked,
    }
  })

/** Requests to runtimes that are mounted in these ways. */
export function casesFor(
  adapters: readonly Adapter[],
  places: readonly Place[],
  upstreams: readonly Transport[],
): fc.Arbitrary<Case> {
  return fc
    .record({
      at: fc.record({
        adapter: fc.constantFrom(...adapters),
        place: fc.constantFrom(...places),
        upstream: fc.constantFrom(...upstreams),
      }),
      write: fc.oneof(outer, enveloped),
    })
    .map(({ at, write }) => write(at))
}

/** Any request to any of them. */
export const anyCase = casesFor(ADAPTERS, Object.keys(PLACES) as Place[], TRANSPORTS)

/** Runs that a caller may send, with keys inside that AG-UI does not have. */
export const runCase: fc.Arbitrary<Case> = fc
  .record({
    adapter: fc.constantFrom(...ADAPTERS),
    place: fc.constantFrom(...(Object.keys(PLACES) as Place[])),
    upstream: fc.constantFrom(...TRANSPORTS),
    operation: fc.constantFrom('run', 'connect', 'suggest'),
    client: fc.constantFrom(...TRANSPORTS),
    chunked: fc.boolean(),
    inner: innerMembers,
  })
  .map(({ operation, client, inner, ...rest }) => {
    const { publicPath } = PLACES[rest.place]
    const members: readonly Member[] = [['"threadId"', '"t1"'], ['"runId"', '"r1"'], ['"state"', '{"secret":1}'], ...inner]
    const body = utf8(jsonText(members, []))
    const isPath = client === 'multi-route' || publicPath === ''
    return {
      ...rest,
      method: 'POST',
      target: isPath ? `${publicPath}/agent/default/${operation}` : publicPath,
      httpVersion: '1.1',
      headers: [HOST, ['content-type', 'application/json']],
      body: isPath ? body : `{"method":"agent/${operation}","params":{"agentId":"default"},"body":${body}}`,
    }
  })
