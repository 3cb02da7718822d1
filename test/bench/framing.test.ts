/** Where messages begin and end, for what sends load and what answers it. */
import { test } from 'tap'
import { makeReader } from '../../testing/bench/requests/framing.ts'

const MESSAGES = [
  'GET / HTTP/1.1\r\nhost: a\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nC;x=y\r\n wide\r\nworld\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
]

const told = (pieces: readonly string[]): string => {
  const heard: string[] = []
  let body = ''
  const read = makeReader({
    head(text) {
      heard.push(`head ${text.slice(0, text.indexOf('\r\n'))}`)
      body = ''
    },
    body: (bytes) => (body += bytes.toString('latin1')),
    end: () => heard.push(body, 'end'),
  })
  // What was read is written over, as a buffer is that serves all connections.
  for (const piece of pieces) {
    const bytes = Buffer.from(piece)
    read(bytes)
    bytes.fill('?')
  }
  return heard.join('|')
}

const EXPECTED =
  'head GET / HTTP/1.1||end|head HTTP/1.1 200 OK|hello|end|head HTTP/1.1 200 OK|hello\r\n wide\r\nworld\r\n|end|' +
  'head HTTP/1.1 200 OK||end'

void test('messages are told apart, however they come', (t) => {
  const all = MESSAGES.join('')
  t.equal(told([all]), EXPECTED)
  t.equal(told(MESSAGES), EXPECTED)
  t.equal(told([...all]), EXPECTED, 'byte by byte')
  for (let at = 1; at < all.length; at += 1) t.equal(told([all.slice(0, at), all.slice(at)]), EXPECTED, `in two at ${at}`)
  t.end()
})
