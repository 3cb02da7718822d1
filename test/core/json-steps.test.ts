/** What is read in steps is what JSON.parse reads, wherever the text is cut, and its members stand as JSON.stringify writes them. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { readInSteps, type SteppedReading } from '../../src/core/json/read-in-steps.ts'
import type { Json, JsonObject } from '../../src/core/json/read.ts'
import type { MemberText, MemberTexts } from '../../src/core/json/member-texts.ts'
import { atOnce } from '../../src/core/json/steps.ts'
import { SLICE } from '../../src/core/json/text-slices.ts'
import type { Refusal } from '../../src/core/reasons.ts'
import { runsOf } from '../../testing/support/sample.ts'

/** Reads a text that is cut into slices at these places: each piece is filled up with space to the size of a slice. */
function read(text: string, opened: readonly string[] = []): SteppedReading | Refusal {
  return atOnce(readInSteps([text], opened))
}

/** Puts enough in front of a text that the end of a slice lies at a place in it. */
function cutAt(text: string, at: number): string {
  return ' '.repeat(SLICE - at) + text
}

const STRINGS = /("(?:[^"\\]|\\.)*")(\s*:)?/g

/**
 * What is read, found by JSON.parse and by counting; undefined for what is refused. JSON.parse sees each key as its digits: it may
 * read one with an escape as another that it has seen before (nodejs/node#63785).
 */
function expected(text: string): JsonObject | undefined {
  let members = 0
  let kept = 0
  const faults: string[] = []
  const meant = (one: unknown): Json => {
    if (typeof one === 'number' && !Number.isFinite(one)) faults.push('number')
    if (typeof one !== 'object' || one === null) return one as Json
    if (Array.isArray(one)) return one.map(meant)
    const entries = Object.entries(one).map(([digits, part]): readonly [string, Json] => {
      const key = Buffer.from(digits.slice(1), 'hex').toString('utf16le')
      if (key === '__proto__' || !key.isWellFormed()) faults.push('key')
      kept += 1
      return [key, meant(part)]
    })
    return Object.fromEntries(entries)
  }
  try {
    const inDigits = text.replaceAll(STRINGS, (_, string: string, colon: string | undefined) => {
      const value = JSON.parse(string) as string
      if (colon === undefined) return string
      members += 1
      // No whole number, which would have its place among the others by itself.
      return `"x${Buffer.from(value, 'utf16le').toString('hex')}"${colon}`
    })
    const value = meant(JSON.parse(inDigits))
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject && faults.length === 0 && kept === members ? (value as JsonObject) : undefined
  } catch {
    return undefined
  }
}

/** The whole text of a member. */
function textOf(text: MemberText | undefined): string {
  if (text === undefined) return 'nothing'
  if (text instanceof Map) return written(text as MemberTexts)
  return (text as readonly string[]).join('')
}

function written(texts: MemberTexts): string {
  return `{${[...texts].map(([key, text]) => `${JSON.stringify(key)}:${textOf(text)}`).join(',')}}`
}

/** Holds one text against JSON.parse, cut at a place. */
function hold(text: string, at: number, opened: readonly string[]): void {
  const meant = expected(text)
  const result = read(cutAt(text, at), opened)
  if (meant === undefined) {
    assert.equal(result.outcome, 'refused', text)
    return
  }
  if (result.outcome === 'refused') assert.fail(`${result.reason}: ${text} at ${at}`)
  assert.deepEqual(result.value, meant)
  assert.deepEqual(JSON.parse(written(result.texts)), JSON.parse(JSON.stringify(meant)))
  // A key that is a whole number has its place among the others by itself: the text keeps its own.
  if (!/"\d+":/.test(JSON.stringify(meant))) assert.equal(written(result.texts), JSON.stringify(meant))
}

const OPENED = ['a', 'b', 'a/b', 'a/b/a']

// oxfmt-ignore
const TOKENS = [
  '{', '}', '[', ']', ':', ',', ' ', '\n', 'true', 'false', 'null', 'tru', 'nul', '-', '0', '-0', '1', '12', '01', '1.0', '1.', '.5', '1e3', '1E+2',
  '1e', '-1.5e-7', '1e999', '12345678901234567890', '"a"', '"b"', '"\\u0061"', '"é"', '"\\u00e9"', '"😀"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00"',
  '"\\n\\t"', '"\\/"', '"\\\\"', '"\\\\u0061"', '"\\x"', '"\\u12"', '"\n"', '"\u2028"', '"', '\\', '"__proto__"', '"1"', '"999"', '"{[,:]}"', '\ufeff', '\u0000',
]

void test('any text is read as JSON.parse reads it, wherever a slice ends', (t) => {
  const text = fc.oneof(
    fc.array(fc.constantFrom(...TOKENS), { maxLength: 12 }).map((tokens) => tokens.join('')),
    fc.array(fc.constantFrom(...TOKENS), { maxLength: 12 }).map((tokens) => `{"a":${tokens.join('')}}`),
  )
  const tree = fc.letrec<{ tree: string }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(...TOKENS.slice(8)),
      fc.array(tie('tree'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
      fc
        .array(fc.tuple(fc.constantFrom('"a"', '"b"', '"c"', '"\\u0061"', '"é"', '"999"', '"\\\\"'), tie('tree')), {
          maxLength: 3,
        })
        .map((members) => `{${members.map(([key, part]) => `${key} :${part}`).join(' ,')}}`),
    ),
  })).tree
  fc.assert(
    fc.property(fc.oneof(text, tree, tree), fc.nat(), (one, at) => hold(one, at % (one.length + 1), OPENED)),
    { numRuns: runsOf(5000, 5) },
  )
  t.end()
})

void test('a long text is what JSON.parse makes of it', (t) => {
  const tree = (depth: number, seed: number): Json =>
    depth === 0
      ? [seed, 'text '.repeat(seed % 40), null, seed / 7, '😀\n"\\'.repeat(seed % 9)]
      : { [`k${seed}`]: tree(depth - 1, seed + 1), list: Array.from({ length: 5 }, (_, at) => tree(depth - 1, seed * 3 + at)) }
  const value = { a: { b: { a: tree(4, 1), x: 'y'.repeat(200_000) } }, b: tree(4, 2), c: '\\\u0001é😀'.repeat(50_000) }
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, 3), JSON.stringify(value).replaceAll('é', '\\u00e9')]) {
    hold(text, 0, OPENED)
    hold(text.replaceAll('😀', '\\ud83d\\uDE00'), 5, [])
  }
  t.end()
})

void test('it takes many steps, and each of them a bounded part of the text', (t) => {
  for (const [text, least] of [
    [`{"a":"${'x'.repeat(2_000_000)}"}`, 2_000_000 / (2 * SLICE)],
    [`{"a":"${'\\n'.repeat(1_000_000)}"}`, 2_000_000 / (2 * SLICE)],
    [`{"a":[${'1,'.repeat(100_000)}1]}`, 100],
    [`{${Array.from({ length: 50_000 }, (_, at) => `"\\u006b${at}":{}`).join()}}`, 100],
  ] as const) {
    const steps = [...readInSteps([text])].length
    t.ok(steps >= least, `${steps} steps for ${text.slice(0, 20)}`)
  }
  t.end()
})
