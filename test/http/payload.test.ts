/** Bodies as the gate gets them: what is read says so, and gives its bytes back whatever comes of it. */
import { randomUUID } from 'node:crypto'
import { getHeapSpaceStatistics } from 'node:v8'
import { test } from 'tap'
import type { BodyPolicy } from '../../src/core/route/bodies.ts'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { headerLines } from '../../src/core/wire/headers.ts'
import type { Refusal } from '../../src/core/reasons.ts'
import { assumedFacts } from '../../src/core/route/transport.ts'
import { inTurns, turn } from '../../src/http/pipeline/event-loop-turns.ts'
import type { Steps } from '../../src/core/json/steps.ts'
import { readEnveloped, readPayload, type PayloadParts } from '../../src/http/pipeline/payload.ts'
import type { Payload } from '../../src/http/pipeline/stages.ts'
import { type ArrivingBody, makeBudget } from '../../src/http/pipeline/request-body.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { arrivingMessage } from '../../testing/support/arriving-message.ts'
import { collectYoung } from '../../testing/support/garbage-collection.ts'
import { OPEN_BODIES } from '../../testing/support/open-bodies.ts'

const INFO = classify('GET', ['info'], new Map()) as RouteDescriptor
const RUN = classify('POST', ['agent', 'a', 'run'], new Map()) as RouteDescriptor
const STOP = classify('POST', ['agent', 'a', 'stop', 't1'], new Map()) as RouteDescriptor
const RENAME = classify('PATCH', ['threads', 't1'], new Map()) as RouteDescriptor
const TRANSCRIBE = classify('POST', ['transcribe'], new Map()) as RouteDescriptor

const EVERYTHING: BodyPolicy = OPEN_BODIES

const JSON_TYPE = ['content-type', 'application/json', 'transfer-encoding', 'chunked']

/** What reading needs, with a budget of 100 bytes. */
function parts(more: Partial<PayloadParts> = {}): PayloadParts {
  return {
    limits: { body: 100, runBody: 100, bodyMembers: 10_000 },
    budget: makeBudget(100),
    reading: makeBudget(100_000),
    onDropped: () => {},
    metrics: makeMetrics().requests,
    audit: { interruptContent: false },
    ...more,
  }
}

const read = (given: PayloadParts, descriptor: RouteDescriptor, raw: readonly string[], body: string, most = 100) =>
  readPayload(given, descriptor, assumedFacts('multi-route'), most, arriving(raw, body))

/** What goes upstream of a request that is read, where all of it passes. */
async function written(...[given, descriptor, raw, body, most = 100]: Parameters<typeof read>): Promise<Payload | Refusal> {
  const payload = await read(given, descriptor, raw, body, most)
  return payload.outcome === 'refused' ? payload : payload.write(EVERYTHING, most)
}

const arriving = (raw: readonly string[], body: string): ArrivingBody => ({
  message: arrivingMessage(body === '' ? [] : [Buffer.from(body)]),
  lines: headerLines(raw),
  caller: 'corp:alice',
  onWanted: () => {},
  timing: { waited: 0 },
})

void test('what was read says so, and what it is', async (t) => {
  for (const [descriptor, raw, body, payload] of [
    [INFO, [], '', { kind: 'none' }],
    [STOP, [], '', { kind: 'none' }],
    [STOP, JSON_TYPE, '', { kind: 'none' }],
    [STOP, JSON_TYPE, '{"runId":"r"}', { kind: 'json', bytes: [Buffer.from('{"runId":"r"}')], name: undefined }],
    [RUN, JSON_TYPE, '{"threadId":"t1"}', { kind: 'json', bytes: [Buffer.from('{"threadId":"t1"}')], name: undefined }],
    [RENAME, JSON_TYPE, '{"name":"n"}', { kind: 'json', bytes: [Buffer.from('{"name":"n"}')], name: 'n' }],
    [
      TRANSCRIBE,
      ['content-type', 'multipart/form-data; boundary=b', 'transfer-encoding', 'chunked'],
      '--b--',
      { kind: 'stream' },
    ],
  ] as const) {
    t.match(await written(parts(), descriptor, raw, body), payload)
  }
})

void test('the bytes of a body are held until it is released, and once it is refused no more', async (t) => {
  const given = parts()
  const body = `{"threadId":"t1","state":"${'x'.repeat(40)}"}`
  const first = await read(given, RUN, JSON_TYPE, body)
  t.match(await read(given, RUN, JSON_TYPE, body), { outcome: 'refused', reason: 'bodies-budget-exhausted' })
  if (first.outcome === 'read') {
    first.release()
    first.release()
  }
  t.notOk(given.budget.take(101), 'given back once')
  t.match(await read(given, RUN, JSON_TYPE, body.replace('t1', 'clear')), { outcome: 'refused', reason: 'thread-id-invalid' })
  t.match(await read(given, RUN, JSON_TYPE, body), { outcome: 'read' })
})

void test('what reading takes is bounded over all bodies, and given back when a body is written for the last time', async (t) => {
  const body = `{"threadId":"t1","state":[${'[],'.repeat(20)}[]]}`
  // Its values take more than its bytes.
  const cost = 6 * body.length + 200 * 44
  for (const end of ['forget', 'release'] as const) {
    const given = parts({ budget: makeBudget(1000), reading: makeBudget(2 * cost - 1) })
    const first = await read(given, RUN, JSON_TYPE, body)
    t.match(await read(given, RUN, JSON_TYPE, body), { outcome: 'refused', reason: 'bodies-budget-exhausted' })
    if (first.outcome === 'refused') throw new Error(first.reason)
    t.match(await first.write(EVERYTHING, 100), { kind: 'json' })
    t.match(await first.write(EVERYTHING, 100), { kind: 'json' }, 'it may be written anew until then')
    first[end]()
    t.match(await read(given, RUN, JSON_TYPE, body), { outcome: 'read' })
    first.release()
    t.notOk(given.reading.take(cost), 'given back once')
    if (end === 'forget') t.throws(() => first.write(EVERYTHING, 100), /a released body cannot be written/)
  }
})

void test('of what reading takes one caller has a share, or one body: another caller finds room', async (t) => {
  const body = `{"threadId":"t1","state":[${'[],'.repeat(20)}[]]}`
  const cost = 6 * body.length + 200 * 44
  const given = parts({ budget: makeBudget(1000), reading: makeBudget(2 * cost, cost - 1) })
  const of = (caller: string) =>
    readPayload(given, RUN, assumedFacts('multi-route'), 100, { ...arriving(JSON_TYPE, body), caller })
  const first = await of('corp:alice')
  t.match(await of('corp:alice'), { outcome: 'refused', reason: 'bodies-budget-exhausted' })
  t.match(await of('corp:bob'), { outcome: 'read' })
  if (first.outcome === 'read') first.release()
  t.match(await of('corp:alice'), { outcome: 'read' }, 'what was given back is hers again')
})

void test('a body that could never be read is too large, by its bytes before it has come', async (t) => {
  const given = parts({ reading: makeBudget(6 * 60) })
  const body = `{"threadId":"t1","state":"${'x'.repeat(40)}"}`
  t.match(await read(given, RUN, JSON_TYPE, body), { outcome: 'refused', reason: 'body-too-large' })
  const lines = ['content-type', 'application/json', 'content-length', '61']
  t.match(await read(given, RUN, lines, ''), { outcome: 'refused', reason: 'body-too-large' })
  t.match(await read(given, RUN, JSON_TYPE, '{"threadId":"t1","state":[[],[]]}'), { reason: 'body-too-large' }, 'by its values')
  t.ok(given.budget.take(100) && given.reading.take(360), 'and nothing is held')
})

void test('a fault of the gateway’s own while it checks a body is told as it is, and holds nothing', async (t) => {
  const fault = new Error('no place to note a name')
  const given = parts({
    onDropped: () => {
      throw fault
    },
  })
  const envelope = `{"method":"info","other":"${'x'.repeat(60)}"}`
  const opening = readEnveloped(given, 100, { admit: () => null, mostOf: () => 100 }, arriving(JSON_TYPE, envelope))
  await t.rejects(opening, fault)
  t.ok(given.budget.take(100) && given.reading.take(100_000), 'all of it is there again')
})

void test('a body beyond its bound is refused: as it comes, and where the rule that allows it has a smaller one', async (t) => {
  const body = `{"threadId":"t1","state":"${'x'.repeat(40)}"}`
  t.match(await read(parts(), RUN, JSON_TYPE, body, 60), { outcome: 'refused', reason: 'body-too-large' })
  const given = parts()
  const first = await read(given, RUN, JSON_TYPE, body)
  if (first.outcome === 'refused') throw new Error(first.reason)
  t.match(await first.write(EVERYTHING, body.length - 1), { outcome: 'refused', reason: 'body-too-large' })
  t.match(await first.write(EVERYTHING, body.length), { kind: 'json' })
  const multipart = ['content-type', 'multipart/form-data; boundary=b', 'content-length', '50']
  t.match(await read(parts(), TRANSCRIBE, multipart, 'x'.repeat(50), 49), { outcome: 'refused', reason: 'body-too-large' })
  const recording = await read(parts(), TRANSCRIBE, multipart, 'x'.repeat(50))
  if (recording.outcome === 'refused') throw new Error(recording.reason)
  t.match(await recording.write(EVERYTHING, 49), { outcome: 'refused', reason: 'body-too-large' })
  t.match(await recording.write(EVERYTHING, 50), { kind: 'stream' })
  t.match(await recording.write(EVERYTHING, 50), { outcome: 'refused', reason: 'rules-changed' }, 'it can be read once')
})

void test('of a body goes upstream what the rule lets through', async (t) => {
  const body = '{"threadId":"t1","state":1,"tools":[{"name":"a"}]}'
  const first = await read(parts(), RUN, JSON_TYPE, body)
  if (first.outcome === 'refused') throw new Error(first.reason)
  const sent = async (policy: BodyPolicy) => {
    const payload = await first.write(policy, 100)
    return 'kind' in payload && payload.kind === 'json' ? Buffer.concat(payload.bytes).toString() : payload
  }
  t.equal(await sent(EVERYTHING), body)
  t.equal(await sent({ ...EVERYTHING, state: 'drop', tools: new Set() }), '{"threadId":"t1","tools":[]}')
})

void test('an envelope is bound by what it turns out to ask', async (t) => {
  const text = `{"method":"info","params":{"x":"${'x'.repeat(40)}"}}`
  const opened = (most: number) =>
    readEnveloped(parts(), 100, { admit: () => null, mostOf: () => most }, arriving(JSON_TYPE, text))
  t.match(await opened(text.length - 1), { outcome: 'refused', reason: 'body-too-large' })
  t.match(await opened(text.length), { outcome: 'read', descriptor: { route: { id: 'info' } } })
})

void test('a large body goes upstream as its bytes came where the gateway would write the same', async (t) => {
  const most = 2 ** 20
  const large = (): PayloadParts =>
    parts({
      limits: { body: most, runBody: most, bodyMembers: 10_000 },
      budget: makeBudget(most),
      reading: makeBudget(10 * most),
    })
  const filling = 'ä€😀x'.repeat(40_000)
  for (const [body, expected] of [
    // JavaScript would put 1 before the other keys.
    [`{"threadId":"t1","state":{"b":"${filling}","1":2}}`, null],
    [`{"threadId":"t1","state":{"b":"${filling}\\n\\""}}`, null],
    [`{"threadId":"t1", "state":{"b":"${filling}"}}`, `{"threadId":"t1","state":{"b":"${filling}"}}`],
    [`{"threadId":"t1","state":{"b":"\\u0041${filling}"}}`, `{"threadId":"t1","state":{"b":"A${filling}"}}`],
    [`{"threadId":"t1","no such":1,"state":{"b":"${filling}"}}`, `{"threadId":"t1","state":{"b":"${filling}"}}`],
    [`\t{"threadId":"t1","state":{"b":"${filling}"}}`, `{"threadId":"t1","state":{"b":"${filling}"}}`],
  ] as const) {
    const payload = await written(large(), RUN, JSON_TYPE, body, most)
    if (!('kind' in payload) || payload.kind !== 'json') return t.fail(JSON.stringify(payload))
    t.equal(Buffer.concat(payload.bytes).toString() === (expected ?? body), true, body.slice(0, 40))
  }
  for (const character of ['\t', '\n', '\0', '\u001f'])
    t.match(await written(large(), RUN, JSON_TYPE, `{"threadId":"t1","state":"${filling}${character}"}`, most), {
      reason: 'body-not-json',
    })
})

void test('a piece of a body does not keep the buffer in memory of which it is a small part', async (t) => {
  const slab = Buffer.alloc(64 * 1024, ' ')
  slab.write('{"threadId":"t1"}', 1000)
  const arrived = { ...arriving(JSON_TYPE, ''), message: arrivingMessage([slab.subarray(1000, 1017)]) }
  const body = await readPayload(parts(), RUN, assumedFacts('multi-route'), 100, arrived)
  const payload = body.outcome === 'refused' ? body : await body.write(EVERYTHING, 100)
  t.match(payload, { kind: 'json', bytes: [Buffer.from('{"threadId":"t1"}')] })
  if ('kind' in payload && payload.kind === 'json') t.equal(payload.bytes[0]?.buffer.byteLength, 17)
})

void test('a large body lets others have their turn between the steps, one that is not does not wait for them', async (t) => {
  // Work has a share of each turn in milliseconds; how fast this machine is must not decide. Short work takes no time here, each
  // step of long work more than its share, and the share of this turn is already used when a body comes.
  const running = performance.now.bind(performance)
  let isLarge = false
  let now = running()
  performance.now = () => (isLarge ? (now += 1) : now)
  t.teardown(() => void (performance.now = running))
  const bound = 256 * 1024
  const filled = (bytes: number): string => `{"threadId":"t1","state":"${'x'.repeat(bytes - 28)}"}`
  for (const [bytes, turns] of [
    [100, 0],
    [bound, 0],
    [bound + 1, 1],
    [16 * bound, 16],
  ] as const) {
    let counted = 0
    let next = setImmediate(function count() {
      counted += 1
      next = setImmediate(count)
    })
    isLarge = turns > 0
    void turn()
    now += 1
    const most = 16 * bound
    const reading = written(
      parts({
        limits: { body: most, runBody: most, bodyMembers: 10_000 },
        budget: makeBudget(most),
        reading: makeBudget(10 * most),
      }),
      RUN,
      JSON_TYPE,
      filled(bytes),
      most,
    )
    t.match(await reading, { kind: 'json' })
    clearImmediate(next)
    if (turns === 0) t.equal(counted, 0, `${bytes} bytes`)
    else t.ok(counted >= turns, `${counted} turns for ${bytes} bytes`)
  }
})

const CHUNK = 64 * 1024

/** In chunks as a socket is read. */
function inChunks(body: string): ArrivingBody {
  const bytes = Buffer.from(body)
  const chunks = Array.from({ length: Math.ceil(bytes.length / CHUNK) }, (_, at) =>
    Buffer.from(bytes.subarray(at * CHUNK, (at + 1) * CHUNK)),
  )
  return { ...arriving(JSON_TYPE, ''), message: arrivingMessage(chunks) }
}

function oldBytes(): number {
  collectYoung()
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0
}

void test('what a large body is read as is young, and does not outlive it, even where the body waits for long', async (t) => {
  // A share of a turn is some steps, whatever the speed of this machine: a body has fewer turns than it may have in a row.
  const running = performance.now.bind(performance)
  let now = running()
  performance.now = () => (now += 0.02)
  t.teardown(() => void (performance.now = running))
  const messages = Array.from({ length: 160 }, (_, at) => ({ id: `m${at}`, role: 'user', content: 'x'.repeat(2000) }))
  const body = JSON.stringify({ threadId: randomUUID(), messages })
  const most = 2 * body.length
  const bodies = 24
  const given = parts({
    limits: { body: most, runBody: most, bodyMembers: 10_000 },
    budget: makeBudget(bodies * most),
    reading: makeBudget(10 * bodies * most),
  })
  let arrived = 0
  const threads: (string | undefined)[] = []
  const pass = async (): Promise<void> => {
    const arriving = inChunks(body)
    arriving.message.once('end', () => (arrived += 1))
    const read = await readPayload(given, RUN, assumedFacts('multi-route'), most, arriving)
    if (read.outcome === 'refused') throw new Error(read.reason)
    t.match(await read.write(EVERYTHING, most), { kind: 'json' })
    read.release()
    // As an open stream does.
    threads.push(read.descriptor.ids.threadId)
  }
  function* untilAllWait(): Steps<void> {
    while (arrived < bodies) yield
  }
  const others = inTurns(untilAllWait())
  const all = Array.from({ length: bodies }, pass)
  await others
  // What waits becomes old.
  const before = oldBytes()
  await Promise.all(all)
  const grown = (oldBytes() - before) / body.length
  t.equal(threads.length, bodies)
  t.ok(Math.abs(grown) < 3, `the old generation has grown by ${grown} bodies`)
})
