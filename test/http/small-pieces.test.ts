/** Small pieces of a body are put together: what is kept of it stays in proportion to its bytes, however it was cut. */
import { test } from 'tap'
import { refuse } from '../../src/core/reasons.ts'
import { inPieces } from '../../src/http/small-pieces.ts'

/** Sends pieces of these lengths, each in memory of its own as from a connection. */
function sent(lengths: readonly number[]) {
  const text = Buffer.alloc(
    lengths.reduce((sum, length) => sum + length, 0),
    'no part of it is like the next',
  )
  const got: Buffer[] = []
  const pieces = inPieces((bytes) => {
    got.push(bytes)
    return null
  })
  let at = 0
  for (const length of lengths) {
    const piece = Buffer.allocUnsafeSlow(length)
    text.copy(piece, 0, at)
    pieces.take(piece)
    at += length
  }
  pieces.end()
  return { text, got, pieces }
}

const repeated = (count: number, ...lengths: readonly number[]) => Array.from({ length: count }, () => lengths).flat()

void test('a body comes out as it went in, however it is cut', (t) => {
  for (const lengths of [
    [],
    [0],
    [1],
    [1, 1],
    [1023],
    [1024],
    [5000],
    [1, 5000],
    [1, 1, 5000, 1, 1],
    [1000, 1000, 1000, 1000, 1000],
    repeated(9, 1023),
    [0, 0, 1, 0, 1, 0],
    [300, 16_000, 200],
    repeated(10_000, 1),
    repeated(1000, 1, 1, 1024),
    repeated(500, 1, 7, 300, 2000, 64_000),
  ]) {
    const { text, got, pieces } = sent(lengths)
    t.ok(Buffer.concat(got).equals(text), `${lengths.length} pieces`)
    const before = got.length
    pieces.end()
    t.equal(got.length, before, 'nothing comes twice')
  }
  t.end()
})

void test('what is kept of it is not much more than its bytes', (t) => {
  for (const lengths of [
    repeated(100_000, 1),
    repeated(50_000, 1, 2, 1),
    repeated(1000, 1, 1024),
    repeated(1000, 1, 1, 1024),
    repeated(1000, 1, 1, 1, 1000, 1000, 1, 1024),
    repeated(100, 1023),
    repeated(100, 1023, 1),
  ]) {
    const { text, got } = sent(lengths)
    const memory = [...new Set(got.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0)
    // Small copies share memory of that size.
    t.ok(
      memory < 1.5 * text.length + 2 * Buffer.poolSize,
      `${memory} bytes for ${text.length} of ${lengths.slice(0, 7).join()} …`,
    )
    t.ok(got.length < text.length / 500, `in ${got.length} pieces`)
  }
  t.end()
})

void test('what comes as it is worth keeping is not copied, nor is a body of one piece', (t) => {
  for (const lengths of [[16_000], [30], [300, 16_000, 200]]) {
    const pieces = lengths.map((length) => Buffer.alloc(length, 'x'))
    const got: Buffer[] = []
    const { take, end } = inPieces((bytes) => {
      got.push(bytes)
      return null
    })
    pieces.forEach(take)
    end()
    t.ok(got.length === pieces.length && got.every((piece, at) => piece === pieces[at]))
  }
  t.end()
})

void test('a refusal is told at once, of what waited before as well', (t) => {
  const refusal = refuse('body-not-utf8')
  for (const refused of [0, 1]) {
    let count = 0
    const { take, end } = inPieces(() => (count++ === refused ? refusal : null))
    t.equal(take(Buffer.from('waits')), null)
    t.equal(take(Buffer.alloc(2000)), refusal)
    t.equal(count, refused + 1, 'nothing is handed on behind it')
    t.equal(end(), null)
  }
  const { take, end } = inPieces(() => refusal)
  t.equal(take(Buffer.from('the last')), null)
  t.equal(end(), refusal)
  t.end()
})
