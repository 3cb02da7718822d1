/** The strict reading of JSON: one reading for every body that passes, refused before it costs. */
import { test } from 'tap'
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  LONG_KEY,
  makeJsonReader,
  MAX_DEPTH,
  MAX_LONG_KEYS,
  MAX_VALUES,
  type Json,
  type JsonReading,
} from '../../src/core/json/read.ts'

/** Reads a body that came in one piece. */
function readWhole(bytes: Buffer): JsonReading {
  const reader = makeJsonReader()
  return reader.push(bytes) ?? reader.end()
}

const read = (text: string | Buffer) => readWhole(Buffer.from(text as string))
const reason = (text: string | Buffer) => {
  const result = read(text)
  return result.outcome === 'refused' ? result.reason : 'read'
}

void test('a JSON object is read as JSON.parse reads it', (t) => {
  const texts = [
    '{}',
    ' {"a":[1,"x:y",{"b":null}]}\n',
    '{"a":"\\\\","b":"\\"c\\":1","d":":"}',
    '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}',
    '{"\\u0061":1,"b":"\\ud800"}',
    '{"":1,"__proto":2,"constructor":3}',
  ]
  for (const text of texts) {
    const value = JSON.parse(text) as unknown
    t.same(read(text), { outcome: 'read', value, text, asWritten: JSON.stringify(value) === text }, text)
  }
  t.end()
})

void test('duplicate keys are refused at every level, however they are spelled', (t) => {
  const texts = [
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":1}',
    '{"threadId":"x","\\u0074hreadId":"y"}',
    '{"x":{"a":1,"b":2,"a":3}}',
    '{"x":[{"a":1},{"b":1,"b":1}]}',
    '{"":1,"":2}',
    '{"1":1,"1":2}',
  ]
  for (const text of texts) t.equal(reason(text), 'body-key-repeated', text)
  t.end()
})

void test('what two readers could read differently is refused', (t) => {
  t.equal(reason('\ufeff{}'), 'body-not-json', 'a byte order mark')
  t.equal(reason('{} x'), 'body-not-json', 'trailing bytes')
  t.equal(reason('{}\u0000'), 'body-not-json')
  t.equal(reason(''), 'body-not-json')
  t.equal(reason("{'a':1}"), 'body-not-json')
  t.equal(reason('{"a":1,}'), 'body-not-json')
  t.equal(reason('{"a":NaN}'), 'body-not-json')
  t.equal(reason('{"a":1e999}'), 'body-number-out-of-range', 'would be re-serialised as null')
  for (const text of ['[]', '"x"', '1', 'null', 'true']) t.equal(reason(text), 'body-not-object', text)
  for (const text of ['{"__proto__":{}}', '{"a":[{"__proto__":1}]}', '{"\\u005f_proto__":1}'])
    t.equal(reason(text), 'body-key-forbidden', text)
  // Readers that put U+FFFD for half a pair would have one key of these two.
  for (const text of ['{"a":{"\\ud800":1,"\\ud801":2}}', '{"\\udc00\\ud800":1}', '{"a":[{"x\\uD83D":1}]}'])
    t.equal(reason(text), 'body-key-forbidden', text)
  t.equal(reason('{"\\ud83d\\ude00":1}'), 'read', 'a whole pair')
  t.equal(reason('{"a":"cut in two \\ud83d"}'), 'read', 'a text that a client has cut')
  t.equal(reason(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])), 'body-not-utf8')
  t.equal(reason(Buffer.from('{"a":1}', 'utf16le')), 'body-not-json')
  t.end()
})

void test('nesting is bounded before anything recursive sees it', (t) => {
  const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
  t.equal(reason(nested(MAX_DEPTH)), 'read')
  t.equal(reason(nested(MAX_DEPTH + 1)), 'body-too-deep')
  t.equal(reason('['.repeat(1_000_000)), 'body-too-deep')
  t.equal(reason(`{"a":"${'['.repeat(1000)}"}`), 'read', 'brackets in a string are no nesting')
  t.end()
})

/** Reads a text whose bytes come in these pieces; the number of bytes that were taken tells when it was refused. */
function inPieces(bytes: Buffer, size: number): { readonly result: JsonReading; readonly taken: number } {
  const reader = makeJsonReader()
  for (let at = 0; at < bytes.length; at += size) {
    const fault = reader.push(bytes.subarray(at, at + size))
    if (fault !== null) return { result: fault, taken: Math.min(at + size, bytes.length) }
  }
  return { result: reader.end(), taken: bytes.length }
}

void test('it makes no difference in which pieces a text comes', (t) => {
  // oxfmt-ignore
  const key = fc.constantFrom('a', 'b', '\\', '\\\\', '\\u005c', '\\u005C', '\\u0061', '\\"', 'é', '漢', '😀', '\\ud83d', '__proto__', 'u005c', ':')
  const piece = fc.oneof(
    key.map((one) => `"${one}":1`),
    fc.tuple(key, key).map(([one, other]) => `"${one}${other}":"${other}"`),
    fc.constantFrom('"x":[{"é":1},{}]', '"y":{"\\\\":"\\\\"}', '"z":1e999', '"', '\\', ',', '\ufeff', '{', ']'),
  )
  const text = fc.array(piece, { maxLength: 6 }).map((pieces) => Buffer.from(`{${pieces.join(',')}}`))
  const bytes = fc.oneof(
    text,
    fc.tuple(text, fc.nat(), fc.nat(255)).map(([good, at, byte]) => {
      good[at % good.length] = byte
      return good
    }),
  )
  fc.assert(
    fc.property(bytes, (whole) => {
      const expected = readWhole(whole)
      for (const size of [1, 2, 3, 5, 7]) {
        const { result } = inPieces(whole, size)
        // Of several faults, the one that comes first in a piece is told.
        if (expected.outcome === 'refused') assert.equal(result.outcome, 'refused')
        else {
          assert.equal(result.outcome, 'read')
          assert.deepEqual({ ...result, asWritten: null }, { ...expected, asWritten: null })
          // What is written otherwise is never said to be so of its pieces.
          if ('asWritten' in result) assert.ok(expected.asWritten || !result.asWritten)
        }
      }
    }),
    { numRuns: 500 },
  )
  t.end()
})

void test('a character may be cut anywhere by the end of a piece', (t) => {
  // The first and the last character of each length in UTF-8.
  for (const character of ['\u0080', '\u07ff', '\u0800', '\uffff', '\u{10000}', '\u{10ffff}']) {
    const bytes = Buffer.from(`{"a":"${character}"}`)
    for (const size of [1, 2, 3, 7, 8, 9])
      t.same(
        inPieces(bytes, size).result,
        { outcome: 'read', value: { a: character }, text: String(bytes), asWritten: true },
        `${JSON.stringify(character)} by ${size}`,
      )
  }
  t.end()
})

void test('a piece without bytes changes nothing, also within an escape', (t) => {
  const text = '{"a\\"b":1,"c":"\\\\"}'
  for (let at = 0; at <= text.length; at += 1) {
    const reader = makeJsonReader()
    for (const piece of [text.slice(0, at), '', text.slice(at)]) t.equal(reader.push(Buffer.from(piece)), null)
    // Whether it is known to be as it would be written depends on where it was cut.
    t.strictSame(
      { ...reader.end(), asWritten: null },
      { outcome: 'read', value: { 'a"b': 1, c: '\\' }, text, asWritten: null },
      String(at),
    )
  }
  t.end()
})

void test('what is hostile is refused before the rest has come', (t) => {
  const rest = Buffer.alloc(1_000_000, ' ')
  const early = (start: string | Buffer) => inPieces(Buffer.concat([Buffer.from(start as string), rest]), 1024)
  t.match(early(`{"a":${'['.repeat(MAX_DEPTH)}`), { result: { reason: 'body-too-deep' }, taken: 1024 })
  t.match(early(Buffer.from([0x7b, 0x22, 0xff])), { result: { reason: 'body-not-utf8' }, taken: 1024 })
  for (const start of ['\\', '{"a":1}\\', '{\\"a":1', '{"a":\\u0031'])
    t.match(early(start), { result: { reason: 'body-not-json' }, taken: 1024 }, start)
  const many = early(`{"a":[${'1,'.repeat(MAX_VALUES)}`)
  t.match(many.result, { reason: 'body-too-many-values' })
  t.ok(many.taken < MAX_VALUES * 2 + 2048)
  t.match(inPieces(Buffer.from([0x7b, 0x7d, 0xc3]), 3).result, { reason: 'body-not-utf8' }, 'a character that never ends')
  t.end()
})

void test('strings without escapes are not searched for one again and again', (t) => {
  // Quadratic once, while this was written: 25 MB of short strings took a minute.
  t.equal(reason(`{"a":[${'"x",'.repeat(200_000)}"${'y'.repeat(20_000_000)}"]}`), 'read')
  t.end()
})

void test('the number of values is bounded before they are made', (t) => {
  const many = (count: number) => `{"a":[${'{},'.repeat(count - 1)}{}]}`
  t.equal(reason(many(1000)), 'read')
  t.equal(reason(many(MAX_VALUES)), 'body-too-many-values')
  // The object and the list are values, too.
  const commas = (count: number) => `{"a":[${'1,'.repeat(count)}1]}`
  t.equal(reason(commas(MAX_VALUES - 2)), 'read')
  t.equal(reason(commas(MAX_VALUES - 1)), 'body-too-many-values')
  t.equal(reason(`{"a":"${'1,'.repeat(MAX_VALUES)}"}`), 'read', 'commas in a string are no values')
  t.end()
})

void test('long keys are bounded together, in bytes', (t) => {
  const keys = (count: number, key: string) => `{${Array.from({ length: count }, (_, at) => `"${key}${1000 + at}":1`).join(',')}}`
  const long = (bytes: number, character = 'k') => character.repeat((bytes - 4) / Buffer.byteLength(character))
  t.equal(reason(keys(1000, long(LONG_KEY))), 'read', 'keys that are not long')
  const most = Math.floor(MAX_LONG_KEYS / (LONG_KEY + 1))
  t.equal(reason(keys(most, long(LONG_KEY + 1))), 'read')
  t.equal(reason(keys(most + 1, long(LONG_KEY + 1))), 'body-keys-too-long')
  t.equal(reason(keys(300, long(LONG_KEY + 2, 'é'))), 'body-keys-too-long', 'half as many characters')
  const cut = Buffer.from(`{"${'k'.repeat(MAX_LONG_KEYS + 1)}":1}`)
  t.match(inPieces(cut, 1000).result, { reason: 'body-keys-too-long' }, 'a key that comes in pieces')
  t.equal(reason(`{"a":"${'v'.repeat(MAX_LONG_KEYS + 1)}"}`), 'read', 'values are not counted')
  t.end()
})

void test('an escaped key is read as what it stands for, whatever the engine has seen before (nodejs/node#63785)', (t) => {
  // Once V8 has seen an object with the key `\u0074hr`, it takes the escaped spelling of threadId in its place for that.
  const tail = '"runId":"x","messages":[],"tools":[],"context":[]}'
  for (let at = 0; at < 3; at += 1) t.equal(reason(`{"threadId":"mine","\\\\u0074hr":"r",${tail}`), 'read')
  t.equal(reason(`{"threadId":"mine","\\u0074hreadId":"yours",${tail}`), 'body-key-repeated')
  // And where the key that it has seen is a beginning of the one that comes, or holds its escapes as they are.
  for (const [seen, then] of [
    ['{"selectedPath":1,"C:\\\\\\\\User":1}', '{"selectedPath":1,"C:\\\\Users":1}'],
    ['{"u8":1,"\\\\u":1}', '{"u8":1,"\\u005cX":1}'],
    ['{"title":1,"\\\\":1}', '{"title":1,"\\n":1}'],
    ['{"a":1,"\\\\n":1}', '{"a":1,"\\n":1}'],
  ] as const) {
    for (let at = 0; at < 3; at += 1) read(seen)
    const value = literal(then)
    t.strictSame(read(then), { outcome: 'read', value, text: then, asWritten: JSON.stringify(value) === then }, then)
  }
  t.end()
})

/** What a literal without lists means, found without JSON.parse reading a key. */
function literal(text: string): unknown {
  const strings = [...text.matchAll(/"(?:[^"\\]|\\.)*"/g)].map(([string]) => JSON.parse(string) as string)
  return Object.fromEntries(strings.map((key) => [key, 1]))
}

void test('what is written with escapes is read as it was meant', (t) => {
  const key = fc.string({ unit: fc.constantFrom('a', 'b', 'u', '0', '\\', '"', '\n', 'é', '{', '}', '[', ']', ':', ',', ' ') })
  const value = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.oneof(key, fc.integer(), fc.boolean(), fc.constant(null)),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(key, tie('value'), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).value
  const escape = (text: string, every: number): string =>
    text.replaceAll(/[ab0é]/g, (one, at: number) =>
      at % every === 0 ? `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}` : one,
    )
  fc.assert(
    fc.property(
      fc.dictionary(key, value, { maxKeys: 4, noNullPrototype: true }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(undefined, 1, '\t'),
      (meant, every, space) => {
        // Escapes in numbers are none: digits other than 0 are not touched, and 0 stands in texts alone here.
        const text = JSON.stringify(meant, null, space).replaceAll(/"(?:[^"\\]|\\.)*"/g, (string) => escape(string, every))
        const asWritten = text === JSON.stringify(meant)
        assert.deepEqual(readWhole(Buffer.from(text)), { outcome: 'read', value: meant, text, asWritten })
      },
    ),
    { numRuns: 2000 },
  )
  t.end()
})

void test('an escaped string is looked at once, however many colons follow it', (t) => {
  // Quadratic once: 100 KB of this took half a minute. Ten times as much is now read before the test's time is up.
  t.equal(reason(`{"${'\\n'.repeat(32_000)}"${':'.repeat(1_000_000)}}`), 'body-not-json')
  t.end()
})

void test('the end of a string is not searched for again at each of its escapes', (t) => {
  // Quadratic, if it were: minutes, for 4 MB.
  t.equal(reason(`{"a":"${'\\n'.repeat(2_000_000)}"}`), 'read')
  t.end()
})

void test('escaped keys are read as what they stand for', (t) => {
  for (const text of [
    '{"\\u00e9":1}',
    '{"a\\\\b":1}',
    '{"\\u005c":1}',
    '{"a":1,"b\\u005Cc":1}',
    '{"a":"\\"x","y":1}',
    '{"\\"":{"\\n":[]}}',
    '{"a":"\\u0074"}',
  ]) {
    const value = JSON.parse(text) as unknown
    t.same(read(text), { outcome: 'read', value, text, asWritten: JSON.stringify(value) === text }, text)
  }
  t.end()
})
