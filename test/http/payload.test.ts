/** Bodies as the gate gets them: what is read says so, and gives its bytes back whatever comes of it. */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/classify.ts'
import { headerLines } from '../../src/core/headers.ts'
import { assumedFacts } from '../../src/core/transport.ts'
import { readPayload, type PayloadParts } from '../../src/http/payload.ts'
import { makeBudget, type ArrivingBody } from '../../src/http/request-body.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'

const INFO = classify('GET', ['info'], new Map()) as RouteDescriptor
const RUN = classify('POST', ['agent', 'a', 'run'], new Map()) as RouteDescriptor
const STOP = classify('POST', ['agent', 'a', 'stop', 't1'], new Map()) as RouteDescriptor
const RENAME = classify('PATCH', ['threads', 't1'], new Map()) as RouteDescriptor
const TRANSCRIBE = classify('POST', ['transcribe'], new Map()) as RouteDescriptor

const JSON_TYPE = ['content-type', 'application/json', 'transfer-encoding', 'chunked']

/** What reading needs, with a budget of 100 bytes. */
function parts(more: Partial<PayloadParts> = {}): PayloadParts {
  return {
    bodies: { forwardedProps: new Set(), state: 'pass', tools: 'all' },
    limits: { body: 100, runBody: 100 },
    budget: makeBudget(100),
    onDropped: () => {},
    metrics: makeMetrics(),
    ...more,
  }
}

const read = (given: PayloadParts, descriptor: RouteDescriptor, raw: readonly string[], body: string) =>
  readPayload(given, descriptor, assumedFacts('multi-route'), arriving(raw, body))

const arriving = (raw: readonly string[], body: string): ArrivingBody => ({
  message: Readable.from(body === '' ? [] : [Buffer.from(body)]) as unknown as IncomingMessage,
  lines: headerLines(raw),
  onWanted: () => {},
})

void test('what was read says so, and what it is', async (t) => {
  for (const [descriptor, raw, body, payload] of [
    [INFO, [], '', { kind: 'none' }],
    [STOP, [], '', { kind: 'none' }],
    [STOP, JSON_TYPE, '', { kind: 'none' }],
    [STOP, JSON_TYPE, '{"runId":"r"}', { kind: 'json', bytes: Buffer.from('{"runId":"r"}'), name: undefined }],
    [RUN, JSON_TYPE, '{"threadId":"t1"}', { kind: 'json', bytes: Buffer.from('{"threadId":"t1"}'), name: undefined }],
    [RENAME, JSON_TYPE, '{"name":"n"}', { kind: 'json', bytes: Buffer.from('{"name":"n"}'), name: 'n' }],
    [
      TRANSCRIBE,
      ['content-type', 'multipart/form-data; boundary=b', 'transfer-encoding', 'chunked'],
      '--b--',
      { kind: 'stream' },
    ],
  ] as const) {
    t.match(await read(parts(), descriptor, raw, body), { outcome: 'read', payload })
  }
})

void test('the bytes of a body are held until it is released, and once it is refused no more', async (t) => {
  const given = parts()
  const body = `{"threadId":"t1","state":"${'x'.repeat(40)}"}`
  const first = await read(given, RUN, JSON_TYPE, body)
  t.match(await read(given, RUN, JSON_TYPE, body), { outcome: 'refused', reason: 'bodies-budget-exhausted' })
  if (first.outcome === 'read') first.release()
  t.match(await read(given, RUN, JSON_TYPE, body.replace('t1', 'clear')), { outcome: 'refused', reason: 'thread-id-invalid' })
  t.match(await read(given, RUN, JSON_TYPE, body), { outcome: 'read' })
})

void test('a fault of the gateway’s own while it checks a body is told as it is, and holds nothing', async (t) => {
  const fault = new Error('no place to note a name')
  const given = parts({
    onDropped: () => {
      throw fault
    },
  })
  await t.rejects(read(given, RUN, JSON_TYPE, `{"threadId":"t1","other":"${'x'.repeat(60)}"}`), fault)
  t.ok(given.budget.take(100), 'all of it is there again')
})

void test('a large body lets others have their turn between the steps, one that is not does not wait for them', async (t) => {
  const bound = 256 * 1024
  const filled = (bytes: number): string => `{"threadId":"t1","state":"${'x'.repeat(bytes - 28)}"}`
  for (const [bytes, turns] of [
    [100, 0],
    [bound, 0],
    [bound + 1, 3],
  ] as const) {
    let counted = 0
    let turn: NodeJS.Immediate
    const count = (): void => {
      counted += 1
      turn = setImmediate(count)
    }
    const most = 2 * bound
    const reading = read(
      parts({ limits: { body: most, runBody: most }, budget: makeBudget(most) }),
      RUN,
      JSON_TYPE,
      filled(bytes),
    )
    turn = setImmediate(count)
    t.match(await reading, { outcome: 'read', payload: { kind: 'json' } })
    clearImmediate(turn)
    t.equal(counted, turns, `${bytes} bytes`)
  }
})
