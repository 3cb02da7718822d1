/** Bodies that come a byte a chunk, to a gateway with little memory: what is held of them is what they are, and no more. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createSigner } from 'fast-jwt'
import { test, type Test } from 'tap'
import type { Changes } from '../config/configuration.ts'
import { firstAnswer, head, openRaw, type RawConnection } from '../support/raw.ts'
import { json, startUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'
import { configFile, serving } from './program.ts'

/** A gateway with so little memory, and what begins requests to it whose body comes a byte a chunk, to its last but one. */
async function littleMemory(t: Test, changes: Changes) {
  const { file } = configFile(t, { 'upstream.transport': 'multi-route', ...changes })
  const { listening } = await serving(t, file, { node: ['--max-old-space-size=128'] })
  return {
    health: String(listening['health']),
    async begin(token: string, body: string): Promise<RawConnection> {
      const connection = await openRaw(String(listening['url']))
      const lines = [`Authorization: Bearer ${token}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked']
      connection.write(head('POST /api/copilotkit/agent/default/run HTTP/1.1', 'Host: chat', 'Connection: close', ...lines))
      const chunks = [...body].map((character) => `1\r\n${character}\r\n`).join('')
      await new Promise((resolve) => connection.socket.write(chunks, resolve))
      return connection
    },
  }
}

const bodyOf = (bytes: number): string => `{"threadId":"t1","state":"${'x'.repeat(bytes)}"}`

const times = <Made>(count: number, make: (at: number) => Made): Made[] => Array.from({ length: count }, (_, at) => make(at))

void test('bodies in chunks of a byte take a process with little memory no further than others', async (t) => {
  const upstream = await startUpstream(json({}))
  t.teardown(() => upstream.close())
  const gateway = await littleMemory(t, { 'upstream.url': upstream.url })
  const now = Math.floor(Date.now() / 1000)
  const sign = createSigner({ key: 'x'.repeat(64), algorithm: 'HS256' })
  const token = sign({ iss: 'corp', aud: 'chat', sub: 'alice', iat: now, exp: now + 3600 })
  const body = bodyOf(255_000)
  const connections = await Promise.all(times(8, () => gateway.begin(token, body)))
  // None of them has come to its end so far.
  for (const connection of connections) connection.write('0\r\n\r\n')
  for (const connection of connections) t.equal(firstAnswer(await connection.ended()).status, 200)
  t.same(
    upstream.requests.map((request) => request.body.toString()),
    times(8, () => body),
  )
})

void test('nor do those of strangers, while an issuer is asked who they are', async (t) => {
  const asked: ServerResponse[] = []
  const issuer = createServer((_request, response) => void asked.push(response)).listen(0, '127.0.0.1')
  await once(issuer, 'listening')
  t.teardown(() => {
    issuer.closeAllConnections()
    issuer.close()
  })
  const url = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/introspect`
  const gateway = await littleMemory(t, {
    'authentication.issuers.corp': {
      issuer: 'https://issuer.example',
      audiences: ['chat'],
      introspection: { url, clientId: 'gateway', clientSecret: 's' },
    },
  })
  const body = bodyOf(255_000)
  const connections = await Promise.all(times(32, (at) => gateway.begin(`made-up-${at}`, body)))
  await until(() => asked.length === connections.length)
  // It goes on to read meanwhile, as much as it does.
  for (const path of times(20, () => '/livez')) t.equal((await fetch(gateway.health + path)).status, 200)
  for (const response of asked) response.setHeader('content-type', 'application/json').end('{"active":false}')
  for (const connection of connections) connection.write('0\r\n\r\n')
  for (const connection of connections) t.equal(firstAnswer(await connection.ended()).status, 401)
})
