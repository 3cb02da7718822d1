/** The tokens of a run, counted from both encodings of its events: what agents report, and a floor where they report nothing. */
import { test } from 'tap'
import { makeRunMeter, tokensOfRequest, type TokenCount } from '../../src/core/wire/run-meter.ts'
import { eventBytes } from '../../examples/agent-client.ts'

type Form = 'events' | 'frames'

const FORMS: readonly Form[] = ['events', 'frames']

const STARTED = { type: 'RUN_STARTED', threadId: 't1', runId: 'r1' }
const FINISHED = { type: 'RUN_FINISHED', threadId: 't1', runId: 'r1' }
const text = (delta: string) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta })

const bytesOf = (value: string): number[] => [...Buffer.from(value)]
const varint = (value: bigint): number[] =>
  value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)]
const delimited = (field: number, bytes: readonly number[]): number[] => [
  ...varint(BigInt(field * 8 + 2)),
  ...varint(BigInt(bytes.length)),
  ...bytes,
]
const number = (field: number, value: bigint): number[] => [...varint(BigInt(field * 8)), ...varint(BigInt.asUintN(64, value))]

/** A binary event as @ag-ui/proto 1.0.0 writes it, which the encoder of the examples is too old for. */
function frame(...message: readonly number[]): Uint8Array {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(message.length)
  return Uint8Array.from([...length, ...message])
}

interface Usage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly totalTokens?: number
  readonly reasoningTokens?: number
  readonly cachedInputTokens?: number
}

const entry = ({ inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens }: Usage): number[] => {
  const counts = [inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens]
  return [
    ...delimited(1, bytesOf('openai')),
    ...delimited(2, bytesOf('gpt-5')),
    ...counts.flatMap((count, at) => (count === undefined ? [] : number(at + 3, BigInt(count)))),
  ]
}

/** The last event of a run, with usage. */
function over(form: Form, usage: readonly Usage[], type: 'RUN_FINISHED' | 'RUN_ERROR' = 'RUN_FINISHED'): Uint8Array {
  const event = type === 'RUN_FINISHED' ? FINISHED : { type, message: 'failed' }
  if (form === 'events') return Buffer.from(`data: ${JSON.stringify({ ...event, usage })}\n\n`)
  const base = delimited(1, [8, type === 'RUN_FINISHED' ? 12 : 13])
  const [envelope, field] = type === 'RUN_FINISHED' ? [13, 7] : [14, 4]
  return frame(...delimited(envelope, [...base, ...usage.flatMap((one) => delimited(field, entry(one)))]))
}

const written = (form: Form, event: object): Uint8Array => eventBytes(event as never, form === 'frames' ? 'binary' : 'events')

/** Counts a stream that arrives in pieces of a size. */
function counted(form: Form, pieces: readonly Uint8Array[], size = Infinity, sent = 0): TokenCount {
  const stream = Buffer.concat(pieces)
  const meter = makeRunMeter(form, sent)
  for (let at = 0; at < stream.length; at += size) meter.see(stream.subarray(at, Math.min(at + size, stream.length)))
  meter.end()
  return meter.count()
}

void test('usage of the last event counts, in both encodings, however the stream is cut into pieces', (t) => {
  for (const form of FORMS) {
    for (const type of ['RUN_FINISHED', 'RUN_ERROR'] as const) {
      const stream = [
        written(form, STARTED),
        written(form, text('ü'.repeat(400))),
        over(
          form,
          [{ inputTokens: 1000, outputTokens: 20, reasoningTokens: 15, cachedInputTokens: 900 }, { totalTokens: 7 }],
          type,
        ),
      ]
      for (const size of [1, 2, 3, 7, 100, Infinity]) {
        t.same(counted(form, stream, size, 5000), { reported: 1027, estimated: 0 }, `${form} ${type} ${size}`)
      }
    }
  }
  t.end()
})

void test('without usage, the text of the events and the request count four bytes to a token', (t) => {
  for (const form of FORMS) {
    const stream = [
      written(form, STARTED),
      written(form, text('abcdefgh')),
      written(form, { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"a":"b"}' }),
      written(form, { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/a', value: 'x'.repeat(1000) }] }),
      written(form, { type: 'STATE_SNAPSHOT', snapshot: { delta: 'x'.repeat(1000) } }),
      written(form, FINISHED),
    ]
    for (const size of [1, 5, Infinity]) {
      t.same(counted(form, stream, size, 400), { reported: 0, estimated: Math.ceil((400 + 8 + 9) / 4) }, form)
    }
  }
  t.equal(tokensOfRequest(0), 1)
  t.equal(tokensOfRequest(64 * 1024 * 1024), 16 * 1024, 'a large body has attachments, whose bytes are no tokens')
  t.end()
})

void test('a run never costs nothing', (t) => {
  for (const form of FORMS) {
    t.same(counted(form, []), { reported: 0, estimated: 1 })
    t.same(counted(form, [over(form, [{ inputTokens: 0, outputTokens: 0 }])]), { reported: 0, estimated: 1 })
    t.same(counted(form, [over(form, [])]), { reported: 0, estimated: 1 })
  }
  t.end()
})

void test('counts that are no numbers of tokens count as absent, and sums stay exact', (t) => {
  const usages: readonly (readonly [string, number])[] = [
    ['[{"inputTokens":-5,"outputTokens":10}]', 10],
    ['[{"inputTokens":1.5,"outputTokens":10}]', 10],
    ['[{"inputTokens":"9","outputTokens":10}]', 10],
    ['[{"totalTokens":1e400,"outputTokens":10}]', 10],
    ['[{"totalTokens":9007199254740993,"outputTokens":10}]', 10],
    ['[{"totalTokens":9007199254740991},{"totalTokens":9007199254740991}]', Number.MAX_SAFE_INTEGER],
    ['[{"inputTokens":3,"outputTokens":4,"totalTokens":5}]', 7],
    ['[{"inputTokens":3,"outputTokens":4,"totalTokens":9}]', 9],
    ['[null,7,"x",[],{"totalTokens":2}]', 2],
    ['[{"totalTokens":2,"totalTokens":3}]', 3],
    ['[1],"usage":[{"totalTokens":4}]', 4],
  ]
  for (const [usage, reported] of usages) {
    const stream = Buffer.from(`data: {"usage":${usage},"type":"RUN_FINISHED"}\n\n`)
    t.same(counted('events', [stream]), { reported, estimated: 0 }, usage)
  }
  for (const usage of ['{"totalTokens":9}', 'null', '7', '"[{\\"totalTokens\\":9}]"', '[{"totalTokens":NaN}]', '{}']) {
    const stream = Buffer.from(`data: {"type":"RUN_FINISHED","usage":${usage}}\n\n`)
    t.same(counted('events', [stream]), { reported: 0, estimated: 1 }, usage)
  }
  const binary = (...fields: number[]): TokenCount => counted('frames', [frame(...delimited(13, delimited(7, fields)))])
  t.same(binary(...number(3, -5n), ...number(4, 10n)), { reported: 10, estimated: 0 }, 'a negative number')
  t.same(binary(...number(5, 2n ** 53n), ...number(4, 10n)), { reported: 10, estimated: 0 }, 'a number that is not exact')
  t.same(binary(...number(4, 10n), ...number(4, 11n)), { reported: 11, estimated: 0 }, 'the last of two')
  t.same(binary(...delimited(4, [10])), { reported: 0, estimated: 1 }, 'another wire type')
  t.same(binary(...number(9, 5n), 0x4d, 1, 2, 3, 4, 0x51, 1, 2, 3, 4, 5, 6, 7, 8, ...number(4, 10n)), {
    reported: 10,
    estimated: 0,
  })
  t.end()
})

void test('any number of empty entries in one binary event takes no memory', (t) => {
  const entries = Buffer.alloc(1 << 20, Uint8Array.from([...delimited(7, [])]))
  const length = 1024 * entries.length
  const meter = makeRunMeter('frames', 0)
  // One RUN_FINISHED of a gigabyte: half a billion entries.
  const message = [...varint(BigInt(13 * 8 + 2)), ...varint(BigInt(length))]
  const prefix = Buffer.alloc(4)
  prefix.writeUInt32BE(message.length + length)
  meter.see(Uint8Array.from([...prefix, ...message]))
  const before = process.memoryUsage().heapUsed
  for (let at = 0; at < 8; at += 1) meter.see(entries)
  t.ok(process.memoryUsage().heapUsed - before < 64 * 1024 * 1024)
  t.end()
})

void test('the last event of a binary run may be in several parts, which are joined', (t) => {
  const half = (tokens: bigint) => delimited(13, delimited(7, number(5, tokens)))
  t.same(counted('frames', [frame(...half(3n), ...half(4n))]), { reported: 7, estimated: 0 })
  t.end()
})

void test('nothing inside of another event is usage', (t) => {
  const fake = `data: ${JSON.stringify({ ...FINISHED, usage: [{ totalTokens: 1 }] })}\n\n`
  for (const form of FORMS) {
    const stream = [
      written(form, STARTED),
      written(form, text(fake)),
      written(form, text('\r\n\r\n"}\\')),
      written(form, FINISHED),
    ]
    for (const size of [1, 9, Infinity]) t.equal(counted(form, stream, size).reported, 0, form)
  }
  const inside = [
    { type: 'CUSTOM', name: 'usage', value: { ...FINISHED, usage: [{ totalTokens: 9 }] } },
    { type: 'RAW', event: { ...FINISHED, usage: [{ totalTokens: 9 }] } },
    { type: 'RUN_STARTED', threadId: 't', runId: 'r', usage: [{ totalTokens: 9 }] },
    { type: 'RUN_FINISHED', result: { usage: [{ totalTokens: 9 }] }, rawEvent: { usage: [{ totalTokens: 9 }] } },
    { type: 'TEXT_MESSAGE_CONTENT', delta: '', usage: [{ totalTokens: 9 }] },
  ]
  for (const event of inside) t.equal(counted('events', [written('events', event)]).reported, 0, event.type)
  t.same(counted('events', [Buffer.from('data: {"\\u0074ype":1,"x\\u0020type":"RUN_FINISHED"}\n\n')]).reported, 0)
  t.end()
})

void test('the runs of one stream add up; a last event that is repeated does not', (t) => {
  for (const form of FORMS) {
    const run = [written(form, STARTED), over(form, [{ totalTokens: 10 }])]
    t.same(counted(form, [...run, ...run]), { reported: 20, estimated: 0 })
    t.same(counted(form, [...run, over(form, [{ totalTokens: 4 }])]), { reported: 10, estimated: 0 })
    const silent = [written(form, STARTED), written(form, text('abcd')), written(form, FINISHED)]
    t.same(counted(form, [...silent, ...run]), { reported: 10, estimated: 1 })
    t.same(counted(form, [...run, ...silent]), { reported: 10, estimated: 1 })
  }
  t.end()
})

void test('server-sent events are read in all their forms', (t) => {
  const event = JSON.stringify({ ...FINISHED, usage: [{ totalTokens: 5 }] })
  const half = event.indexOf(',')
  for (const stream of [
    `data: ${event}\r\n\r\n`,
    `data:${event}\r\r`,
    `data: ${event.slice(0, half)}\ndata: ${event.slice(half)}\n\n`,
    `: keep-alive\n\nevent: message\nid: 7\ndata: ${event}\nretry: 10\n\n`,
    `data: ${event}`,
    `data: not JSON {"\n\ndata: ${event}\n\n`,
  ]) {
    for (const size of [1, 4, Infinity]) t.equal(counted('events', [Buffer.from(stream)], size).reported, 5, stream)
  }
  for (const stream of [`datax: ${event}\n\n`, `: data: ${event}\n\n`, `event: ${event}\n\n`]) {
    t.equal(counted('events', [Buffer.from(stream)]).reported, 0, stream)
  }
  t.end()
})

void test('large events are counted without being kept', (t) => {
  const large = 'x'.repeat(100_000)
  for (const form of FORMS) {
    t.same(counted(form, [written(form, text(large))], 64 * 1024), { reported: 0, estimated: 25_000 }, form)
    const result = [...delimited(4, bytesOf(large)), ...delimited(7, number(5, 8n))]
    const last =
      form === 'frames'
        ? frame(...delimited(13, result))
        : Buffer.from(`data: ${JSON.stringify({ ...FINISHED, result: large, usage: [{ totalTokens: 8 }] })}\n\n`)
    t.same(counted(form, [last], 64 * 1024), { reported: 8, estimated: 0 }, form)
  }
  t.end()
})

void test('an escaped character of a text counts no more than its bytes', (t) => {
  const escaped = '\\u4e16'.repeat(100)
  t.ok(counted('events', [Buffer.from(`data: {"type":"TEXT_MESSAGE_CONTENT","delta":"${escaped}"}\n\n`)]).estimated <= 75)
  t.end()
})

void test('the estimate grows while an event is still coming, and says when the run is over', (t) => {
  for (const form of FORMS) {
    const meter = makeRunMeter(form, 0)
    const bytes = written(form, text('x'.repeat(4000)))
    meter.see(bytes.subarray(0, 3000))
    t.ok(meter.count().estimated > 600)
    meter.see(bytes.subarray(3000))
    t.same(meter.count(), { reported: 0, estimated: 1000 })
    t.equal(meter.isRunOver(), false)
    meter.see(written(form, FINISHED))
    t.equal(meter.isRunOver(), true)
    meter.see(written(form, STARTED))
    t.equal(meter.isRunOver(), false)
  }
  t.end()
})

void test('bytes that are no events count nothing and break nothing', (t) => {
  const noise = Uint8Array.from({ length: 20_000 }, (_, at) => (at * 7919 + (at >> 3)) & 255)
  for (const form of FORMS) {
    for (const size of [1, 13, Infinity]) t.ok(Number.isSafeInteger(counted(form, [noise], size).estimated))
    const frames = Array.from({ length: 500 }, (_, at) => frame(...noise.subarray(at * 20, at * 20 + 20)))
    t.ok(Number.isSafeInteger(counted('frames', frames).reported))
  }
  t.end()
})
