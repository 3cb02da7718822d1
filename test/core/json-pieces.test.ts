/** A long list is read in pieces, and comes to what JSON.parse makes of it. */
import fc from 'fast-check'
import { test } from 'tap'
import type { Json } from '../../src/core/json/read.ts'
import { parsedInPieces, parsedInSteps } from '../../src/core/json/pieces.ts'
import { atOnce } from '../../src/core/json/steps.ts'

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** What is read of a text, and in how many steps. */
function read(text: string | Uint8Array, piece?: number): { readonly value: Json | undefined; readonly steps: number } {
  const reading = parsedInPieces(typeof text === 'string' ? bytesOf(text) : text, 'threads', piece)
  const items: Json[] = []
  for (let steps = 0; ; steps += 1) {
    const { done, value } = reading.next()
    if (done !== true) {
      items.push(...value)
      continue
    }
    if (!value.goesOn) return { value: value.value, steps }
    const { threads, ...others } = value.value as { readonly threads: readonly Json[] }
    return { value: { threads: [...items, ...threads], ...others }, steps }
  }
}

/** What JSON.parse makes of it. */
function whole(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

const items = (count: number): Json[] => Array.from({ length: count }, (_, at) => ({ id: `t${at}`, name: `Thread ${at}` }))
const LONG = JSON.stringify({ threads: items(10_000), nextCursor: 'c' })

void test('a long list is read in pieces of 64 KiB or so, a short one at once', (t) => {
  const { value, steps } = read(LONG)
  t.strictSame(value, whole(LONG))
  t.ok(steps >= LONG.length / (64 * 1024) - 3, `${steps} steps`)
  t.equal(read(JSON.stringify({ threads: items(100) })).steps, 0)
  t.end()
})

void test('a list of another name is read in steps, too', (t) => {
  const messages = JSON.stringify({ messages: items(10_000), more: 1 })
  const reading = parsedInSteps(bytesOf(messages), 'messages')
  let steps = 0
  let last = reading.next()
  for (; last.done !== true; last = reading.next()) steps += 1
  t.strictSame(last.value, whole(messages))
  t.ok(steps >= messages.length / (64 * 1024) - 3, `${steps} steps`)
  for (const text of [LONG, '{"more":1}', '[]', 'x']) t.strictSame(atOnce(parsedInSteps(bytesOf(text), 'messages')), whole(text))
  t.end()
})

void test('whatever the text holds, it is what JSON.parse makes of it', (t) => {
  const texts = [
    '{"threads":[]}',
    ' {\n "threads" : [ {"id":"a"} ,\r\n\t{"id":"b"}\n,{"id":"c"} ] , "nextCursor" : null } ',
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"}],"joinCode":"j"}',
    '{"joinCode":"j","threads":[{"id":"a"},{"id":"b"},{"id":"c"}]}',
    // No item behind a comma, or before it, and no end of an item that can be guessed.
    '{"threads":[{"id":"},{},{"},5,6,7,8],"x":"............................................................"}',
    '{"threads":[{"id":"},{},{"},5,6,7,],"x":"............................................................"}',
    '{"threads":[{"id":"},{},{"},{"id":"b"},],"x":"............................................................"}',
    '{"threads":[{"id":"},{},{"},            ,{"id":"b"}],"x":"............................................................"}',
    '{"threads":[            ,{"id":"},{},{"},{"id":"b"},{"id":"c"}],"x":"............................................................"}',
    // What looks like the end of an item, within an item.
    '{"threads":[{"id":"},{"},{"id":"a","b":[{},{},{"c":[{},{}]}]},{"id":"\\"},{\\""},{"id":"c"}]}',
    '{"threads":[{"id":"},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{"}]}',
    // And behind the list.
    '{"threads":[{"id":"a"},{"id":"b"}],"x":[{"id":"c"},{"id":"d"}],"y":{"z":[{},{},{},{}]}}',
    '{"threads":[{"id":"a"},{"id":"b"}],"nextCursor":"},{},{},{"}',
    '{"threads":[5,{"id":"b"},[{},{}],{"id":"c"},null,{"id":"d"}]}',
    // Members of one name.
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}],"threads":[{"id":"e"}]}',
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}],"thread\\u0073":[{"id":"e"}]}',
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}],"threads":5}',
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}],"__proto__":{"x":1},"7":1}',
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}],"the rest of the list":[{"id":"e"}]}',
    '{"threads":{"a":{"id":"a"},"b":{"id":"b"}}}',
    '[{"threads":[{},{}]},{"threads":[{},{}]}]',
    // Other than ASCII, also where a piece is cut.
    `{"threads":[${Array.from({ length: 40 }, (_, at) => `{"id":"${'é€😀'.repeat(at)}"}`).join(',')}]}`,
    // No JSON.
    '',
    '{"threads":[',
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"}',
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"}]',
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"},]}',
    '{"threads":[{"id":"a"},,{"id":"b"},{"id":"c"}]}',
    '{"threads":[{"id":"a"}{"id":"b"},{"id":"c"},{"id":"d"}]}',
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"}]}]}',
    '{"threads":[{"id":"a"},{"id":"b"},{"id":"c"}]},{"id":"d"}',
    '{"threads":[{"id":"a"},{"id":"b"]},{"id":"c"}}',
    '\u{feff}{"threads":[{"id":"a"},{"id":"b"},{"id":"c"}]}',
  ]
  for (const text of texts)
    for (const piece of [1, 2, 3, 5, 8, 13, 40]) t.strictSame(read(text, piece).value, whole(text), `${text} ${piece}`)
  t.end()
})

void test('and so for any list, however it is written', (t) => {
  const item = fc.oneof(
    fc.record({ id: fc.string({ unit: 'grapheme' }), name: fc.constantFrom('},{', '"},{"', ']', '\\', '{"id":"x"},{"id":"y"}') }),
    fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }),
    fc.jsonValue(),
  )
  const page = fc
    .record({ threads: fc.array(item, { maxLength: 30 }) })
    .chain((list) => fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 2 }).map((others) => ({ ...list, ...others })))
  fc.assert(
    fc.property(page, fc.integer({ min: 1, max: 60 }), fc.constantFrom(undefined, 1, '\t'), (value, piece, space) => {
      const text = JSON.stringify(value, null, space)
      t.strictSame(read(text, piece).value, JSON.parse(text))
    }),
    { numRuns: 300 },
  )
  t.end()
})

void test('a text of which a character was taken away, doubled or changed is read as JSON.parse reads it', (t) => {
  const text = JSON.stringify({
    threads: [{ id: '},{' }, { a: [{}, {}], b: '\\"},{"' }, 5, { c: { d: [] } }, {}],
    nextCursor: '},{',
  })
  const changes = ['', ',', '{', '}', '[', ']', '"', '\\', ' ', '1']
  for (let at = 0; at < text.length; at += 1)
    for (const change of changes)
      for (const kept of [0, 1]) {
        const changed = text.slice(0, at + kept) + change + text.slice(at + 1)
        for (const piece of [1, 4, 9]) {
          const { value } = read(changed, piece)
          if (JSON.stringify(value) !== JSON.stringify(whole(changed))) t.strictSame(value, whole(changed), `${changed} ${piece}`)
        }
      }
  t.end()
})

void test('bytes that are no UTF-8 are read as they would be at once', (t) => {
  const bytes = Buffer.from('{"threads":[{"id":"a\xff"},{"id":"\xc3"},{"id":"c"},{"id":"d"}]}', 'latin1')
  t.strictSame(read(bytes, 4).value, whole(bytes.toString('utf8')))
  t.end()
})

void test('an item with a long name that looks like ends of items is read at once', (t) => {
  const name = '},{'.repeat(200_000)
  const text = JSON.stringify({ threads: [...items(50), { id: 'x', name }, ...items(50)] })
  const { value, steps } = read(text, 64)
  t.strictSame(value, whole(text))
  t.ok(steps < 100, `${steps} steps`)
  t.end()
})

void test('names that look like ends of items everywhere keep nobody from their turn', (t) => {
  for (const name of ['},{'.repeat(60), 'x'.repeat(200) + '},{', '\\\\"},{\\"'.repeat(30), '[{'.repeat(60), '}]'.repeat(60)]) {
    const text = JSON.stringify({ threads: Array.from({ length: 5000 }, (_, at) => ({ id: `t${at}`, name })), nextCursor: 'c' })
    const { value, steps } = read(text)
    t.strictSame(value, whole(text))
    t.ok(steps >= text.length / (64 * 1024) - 3, `${steps} steps of ${text.length} bytes`)
  }
  t.end()
})
