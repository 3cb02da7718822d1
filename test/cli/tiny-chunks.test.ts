/** Bodies that come a byte a chunk, to a gateway with little memory: what is held of them is what they are, and no more. */
import { createSigner } from 'fast-jwt'
import { test } from 'tap'
import { firstAnswer, head, openRaw } from '../support/raw.ts'
import { json, startUpstream } from '../support/upstream.ts'
import { configFile, serving } from './program.ts'

const CALLERS = 8
const BYTES = 255_000

const TEXT = `{"threadId":"t1","state":"${'x'.repeat(BYTES)}"}`
const IN_CHUNKS = [...TEXT].map((character) => `1\r\n${character}\r\n`).join('')

void test('bodies in chunks of a byte take a process with little memory no further than others', async (t) => {
  const upstream = await startUpstream(json({}))
  t.teardown(() => upstream.close())
  const { file } = configFile(t, { 'upstream.url': upstream.url, 'upstream.transport': 'multi-route' })
  const gateway = await serving(t, file, { node: ['--max-old-space-size=128'] })
  const now = Math.floor(Date.now() / 1000)
  const token = createSigner({ key: 'x'.repeat(64), algorithm: 'HS256' })({
    iss: 'corp',
    aud: 'chat',
    sub: 'alice',
    iat: now,
    exp: now + 3600,
  })
  const begin = async () => {
    const connection = await openRaw(String(gateway.listening['url']))
    const lines = [`Authorization: Bearer ${token}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked']
    connection.write(head('POST /api/copilotkit/agent/default/run HTTP/1.1', 'Host: chat', 'Connection: close', ...lines))
    await new Promise((resolve) => connection.socket.write(IN_CHUNKS, resolve))
    return connection
  }
  const connections = await Promise.all(Array.from({ length: CALLERS }, begin))
  // None of them has come to its end so far.
  for (const connection of connections) connection.write('0\r\n\r\n')
  for (const connection of connections) t.equal(firstAnswer(await connection.ended()).status, 200)
  t.same(
    upstream.requests.map(({ body }) => body.toString()),
    Array.from({ length: CALLERS }, () => TEXT),
  )
})
