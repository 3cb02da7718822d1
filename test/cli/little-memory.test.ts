/**
 * A gateway with little memory, and bodies that take far more of it than their bytes: by the way in which they are cut, by what
 * they hold, and by being many. What does not fit is refused, and nobody else notices.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createSigner } from 'fast-jwt'
import { test, type Test } from 'tap'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Changes } from '../../testing/support/configuration.ts'
import { chunked, firstAnswer, head, openRaw, type RawConnection } from '../../testing/support/raw.ts'
import { json, startUpstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { configFile, serving } from '../../testing/support/program.ts'

const RUN = 'POST /api/copilotkit/agent/default/run HTTP/1.1'

/** A gateway with so little memory, and what begins requests to it: all of the body but its end, as it is or a byte a chunk. */
async function littleMemory(t: Test, changes: Changes) {
  const { file, folder } = configFile(t, {
    'upstream.transport': 'multi-route',
    // The upstream is in this process, which is busy for seconds with what it sends on a machine with much to do.
    'upstream.timeouts': { connect: '60s' },
    ...changes,
  })
  const { listening, lines } = await serving(t, file, { node: ['--max-old-space-size=128'] })
  const url = String(listening['url'])
  return {
    url,
    health: String(listening['health']),
    lines,
    store: join(folder, 'ownership.db'),
    async begin(token: string, body: string, chunks = [...body]): Promise<RawConnection> {
      const connection = await openRaw(url)
      const form = ['Content-Type: application/json', 'Transfer-Encoding: chunked', 'Connection: close']
      connection.write(head(RUN, 'Host: chat', `Authorization: Bearer ${token}`, ...form))
      await new Promise((resolve) => connection.socket.write(chunked(chunks), resolve))
      return connection
    },
  }
}

/** A token of the configuration's issuer. */
function alice(): string {
  const now = Math.floor(Date.now() / 1000)
  const sign = createSigner({ key: 'x'.repeat(64), algorithm: 'HS256' })
  return sign({ iss: 'corp', aud: 'chat', sub: 'alice', iat: now, exp: now + 3600 })
}

const bodyOf = (bytes: number): string => `{"threadId":"t1","state":"${'x'.repeat(bytes)}"}`

const times = <Made>(count: number, make: (at: number) => Made): Made[] => Array.from({ length: count }, (_, at) => make(at))

void test('bodies in chunks of a byte take a process with little memory no further than others', async (t) => {
  const upstream = await startUpstream(json({}))
  t.teardown(() => upstream.close())
  const gateway = await littleMemory(t, { 'upstream.url': upstream.url })
  const body = bodyOf(255_000)
  const connections = await Promise.all(times(8, () => gateway.begin(alice(), body)))
  // None of them has come to its end so far.
  for (const connection of connections) connection.write('0\r\n\r\n')
  for (const connection of connections) t.match(await connection.ended(), /^HTTP\/1\.1 200 /)
  const arrived = upstream.requests.map(({ method, target, body: got }) => [method, target, got.length, got.toString() === body])
  t.same(
    arrived,
    times(8, () => ['POST', '/api/copilotkit/agent/default/run', body.length, true]),
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
  // As much as waits of each.
  const body = bodyOf(80_000)
  const connections = await Promise.all(times(32, (at) => gateway.begin(`made-up-${at}`, body)))
  await until(() => asked.length === connections.length)
  // It goes on to read meanwhile, as much as it does.
  for (let probe = 0; probe < 20; probe += 1) {
    // While it reads for long, a probe may get 408: the time to send it passes before the gateway reads it.
    let status = 408
    while (status === 408) ({ status } = await fetch(`${gateway.health}/livez`))
    t.equal(status, 200)
  }
  for (const response of asked) response.setHeader('content-type', 'application/json').end('{"active":false}')
  for (const connection of connections) connection.write('0\r\n\r\n')
  // The gateway waits for an issuer only so long.
  for (const connection of connections) {
    const { status } = firstAnswer(await connection.ended())
    t.ok([401, 503].includes(status), String(status))
  }
})

void test('of bodies whose values take far more than their bytes as many are read at once as there is room for', async (t) => {
  const upstream = await startUpstream(json({}))
  t.teardown(() => upstream.close())
  const gateway = await littleMemory(t, { 'upstream.url': upstream.url })
  const nested = `${'{"999":'.repeat(100)}1${'}'.repeat(100)}`
  const body = `{"threadId":"t1","state":[${times(1000, () => nested).join()}]}`
  const connections = await Promise.all(times(16, () => gateway.begin(alice(), body, [body])))
  // All that is left of each is its end: they are read together.
  for (const connection of connections) connection.write('0\r\n\r\n')
  const statuses: number[] = []
  for (const connection of connections) statuses.push(firstAnswer(await connection.ended()).status)
  t.same([...new Set(statuses)].toSorted(), [200, 503])
  const again = await gateway.begin(alice(), body, [body])
  again.write('0\r\n\r\n')
  t.equal(firstAnswer(await again.ended()).status, 200, 'and what they took is there again')
})

void test('of lists that are as long as lists may be as many are read at once as there is room for', async (t) => {
  const page = Buffer.from(JSON.stringify({ threads: [{ id: 't1', name: 'n'.repeat(30 * 2 ** 20) }], nextCursor: null }))
  const upstream = await startUpstream(({ method }, response) => {
    response.setHeader('content-type', 'application/json').end(method === 'GET' ? page : '{}')
  })
  t.teardown(() => upstream.close())
  const gateway = await littleMemory(t, { 'upstream.url': upstream.url })
  const run = await gateway.begin(alice(), bodyOf(1))
  run.write('0\r\n\r\n')
  t.equal(firstAnswer(await run.ended()).status, 200)

  const lists = (): Promise<number> =>
    fetch(`${gateway.url}/api/copilotkit/threads?agentId=default`, { headers: { authorization: `Bearer ${alice()}` } }).then(
      async (answer) => {
        await answer.arrayBuffer()
        return answer.status
      },
    )
  const statuses = await Promise.all(times(24, lists))
  t.same([...new Set(statuses)].toSorted(), [200, 503])
  t.equal(await lists(), 200, 'and what they took is there again')
})

void test('of lists from the table that nobody reads as many are held as there is room for', async (t) => {
  const gateway = await littleMemory(t, { 'ownership.lists': 'table', 'limits.requests': 'off', 'limits.sendTimeout': '0s' })
  const store = await openSqliteStore(gateway.store)
  const row = { scope: '', owner: 'corp:alice', agentId: 'default', name: '\u0001'.repeat(1000), archived: false, createdAt: 1 }
  const rows = times(1000, (at) => ({ ...row, threadId: `t${at}`, lastUsedAt: at }))
  await store.import(rows, { dryRun: false, settleConflicts: false })
  await store.close()

  const list = (): Promise<Response> =>
    fetch(`${gateway.url}/api/copilotkit/threads?agentId=default`, { headers: { authorization: `Bearer ${alice()}` } })
  const answers = await Promise.all(times(32, list))
  const held = answers.filter(({ status }) => status === 200)
  // What the gateway reads whole may take 192 MiB here, and each of these has 6 MB.
  t.ok(held.length > 0 && held.length < 32, `${held.length} of ${answers.length}`)
  t.same([...new Set(answers.map(({ status }) => status))].toSorted(), [200, 503])
  for (const answer of held) t.equal(((await answer.json()) as { threads: unknown[] }).threads.length, 1000)
  t.equal((await list()).status, 200, 'and what they took is there again')
})

void test('a body that there can never be room for is refused before it comes, and the log said so at the start', async (t) => {
  const gateway = await littleMemory(t, { 'upstream.url': 'http://127.0.0.1:1' })
  t.match(gateway.lines, [{ level: 'warn', msg: /^bodies of more than \d+ MiB are refused with 413/ }])
  const connection = await openRaw(gateway.url)
  const lines = [`Authorization: Bearer ${alice()}`, 'Content-Type: application/json', `Content-Length: ${60 * 2 ** 20}`]
  connection.write(head(RUN, 'Host: chat', ...lines))
  t.equal(firstAnswer(await connection.until('body-too-large')).status, 413)
  connection.destroy()
})
