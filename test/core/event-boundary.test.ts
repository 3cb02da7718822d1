/** Where a comment may be put into a stream of server-sent events without cutting one. */
import { test } from 'tap'
import { eventBoundary } from '../../src/core/event-boundary.ts'

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
