/** An upstream that breaks off or talks nonsense: before the head a 502, after it the caller's connection breaks too. */
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gateBefore } from '../../testing/support/gated.ts'
import { head, openRaw } from '../../testing/support/raw.ts'
import { startRawUpstream } from '../../testing/support/raw-upstream.ts'

const STREAM = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'

void test('no head, no answer: 502, however the connection ends', async (t) => {
  const ways = [
    { code: 'upstream-unreachable', end: 'reset' },
    { code: 'upstream-unreachable', end: 'closed' },
    { code: 'upstream-unreachable', end: 'half a head' },
  ]
  const upstream = await startRawUpstream((socket, _request, before) => {
    if (before === 0) socket.resetAndDestroy()
    else if (before === 1) socket.end()
    else socket.end('HTTP/1.1 200 OK\r\ncontent-ty')
  })
  t.teardown(() => upstream.close())
  const { base, alice } = await gateBefore(t, upstream.url)
  for (const { code, end } of ways) {
    const answer = await call(`${base}/info`, { token: alice })
    t.equal(answer.status, 502, end)
    t.equal(codeOf(answer), code, end)
  }
  t.equal(upstream.requests.length, ways.length)
})

void test('an answer that is no HTTP is 502 upstream-unusable', async (t) => {
  const nonsense = [
    'nonsense\r\n\r\n',
    'SSH-2.0-OpenSSH_9.6\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\nab',
    'HTTP/1.1 2x0 OK\r\n\r\n',
    `HTTP/1.1 200 OK\r\nx-pad: ${'p'.repeat(100_000)}\r\n\r\n`,
  ]
  const upstream = await startRawUpstream((socket, _request, before) => void socket.write(nonsense[before]!))
  t.teardown(() => upstream.close())
  const { base, alice } = await gateBefore(t, upstream.url)
  for (const text of nonsense) {
    const answer = await call(`${base}/info`, { token: alice })
    t.equal(answer.status, 502, text.slice(0, 60))
    t.equal(codeOf(answer), 'upstream-unusable', text.slice(0, 60))
  }
  t.equal(upstream.requests.length, nonsense.length)
})

void test('a switch of protocols that nobody asked for is no answer', async (t) => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
  })
  t.teardown(() => upstream.close())
  const { base, alice } = await gateBefore(t, upstream.url)
  const answer = await call(`${base}/info`, { token: alice, headers: { 'sec-websocket-version': '13' } })
  t.equal(answer.status, 502)
  t.equal(upstream.requests.length, 1)
})

void test('interim answers come before the one that counts and stay here', async (t) => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n')
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}')
  })
  t.teardown(() => upstream.close())
  const { base, alice } = await gateBefore(t, upstream.url)
  const answer = await call(`${base}/info`, { token: alice })
  t.equal(answer.status, 200)
  t.equal(answer.text, '{}')
  t.notOk(answer.headers.has('link'))
})

void test('a stream that breaks off upstream breaks off here: the caller sees no proper end', async (t) => {
  const ways = ['reset', 'closed', 'a chunk that is none'] as const
  const ends = ways.flatMap((way) => [`${way}, kept alive`, `${way}, connection: close`])
  let proceed = (): void => {}
  const upstream = await startRawUpstream((socket, _request, before) => {
    const end = ends[before]!
    const stream = end.endsWith('close') ? STREAM.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n') : STREAM
    socket.write(`${stream}a\r\ndata: {}\n\n\r\n`)
    proceed = () => {
      if (end.startsWith('reset')) socket.resetAndDestroy()
      else if (end.startsWith('closed')) socket.end()
      else socket.write('zz\r\n')
    }
  })
  t.teardown(() => upstream.close())
  const { gateway, alice } = await gateBefore(t, upstream.url)
  const body = JSON.stringify(runInput('t1'))
  for (const end of ends) {
    const connection = await openRaw(gateway.url)
    connection.write(
      head(
        'POST /api/copilotkit/agent/default/run HTTP/1.1',
        'Host: a',
        `Authorization: Bearer ${alice}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
      ) + body,
    )
    await connection.until('data: {}')
    proceed()
    const text = await connection.ended()
    t.match(text, /^HTTP\/1\.1 200 /, end)
    t.notMatch(text, '\r\n0\r\n', `${end}: no last chunk`)
  }
})

void test('a plain answer that breaks off breaks off here', async (t) => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"a":')
    setImmediate(() => socket.end())
  })
  t.teardown(() => upstream.close())
  const { base, alice } = await gateBefore(t, upstream.url)
  await t.rejects(call(`${base}/info`, { token: alice }))
})

void test('an answer that turns into nonsense in the packet of its head ends too', async (t) => {
  const plain = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'
  const upstream = await startRawUpstream(
    (socket, _request, before) => void socket.write(before === 0 ? `${STREAM}zz\r\n` : plain),
  )
  t.teardown(() => upstream.close())
  const { gateway, alice } = await gateBefore(t, upstream.url)
  for (const kind of ['stream', 'plain']) {
    const connection = await openRaw(gateway.url)
    connection.write(head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', `Authorization: Bearer ${alice}`))
    // Either answer will do: a 502, or a connection that breaks. Waiting for ever will not.
    t.notMatch(await connection.until('upstream-unusable'), '\r\n0\r\n', kind)
    connection.destroy()
  }
})
