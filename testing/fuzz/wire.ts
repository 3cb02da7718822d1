/**
 * The same over real sockets: a caller that writes bytes, a gateway as an operator starts it, and the real runtime on a
 * server of its own. What the gate makes of a request in this process says what must be seen there.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type fc from 'fast-check'
import { CODES, REASONS } from '../../src/core/reasons.ts'
import { RUNTIME_ROUTE_IDS } from '../support/runtime-routes.ts'
import type { Transport } from '../../src/core/route/transport.ts'
import { dial } from '../support/dial.ts'
import { startTestGateway, type ConfigTree } from '../support/gateway.ts'
import { makeSigner } from '../support/tokens.ts'
import { caseOf, headerPairs, pairOf, PLACES, type Adapter, type Case, type Place } from './case.ts'
import { differences, SENT } from './differences.ts'
import type { Finding } from './tally.ts'
import { FOREIGN, LIMITS, LISTED_ORIGIN, makeGateUnderTest, reachFaults, type Outcome } from './gate-under-test.ts'
import { casesFor } from './grammar.ts'
import { hush } from './hush.ts'
import { mountRuntime, type Verdict } from './judge.ts'

/** Gateway and runtime, listening. */
export interface Wire {
  readonly examine: (one: Case) => Promise<Finding>
  readonly close: () => Promise<void>
}

/** How a runtime is mounted. */
export type WireMount = readonly [adapter: Adapter, place: Place, upstream: Transport]

/** How those are mounted that are started. */
export const MOUNTS: readonly WireMount[] = [
  ['node', 'base path', 'multi-route'],
  ['node', 'public path before no base path', 'multi-route'],
  ['express', 'no base path', 'multi-route'],
  ['express with a JSON parser', 'base path', 'multi-route'],
  ['node', 'base path', 'single-route'],
  ['node', 'no base path', 'single-route'],
  ['express', 'public path before no base path', 'single-route'],
  ['express with a JSON parser', 'base path', 'single-route'],
]

const ABOUT_THREADS = ['agent/run', 'agent/connect', 'agent/suggest']
const OWN_THREADS = [
  'agent/stop',
  'annotate',
  'threads/update',
  'threads/archive',
  'threads/messages',
  'threads/events',
  'threads/state',
  'threads/grants',
]
const EVERYBODYS = ['threads/clear', 'cpk-debug-events']

/** As open as a policy may be. */
const POLICY = JSON.stringify({
  version: 1,
  operators: [{ role: 'operator' }],
  rules: [
    { routes: ABOUT_THREADS, allow: ['signed-in'], threads: ['own', 'unknown'] },
    { routes: OWN_THREADS, allow: ['signed-in'], threads: ['own'] },
    { routes: EVERYBODYS, allow: ['operator'] },
    {
      routes: RUNTIME_ROUTE_IDS.filter((id) => ![...ABOUT_THREADS, ...OWN_THREADS, ...EVERYBODYS].includes(id)),
      allow: ['signed-in'],
    },
  ],
  forwardedProps: [{ name: 'tenant' }],
})

/** Threads that are the caller's from the start; others become so by a run. */
const OWNED = [
  't1',
  'T1',
  'a.b',
  'a:b',
  'a_b-c',
  '0',
  'threads1',
  'x-run',
  '0b0e4f7a-6f0c-4a55-9d3c-2f6d8a1b9c0e',
  'y'.repeat(128),
]
const NOT_OWNED = [`${FOREIGN}-1`, `${FOREIGN}-2`]

/** Requests for one runtime. A target may end the request line early: what is left of the line is then a header. */
export function wireCases([adapter, place, upstream]: WireMount): fc.Arbitrary<Case> {
  return casesFor([adapter], [place], [upstream])
}

/**
 * Starts a runtime and a gateway before it.
 * @param config more of the gateway's configuration
 */
export async function startWire([adapter, place, upstream]: WireMount, config: ConfigTree = {}): Promise<Wire> {
  const { basePath, publicPath } = PLACES[place]
  const model = makeGateUnderTest(place, upstream, null)
  // The runtime tells of each question of the gateway's own that it can't read.
  const speak = hush()
  let arrived = 0
  let resolution: Verdict | undefined
  const listener = mountRuntime({ adapter, transport: upstream, basePath }, (found, request) => {
    if (request.headers.has('x-request-id')) resolution = found
  })
  const server = createServer((request, response) => {
    // What the gateway asks on its own account has no request id.
    if (request.headers['x-request-id'] !== undefined) arrived += 1
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const signer = makeSigner()
  const gateway = await startTestGateway(
    {
      authentication: signer.authentication,
      upstream: {
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        basePath: basePath === '' ? '/' : basePath,
        publicPath: publicPath === '' ? '/' : publicPath,
        transport: upstream,
        headers: { 'x-server': 'yes' },
      },
      forwardHeaders: ['x-tenant'],
      limits: { body: `${LIMITS.body / 1024}KiB`, runBody: `${LIMITS.runBody / 1024}KiB` },
      cors: { origins: [LISTED_ORIGIN] },
      ...config,
    },
    { policy: POLICY },
  )
  const [alice, bob] = [signer.sign('alice', { role: 'operator' }), signer.sign('bob')]

  const ask = async (
    one: Case,
  ): Promise<{ readonly status: number; readonly seen: number; readonly verdict: Verdict | undefined }> => {
    const before = arrived
    resolution = undefined
    const text = await converse(gateway.url, wireBytes(one))
    return { status: statusOf(text), seen: arrived - before, verdict: resolution }
  }

  for (const [token, ids] of [
    [alice, OWNED],
    [bob, NOT_OWNED],
  ] as const) {
    for (const id of ids) await ask(claimOf(id, token, place))
  }

  return {
    async examine(one) {
      const withToken = {
        ...one,
        // For Node's parser, spaces at its ends are no part of the target.
        target: one.target.replace(/^ +| +$/g, ''),
        headers: [...one.headers, ['authorization', `Bearer ${alice}`] as const],
      }
      const expected = await model(withToken)
      const answer = await ask(withToken)
      const served = answer.seen > 0
      return {
        outcome: served
          ? (expected.descriptor?.route.id ?? 'nothing')
          : expected.reason === 'permitted'
            ? `answered ${answer.status}`
            : expected.reason,
        group: pairOf(withToken),
        permitted: served,
        asWritten: undefined,
        faults: faultsOf(expected, answer),
      }
    },
    async close() {
      await gateway.close()
      signer.remove()
      server.closeAllConnections()
      server.close()
      speak()
    },
  }
}

function faultsOf(
  expected: Outcome,
  { status, seen, verdict }: { readonly status: number; readonly seen: number; readonly verdict: Verdict | undefined },
): readonly string[] {
  const { descriptor, reason } = expected
  if (seen > 1) return [`the upstream saw ${seen} requests`]
  if (descriptor === undefined || reason !== 'permitted') {
    if (seen > 0) return [`refused (${reason}), but the upstream saw a request`]
    // The HTTP parser may have refused before, or Fastify what is no media type; whoever closes at once may be heard or not.
    const told = reason === 'permitted' ? status : CODES[REASONS[reason]].status
    return [told, 400, 415, 431, 0].includes(status) ? [] : [`refused (${reason}), but the answer is ${status}`]
  }
  const resolved = verdict ?? status
  if (seen === 1) return [...differences(descriptor, resolved, SENT), ...reachFaults(resolved, SENT)]
  // Not reached: the parser refused, nobody owns the thread, Fastify can't read the type of a body that isn't there, or it
  // is a connect with a new one.
  const emptyConnect = descriptor.route.id === 'agent/connect' && status === 200
  // What it answers itself it answers as whoever grants has written it.
  if (descriptor.route.own === true) return []
  return [400, 403, 415].includes(status) || emptyConnect
    ? []
    : [`permitted, but the upstream saw nothing, and the answer is ${status}`]
}

function claimOf(threadId: string, token: string, place: Place): Case {
  return caseOf({
    place,
    method: 'POST',
    target: `${PLACES[place].publicPath}/agent/default/run`,
    headers: [
      ['host', 'gateway.example'],
      ['content-type', 'application/json'],
      ['authorization', `Bearer ${token}`],
    ],
    body: JSON.stringify({ threadId, runId: 'r', messages: [], tools: [], context: [] }),
  })
}

/** The request as bytes, complete whatever its headers say, so that nobody waits for more of it. */
function wireBytes(one: Case): Buffer {
  const lines = headerPairs(one).map(([name, value]) => `${name}: ${value}`)
  const head = Buffer.from(`${one.method} ${one.target} HTTP/${one.httpVersion}\r\n`, 'utf8')
  const rest = Buffer.from(`${lines.join('\r\n')}\r\nconnection: close\r\n\r\n`, 'latin1')
  const chunked = (one.chunked && one.body !== null) || lines.some((line) => /^transfer-encoding:.*chunked/i.test(line))
  const body = Buffer.from(one.body ?? '', 'latin1')
  if (!chunked) return Buffer.concat([head, rest, body])
  const chunk = body.length === 0 ? [] : [Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')]
  return Buffer.concat([head, rest, ...chunk, Buffer.from('0\r\n\r\n')])
}

/** Writes bytes, and gives all that comes until the connection closes. */
async function converse(url: string, bytes: Buffer): Promise<string> {
  const socket = await dial(url)
  let text = ''
  socket.on('data', (chunk) => (text += chunk.toString('latin1')))
  // A caller who is refused early may find the connection closed while still writing.
  socket.on('error', () => {})
  socket.write(bytes)
  await once(socket, 'close').catch(() => {})
  return text
}

/** The status of the first answer that is one; 0 for none. Not from testing/support: that loads tap, which ends a long run. */
function statusOf(text: string): number {
  const [, status = '0'] = /^(?:HTTP\/1\.1 1\d\d[^]*?\r\n\r\n)*HTTP\/1\.1 (\d{3})/.exec(text) ?? []
  return Number(status)
}
