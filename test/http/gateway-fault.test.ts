/**
 * What becomes of a request whose gate fails, at every point of it: the upstream never hears of it, nothing that was cut looks
 * whole, and the log says what happened. The gate is the test's: the real one has no such fault that is known.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test, type Test } from 'tap'
import { urlOf } from '../../src/gateway/assembly.ts'
import { makeApp } from '../../src/http/listeners/app.ts'
import { listenOn } from '../../src/http/listeners/listening.ts'
import { makeLog } from '../../src/observe/log.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { steadySnapshot } from '../../testing/support/requests.ts'
import { ask, type RawRequest } from '../../testing/support/raw.ts'
import { startUpstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import type { Classified, Pipeline } from '../../src/http/pipeline/stages.ts'

type Line = Readonly<Record<string, unknown>>

/** The public listener before a gate of which the test says what two of its parts do; the rest is as it is. */
async function before(
  t: Test,
  { admit, complete }: { admit?: Pipeline['admit']; complete?: (response: ServerResponse) => unknown },
) {
  const upstream = await startUpstream()
  const lines: Line[] = []
  const pipeline: Partial<Pipeline> = {
    admit: admit ?? (() => ({ outcome: 'classified', route: null }) as Classified),
    complete: async (_request, message) => (await complete?.(responses.get(message)!)) as 'passed',
  }
  const responses = new Map<IncomingMessage, ServerResponse>()
  const { app } = makeApp({
    enter: () => steadySnapshot(pipeline),
    upstreamUrl: upstream.url,
    log: makeLog('info', { write: (line) => void lines.push(JSON.parse(line) as Line) }),
    onUnreadable: () => {},
    maxHeaderSize: 16_384,
    trustedProxies: [],
    tls: null,
    tracing: null,
    mostConnections: null,
    metrics: makeMetrics(),
    requestId: () => 'r1',
  })
  app.addHook('onRequest', async (request, reply) => void responses.set(request.raw, reply.raw))
  await listenOn(app, '127.0.0.1', 0)
  t.teardown(async () => {
    await app.close()
    await upstream.close()
  })
  return {
    upstream,
    ask: (request: RawRequest) => ask(urlOf(app), request),
    /** The lines, when that of the request is among them. */
    async told(): Promise<{ readonly faults: readonly unknown[]; readonly request: Line }> {
      const isRequest = (line: Line): boolean => line['msg'] === 'request'
      await until(() => lines.some(isRequest))
      const faults = lines
        .filter((line) => line['level'] === 'error' && !isRequest(line))
        .map(({ err }) => (err as Error | undefined)?.message)
      return { faults, request: lines.find(isRequest)! }
    },
  }
}

const REQUESTS: readonly RawRequest[] = [
  { target: '/api/copilotkit/info' },
  { target: '/api/copilotkit/agent/a/run', body: '{}', framing: ['Content-Type: application/json', 'Content-Length: 2'] },
  { target: '/api/copilotkit/agent/a/run', body: '', framing: ['Content-Type: application/json', 'Content-Length: 2'] },
]

void test('a gate that fails before anything was answered is 500, whatever it fails with', async (t) => {
  const refused = (how: () => unknown) => [{ admit: how as Pipeline['admit'] }, { complete: how }] as const
  for (const parts of [
    ...refused(() => {
      throw new Error('at once')
    }),
    ...refused(() => Promise.reject(new Error('later'))),
    { complete: () => undefined },
  ]) {
    for (const request of REQUESTS) {
      const gate = await before(t, parts)
      const answer = await gate.ask(request)
      t.equal(answer.status, 500)
      t.match(JSON.parse(answer.body), { code: 'internal' })
      const { faults, request: line } = await gate.told()
      t.equal(faults.length, 1)
      t.match(line, { level: 'error', status: 500, complete: true })
      t.equal(gate.upstream.beginnings(), 0)
    }
  }
})

void test('a fault that is nothing passes no gate', async (t) => {
  for (const nothing of [undefined, null, false, 0, '']) {
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- as a library might
    const gate = await before(t, { complete: () => Promise.reject(nothing) })
    t.equal((await gate.ask(REQUESTS[0]!)).status, 500)
    t.equal((await gate.told()).faults.length, 1)
    t.equal(gate.upstream.beginnings(), 0)
  }
})

void test('an answer that has begun is cut, and its line says which status its caller saw', async (t) => {
  for (const fault of [new Error('late'), undefined]) {
    for (const parts of [[], ['part of it']]) {
      const gate = await before(t, {
        complete(response) {
          response.writeHead(200, { 'content-length': 100 })
          for (const part of parts) response.write(part)
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- as a library might
          return Promise.reject(fault)
        },
      })
      await gate.ask(REQUESTS[0]!)
      const { faults, request } = await gate.told()
      t.equal(faults.length, 1)
      t.match(request, { status: 200, complete: false })
    }
  }
})

void test('a fault behind the end of an answer is told of', async (t) => {
  const gate = await before(t, {
    complete(response) {
      response.end('done')
      throw new Error('too late')
    },
  })
  t.match(await gate.ask(REQUESTS[0]!), { status: 200, body: 'done' })
  t.match(await gate.told(), { faults: ['too late'] })
})
