/**
 * The reader of JSON bodies. It takes exactly what a second strict reader takes, for the same value, in whatever pieces the bytes
 * come; and what it makes of the text for the upstream says the same again.
 */
import assert from 'node:assert/strict'
import { makeJsonReader, MAX_DEPTH, type JsonReading, type SteppedSource } from '../../../src/core/json/read.ts'
import { atOnce } from '../../../src/core/json/steps.ts'
import { memberTexts, writeAnew } from '../../../src/core/json/write.ts'
import { asStrict, readStrict } from '../strict-json.ts'

export const words = [
  '{"a":1}', '{"a":{"b":[1,null,true,false]}}', '"a":', '"b":', '"\\u0061":', '"\\\\":', '\\u', '\\ud83d', '\\ude00', '\\"', '\\/',
  '__proto__', '"__proto__":', 'null', 'true', 'false', '1e999', '-0', '0.1', '1E+2', '9007199254740993', '\u00ef\u00bb\u00bf',
  '\u00c3\u00a9', '\u00f0\u009f\u0098\u0080', '[[', ']]', '{}', '[]', ',', ':', '"0":', '"10":',
] // oxfmt-ignore

// oxfmt-ignore
export const seeds = [
  '{}', ' {"a":[1,"x:y",{"b":null}]}\n', '{"a":"\\\\","b":"\\"c\\":1","d":":"}', '{"\\u0061":1,"b":"\\ud800"}', '{"":1,"__proto":2,"constructor":3}', '{"\\\\":1,"\\u005c":2}', '{"a":true,"b":false,"c":null,"d":[],"e":{}}',
  '{"a":1,"\\u0061":1}', '{"a":1,"a":2}', '{"x":[{"a":1},{"b":1,"b":1}]}', '{"__proto__":{}}', '{"\\u005f_proto__":1}', '\xef\xbb\xbf{}', '{} x', '{"a":1e999}', '{"a":-1E400}', '{"a":-0,"b":0.1e+2,"c":123456789012345678}', '{"a":01}', '{"a":.5}',
  '{"\xc3\xa9":"\xe6\xbc\xa2\xf0\x9f\x98\x80"}', '{"1":1,"0":{"b":2,"1":3}}', '{"\\ud83d\\ude00":"\\u001f\\/"}', '[]', 'null', '', '{"x\\uD83D":1}', '{"a":"\n"}', '{"a":1,}', "{'a':1}", '{"a":"\xff"}', '{"a":"\xed\xa0\x80"}', '{"a":"\xc3',
  `{"a":${'['.repeat(127)}${']'.repeat(127)}}`, `{"a":${'['.repeat(128)}${']'.repeat(128)}}`,
]

export async function examine(input: Buffer): Promise<void> {
  const whole = await read([input])
  const expected = readStrict(input, MAX_DEPTH)
  assert.equal(whole.outcome, expected === undefined ? 'refused' : 'read', 'it takes what the strict reader takes')
  for (const pieces of [[input], ...cuts(input)]) {
    assert.deepEqual(readingOf(await read(pieces)), readingOf(whole), 'whatever the pieces')
    const inSteps = readInSteps(pieces)
    assert.deepEqual(
      inSteps === null ? 'refused' : { value: asStrict(inSteps.value) },
      whole.outcome === 'refused' ? 'refused' : { value: asStrict(whole.value) },
      'also in steps',
    )
    assert.ok(
      inSteps?.asWritten !== true || (whole.outcome === 'read' && whole.asWritten),
      'pieces show less of what is as written',
    )
  }
  if (whole.outcome === 'refused' || expected === undefined) return
  assert.deepEqual(asStrict(whole.value), expected, 'it reads the value that stands there')

  const { value, text, asWritten } = whole
  const written = writeAnew({ ...value }, whole)
  assert.deepEqual(readingOf(await read([Buffer.from(written)])), { value: expected, text: written }, 'one reading is left')
  // JavaScript puts keys that are whole numbers before all others.
  if (/"(?:0|[1-9][0-9]*)"/.test(text)) return
  if (asWritten) assert.equal(text, JSON.stringify(value), 'it is as written')
  for (const [key, member] of memberTexts(text)) assert.equal(member, JSON.stringify(value[key]), 'a member is written anew')
}

/** Reads pieces of a body. */
async function read(pieces: readonly Buffer[]): Promise<JsonReading> {
  const reader = makeJsonReader()
  for (const piece of pieces) {
    const refusal = reader.push(piece)
    if (refusal !== null) return refusal
  }
  return reader.end()
}

/** Reads pieces as the gateway reads a large body; null where they are refused. */
function readInSteps(pieces: readonly Buffer[]): SteppedSource | null {
  const reader = makeJsonReader()
  if (pieces.some((piece) => reader.push(piece) !== null)) return null
  const reading = atOnce(reader.inSteps(['state']))
  return reading.outcome === 'refused' ? null : reading
}

/** What has to be the same however the bytes come. */
function readingOf(reading: JsonReading) {
  return reading.outcome === 'refused' ? 'refused' : { value: asStrict(reading.value), text: reading.text }
}

/** Ways to cut an input: into bytes, in two in the middle, and by itself at places that depend on what stands there. */
function cuts(input: Buffer): readonly (readonly Buffer[])[] {
  const places = [...input.keys()].filter((at) => at > 0)
  const middle = input.length >> 1
  const chosen = places.filter((at) => ((input[at] as number) * 31 + at * 7) % 5 === 0)
  return [places, places.filter((at) => at === middle), chosen].map((at) => piecesOf(input, at))
}

function piecesOf(input: Buffer, places: readonly number[]): readonly Buffer[] {
  const ends = [...places, input.length]
  return ends.map((end, which) => Buffer.from(input.subarray(ends[which - 1] ?? 0, end)))
}
