/** While the upstream is silent a comment says that the stream lives: between events only, and never in binary streams. */
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { openRun, unchunked } from '../../testing/support/event-stream.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { deferred, until } from '../../testing/support/until.ts'
import type { RawConnection } from '../../testing/support/raw.ts'

const COMMENT = ': keep-alive\n\n'

interface Open {
  readonly gate: GatedUpstream
  readonly connection: RawConnection
  readonly response: ServerResponse
  readonly body: () => string
}

/** A stream of this type that is open and silent. */
async function silent(t: Parameters<typeof gated>[0], headers: Record<string, string>, keepAlive = '20ms'): Promise<Open> {
  const started = deferred<ServerResponse>()
  const gate = await gated(
    t,
    (request, response) => {
      if (request.target.endsWith('/run')) {
        response.writeHead(200, headers).flushHeaders()
        started.resolve(response)
      } else response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    },
    { config: { streams: { keepAlive } } },
  )
  const connection = await openRun(gate)
  t.teardown(() => connection.destroy())
  return { gate, connection, response: await started.promise, body: () => unchunked(connection.text()) }
}

/** Waits until a silent text stream beside this one has had some comments: whoever gets them would have had them too. */
async function whileOthersGetComments({ gate }: Open): Promise<void> {
  const answer = await fetch(`${gate.base}/info`, { headers: { authorization: `Bearer ${gate.alice}` } })
  const reader = answer.body!.getReader()
  for (let text = ''; text.split(COMMENT).length <= 5;) text += Buffer.from((await reader.read()).value).toString()
  await reader.cancel()
}

const SSE = { 'content-type': 'text/event-stream' }

void test('a silent stream gets comments before its first event and between events', async (t) => {
  const { response, connection, body } = await silent(t, SSE)
  await connection.until(COMMENT)
  response.write('data: 1\n\n')
  await until(() => body().includes('data: 1\n\n') && body().endsWith(COMMENT))
  response.write('data: 2\r\n\r\n')
  await until(() => body().includes('data: 2\r\n\r\n') && body().endsWith(COMMENT))
  response.write('data: 3\r\r')
  await until(() => body().includes('data: 3\r\r') && body().endsWith(COMMENT))
  response.end()
  await connection.until(/\r\n0\r\n\r\n$/)
  t.equal(body().replaceAll(COMMENT, ''), 'data: 1\n\ndata: 2\r\n\r\ndata: 3\r\r', 'without them it is what the upstream wrote')
})

void test('never inside an event, wherever it was cut', async (t) => {
  for (const [start, end] of [
    ['data: {"a":', '1}\n\n'],
    ['data: 1\n', '\n'],
    ['data: 1\r\n', '\r\n'],
    ['data: 1\r\n\r', '\n'],
    ['data: 1\r', '\r'],
    ['data: 1\r', 'data: 2\r\r'],
    ['id: 7\ndata: 1\n', 'data: 2\n\n'],
    ['data: \\n\\n', '\n\n'],
  ] as const) {
    const open = await silent(t, SSE)
    open.response.write(start)
    await until(() => open.body().endsWith(start))
    await whileOthersGetComments(open)
    t.ok(open.body().endsWith(start), JSON.stringify(start))
    open.response.write(end)
    await until(() => open.body().includes(start + end))
    await until(() => open.body().endsWith(COMMENT))
    t.pass('and after it again')
  }
})

void test('never in a binary stream', async (t) => {
  for (const headers of [{ 'content-type': 'application/vnd.ag-ui.event+proto' }, { ...SSE, 'content-encoding': 'gzip' }]) {
    const open = await silent(t, headers)
    const bytes = gzipSync('data: 1\n\n')
    await whileOthersGetComments(open)
    t.equal(open.body(), '', JSON.stringify(headers))
    open.response.end(bytes)
    await open.connection.until(/\r\n0\r\n\r\n$/)
    t.equal(open.body(), bytes.toString('latin1'))
  }
})

void test('keepAlive: 0s sends none', async (t) => {
  const quiet = await silent(t, SSE, '0s')
  const other = await silent(t, SSE)
  await whileOthersGetComments(other)
  t.equal(quiet.body(), '')
})
