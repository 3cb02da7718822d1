/** What is written from the text of an object is byte for byte what JSON.stringify writes of what JSON.parse reads. */
import fc from 'fast-check'
import { test } from 'tap'
import { makeJsonReader, type Json, type JsonObject, type JsonReader, type JsonSource } from '../../src/core/json/read.ts'
import { atOnce } from '../../src/core/json/steps.ts'
import { memberTexts, writeAnew } from '../../src/core/json/write.ts'
import { writeInSteps } from '../../src/core/json/write-in-steps.ts'

const parsed = (text: string): JsonObject => JSON.parse(text) as JsonObject
/** A reader of a text that comes in pieces of so many bytes. */
function pushed(text: string, size: number): JsonReader {
  const reader = makeJsonReader()
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size))
  return reader
}
/** What the strict reader makes of it. */
function read(text: string, size = Number.POSITIVE_INFINITY): JsonSource {
  const reading = pushed(text, size).end()
  if (reading.outcome === 'refused') throw new Error(`${reading.reason}: ${text}`)
  return reading
}
/** Written from a reading, and from the text that nothing is known of. */
function anew(text: string): string {
  const source = read(text)
  const written = writeAnew({ ...source.value }, source)
  if (written !== writeAnew({ ...source.value }, { ...source, asWritten: false })) throw new Error(`two ways: ${text}`)
  return written
}

/** In a form that a report can show. */
const escape = (text: string): string => text.replace(/[^\x21-\x7e]/gu, '?')

void test('a text is written as JSON.stringify writes it', (t) => {
  for (const text of [
    '{}',
    ' { } ',
    '{"a":1}',
    '\t{\r\n "a" : [ 1 , { "b" : null } , [ ] , { } ] ,\n"c":true , "d" : false }\n',
    // Numbers that are written otherwise than they were.
    '{"a":-0,"b":1.0,"c":1e3,"d":1E+2,"e":0.1e1,"f":12345678901234567890,"g":1e-7,"h":123456789012345,"i":-1,"j":0}',
    '{"a":[-0,1.50,0.0],"b":0.1,"c":1234567890123456}',
    // Escapes that are, and that are not, as they are written.
    '{"a":"\\n\\t\\"\\\\\\b\\f\\r","b":"\\/","c":"\\u0041\\u000a\\u2028","d":"\\u001F","e":"\\ud83d\\ude00","f":"\\uD800"}',
    '{"a\\u0062":"x","\\"":"\\\\","\\\\":"\\"","c":"\\\\\\""}',
    '{"a":"\\\\","b":"\\"","c":"]}","d":"{[,:","e":""}',
    '{"a":"\u2028\u00e9\u{1f600}\u007f","é":"ü"}',
  ]) {
    t.equal(anew(text), JSON.stringify(parsed(text)), escape(text))
    for (const [key, member] of memberTexts(text)) t.equal(member, JSON.stringify(parsed(text)[key]), escape(key))
  }
  t.end()
})

/** Writes a value with space, escapes and forms of numbers that nobody needs. */
function spelled(value: Json, choose: () => number): string {
  const space = () => ['', '', ' ', '\n', '\t\r '][choose() % 5] as string
  const quoted = (text: string): string => {
    // Whole characters, so that no escape is cut in two.
    const plain = [...text].map((one) => {
      if (choose() % 7 > 0) return JSON.stringify(one).slice(1, -1)
      return [...Array(one.length).keys()].map((at) => `\\u${one.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')
    })
    return `"${plain.join('')}"`
  }
  if (typeof value === 'string') return space() + quoted(value) + space()
  if (typeof value === 'number') {
    const forms = [JSON.stringify(value), value.toExponential(), value.toExponential().replace('e', 'E')]
    return space() + (forms[choose() % 3] as string) + space()
  }
  if (typeof value !== 'object' || value === null) return space() + JSON.stringify(value) + space()
  if (Array.isArray(value)) {
    return `${space()}[${space()}${value.map((one: Json) => spelled(one, choose)).join(',')}]${space()}`
  }
  const members = Object.entries(value).map(([key, one]) => `${space()}${quoted(key)}${space()}:${spelled(one, choose)}`)
  return `${space()}{${space()}${members.join(',')}}${space()}`
}

/** Any value that a text may have, with some of which many are written at once. */
function anyTree(): fc.Arbitrary<Json> {
  const name = fc.string().filter((one) => one !== '__proto__')
  const { tree } = fc.letrec<{ tree: Json }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom('"', '\\', '\n', '/', 'a', '\u2028', '\ud800', '{', ',', ':') }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
      fc.constantFrom(null, true, false, -0),
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(name, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
    ),
  }))
  return tree
}

void test('so is any text of any value', (t) => {
  const tree = anyTree()
  // A key that is a whole number has its place among the others by itself: the text keeps its own.
  const key = fc.string({ unit: 'binary' }).filter((name) => !/^\d+$/.test(name) && name !== '__proto__')
  fc.assert(
    fc.property(fc.dictionary(key, tree, { noNullPrototype: true }), fc.infiniteStream(fc.nat(1000)), (value, stream) => {
      const choose = (): number => stream.next().value as number
      const text = spelled(value, choose)
      const pieces = read(text, 1 + (choose() % 40))
      t.equal(writeAnew({ ...pieces.value }, pieces), anew(text))
      t.same(JSON.parse(anew(text)), JSON.parse(text))
      const hasNumbersForKeys = /"\d+"\s*:/.test(JSON.stringify(JSON.parse(text)))
      if (!hasNumbersForKeys) t.equal(anew(text), JSON.stringify(JSON.parse(text)))
    }),
    { numRuns: 500 },
  )
  t.end()
})

void test('a text that comes in pieces, cut anywhere, is no more as it would be written than the whole of it', (t) => {
  for (const text of [
    '{"a":12345678901234567890,"b":-1234567890123456}',
    '{"a":1.0,"b":1e3,"c":-0,"d":10E1}',
    '{"a":"\\u000a\\/","b":"\\\\"}',
    '{"a": 1}',
    '{"a":1,"b":[true,null,false],"c":"\\n\\"é"}',
  ]) {
    const expected = JSON.stringify(parsed(text))
    for (let size = 1; size <= text.length; size += 1) {
      const source = read(text, size)
      t.equal(writeAnew({ ...source.value }, source), expected, `${text} by ${size}`)
    }
    t.equal(read(text).asWritten, text === expected, text)
  }
  t.end()
})

void test('what is not the text’s own is written from its value, and what does not pass is not written', (t) => {
  const text = '{"messages": ["a" , 1.0],"forwardedProps":{"secret":1},"state":{ "b":2 },"threadId":"t"}'
  const value = parsed(text)
  const body: JsonObject = { messages: value['messages'] ?? null, forwardedProps: {}, threadId: 't', added: [1.5] }
  t.equal(writeAnew(body, { ...read(text), value }), '{"messages":["a",1],"forwardedProps":{},"threadId":"t","added":[1.5]}')
  t.equal(writeAnew({}, { ...read(text), value }), '{}')
  t.end()
})

void test('where nothing is changed it is the text itself, and where anything is it is not', (t) => {
  const same = '{"messages":["a",1,{"b":"\\n"}],"state":{},"threadId":"t"}'
  t.equal(anew(same), same)
  const value = parsed(same)
  t.equal(writeAnew({ ...value }, { value, text: same, asWritten: true }), same)
  t.equal(
    writeAnew({ ...value, state: { b: 1 } }, { value, text: same, asWritten: true }),
    '{"messages":["a",1,{"b":"\\n"}],"state":{"b":1},"threadId":"t"}',
  )
  const less = { messages: value['messages'] ?? null, threadId: 't' }
  t.equal(writeAnew(less, { value, text: same, asWritten: true }), '{"messages":["a",1,{"b":"\\n"}],"threadId":"t"}')
  for (const other of [
    ` ${same}`,
    `${same} `,
    same.replace('1', '1.0'),
    same.replace('\\n', '\\u000a'),
    same.replace(':[', ': ['),
  ]) {
    t.equal(read(other).asWritten, false, other)
    t.equal(anew(other), same)
  }
  t.equal(anew('{"a\\u0062":1}'), '{"ab":1}', 'keys count as well')
  t.end()
})

void test('an escape counts as what it is, wherever the text is cut', (t) => {
  for (const text of [
    '{"a":"x\\ny","b":"\\\\n\\""}',
    '{"a":"\\\\u0041\\\\/"}',
    '{"a":"\\/"}',
    '{"a":"\\\\\\/b"}',
    '{"a":"é\\u00e9"}',
    '{"a":"\\\\","b":"\\u000a"}',
  ]) {
    const expected = JSON.stringify(parsed(text))
    for (let size = 1; size <= Buffer.byteLength(text); size += 1) {
      t.equal(read(text, size).asWritten, text === expected, `${text} by ${size}`)
      const reader = pushed(text, size)
      const source = atOnce(reader.inSteps([]))
      if (source.outcome === 'refused') return t.fail(source.reason)
      t.equal(Buffer.concat(atOnce(writeInSteps(source.value, source))).toString(), expected, `${text} by ${size}, in steps`)
    }
  }
  t.end()
})

/** The pieces of a value of which no text is known, and the steps that writing took. */
function inSteps(value: JsonObject): { readonly text: string; readonly steps: number } {
  const writing = writeInSteps(value, { value: {}, texts: new Map() })
  for (let steps = 1; ; steps += 1) {
    const { done, value: pieces } = writing.next()
    if (done === true) return { text: Buffer.concat(pieces).toString(), steps }
  }
}

void test('a value of which no text is known is written as JSON.stringify writes it', (t) => {
  const repeated = fc.tuple(anyTree(), fc.integer({ min: 1, max: 200 })).map(([one, count]) => Array<Json>(count).fill(one))
  const list = fc.oneof(fc.array(anyTree(), { maxLength: 100 }), repeated)
  fc.assert(
    fc.property(fc.array(list, { maxLength: 4 }), (lists) => {
      const value = { lists: lists.map((items) => ({ items })) }
      t.equal(inSteps(value).text, JSON.stringify(value))
    }),
    { numRuns: 300 },
  )
  t.end()
})

void test('a step writes a bounded part of a value, whatever is written at once', (t) => {
  const wide = (count: number): JsonObject => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]))
  for (const [item, count, least] of [
    [{}, 1_000_000, 15],
    [1, 1_000_000, 15],
    ['x'.repeat(1000), 10_000, 250],
    [{ a: 'x'.repeat(1000) }, 10_000, 250],
    [{ ['k'.repeat(1000)]: 1 }, 10_000, 250],
    [wide(10), 100_000, 100],
    [wide(1000), 1000, 500],
    [[[]], 100_000, 100],
  ] as const) {
    const { text, steps } = inSteps({ list: Array<Json>(count).fill(item) })
    t.ok(steps >= least, `${steps} steps for ${count} of ${JSON.stringify(item).slice(0, 30)}`)
    t.equal(text.length, count * (JSON.stringify(item).length + 1) + '{"list":[]}'.length - 1)
  }
  t.end()
})

void test('a wide object in a list is looked at once before it is written', (t) => {
  let lists = 0
  const wide = new Proxy(Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`k${at}`, at])), {
    ownKeys(target) {
      lists += 1
      return Reflect.ownKeys(target)
    },
  })
  inSteps({ list: [wide] })
  t.equal(lists, 2, 'to see that it is wide, and to write it')
  t.end()
})
