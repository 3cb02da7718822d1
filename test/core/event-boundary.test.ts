/** Where a comment may be put into a stream of server-sent events without cutting one. */
import { test } from 'tap'
import { eventBoundary } from '../../src/core/wire/event-streams.ts'

const between = (...chunks: string[]) => {
  const boundary = eventBoundary()
  for (const chunk of chunks) boundary.see(Buffer.from(chunk))
  return boundary.between()
}

void test('before the first byte, and after an empty line, whatever its lines end with', (t) => {
  t.ok(between())
  t.ok(between(''), 'an empty chunk is no byte')
  for (const end of ['\n\n', '\r\n\r\n', '\r\r']) {
    t.ok(between(`data: x${end}`), JSON.stringify(end))
    t.ok(between(end), JSON.stringify(end))
    t.ok(between(`data: x${end}data: y${end}`), JSON.stringify(end))
    t.ok(between(...`data: x${end}`), `${JSON.stringify(end)} byte by byte`)
    t.ok(between(`data: x${end}`, ''), 'an empty chunk changes nothing')
  }
  t.end()
})

void test('nowhere within an event', (t) => {
  for (const text of [
    'd',
    'data: x\n',
    'data: x\r\n',
    'data: x\r',
    'data: x\r\n\r',
    'data: x\n\ndata',
    'data: x\r\n\r\nd',
    'data: x\r\rd',
  ]) {
    t.notOk(between(text), JSON.stringify(text))
    t.notOk(between(...text), `${JSON.stringify(text)} byte by byte`)
  }
  t.notOk(between('data: x\n\n', 'e'))
  t.notOk(between('data: x\n', 'e\n'))
  t.end()
})

/** True where a reader who goes by the standard stands before the first byte or behind an event (HTML Standard §9.2.6). */
function standsBetween(bytes: Buffer, most: number): boolean {
  // Greedily: CR LF is one end of a line.
  const parts =
    bytes
      .subarray(0, most)
      .toString('latin1')
      .match(/\r\n|\r|\n|[^\r\n]+/g) ?? []
  const [before = '\n', last = '\n'] = parts.slice(-2)
  return /[\r\n]/.test(before) && /[\r\n]/.test(last)
}

void test('cut at each byte and each two, for each way to end a line, it never says so within an event', (t) => {
  for (const end of ['\n', '\r\n', '\r']) {
    const bytes = Buffer.from(`id: 1${end}data: ü${end}${end}: c${end}${end}data:${end}data: x\\n\\n${end}${end}`)
    for (let first = 0; first <= bytes.length; first += 1) {
      for (let second = first; second <= bytes.length; second += 1) {
        const boundary = eventBoundary()
        boundary.see(bytes.subarray(0, first))
        boundary.see(bytes.subarray(first, second))
        const at = `${JSON.stringify(end)} ${first} ${second}`
        // Between the two of a CR LF that ends an event, nobody knows yet whether the LF comes: no comment is put there.
        const within = end === '\r\n' && bytes[second] === 0x0a && bytes[second - 1] === 0x0d
        if (boundary.between() !== (standsBetween(bytes, second) && !within)) t.fail(at)
      }
    }
    t.pass(JSON.stringify(end))
  }
  t.end()
})
