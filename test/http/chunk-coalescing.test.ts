/** Small pieces of a body are put together: what is kept of it stays in proportion to its bytes, however it was cut. */
import { test } from 'tap'
import { refuse } from '../../src/core/reasons.ts'
import { inPieces } from '../../src/http/pipeline/request-body.ts'

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
    [...repeated(64, 1), 0],
    [...repeated(64, 1), 1],
    [...repeated(64, 1), 2, 5000],
    [...repeated(64, 1), 1, 2, 5000, 3, 1024, 4],
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
    // The first ones come as they are, and small copies share memory of some size.
    t.ok(memory < 1.5 * text.length + 100 * 1024, `${memory} bytes for ${text.length} of ${lengths.slice(0, 7).join()} …`)
    t.ok(got.length < 64 + text.length / 500, `in ${got.length} pieces`)
  }
  t.end()
})

void test('what comes as it is worth keeping is not copied, nor are the first small ones', (t) => {
  for (const lengths of [[16_000], [30], [300, 16_000, 200], repeated(64, 10)]) {
    const pieces = lengths.map((length) => Buffer.alloc(length, 'x'))
    const got: Buffer[] = []
    const { take, end } = inPieces((bytes) => {
      got.push(bytes)
      return null
    })
    pieces.forEach((piece, at) => {
      take(piece)
      t.equal(got.length, at + 1, 'at once')
    })
    end()
    t.ok(got.length === pieces.length && got.every((piece, at) => piece === pieces[at]))
  }
  t.end()
})

void test('a refusal is told at once, of what waited before as well', (t) => {
  const refusal = refuse('body-not-utf8')
  // Of 64 small ones that come as they are, one that waits, and a large one.
  for (const [refused, told] of [
    [0, ['1']],
    [63, ['64']],
    [64, ['the large one']],
    [65, ['the large one']],
    [66, []],
  ] as const) {
    let count = 0
    const { take, end } = inPieces(() => (count++ === refused ? refusal : null))
    const refusing: string[] = []
    const send = (name: string, length: number): void => {
      if (take(Buffer.alloc(length)) !== null) refusing.push(name)
    }
    repeated(64, 10).forEach((length, at) => send(String(at + 1), length))
    send('the one that waits', 10)
    send('the large one', 2000)
    t.same(refusing, told)
    t.equal(count, refused === 64 ? 65 : 66, 'behind one that waited and was refused nothing is handed on')
    t.equal(end(), null)
  }
  const { take, end } = inPieces((bytes) => (bytes.toString() === 'the last' ? refusal : null))
  repeated(64, 1).forEach((length) => take(Buffer.alloc(length)))
  t.equal(take(Buffer.from('the last')), null)
  t.equal(end(), refusal)
  t.end()
})
