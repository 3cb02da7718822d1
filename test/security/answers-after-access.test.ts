/**
 * Attack: a caller keeps an answer that is no event stream beyond their access (CWE-613). The request is made while a grant, a
 * token or the rules allow it; the upstream or the caller takes its time, and meanwhile the access ends. Whether an answer is
 * an event stream makes no difference: nothing begins after the end, what is open is cut, and slow readers are counted.
 */
import type { ServerResponse } from 'node:http'
import { test, type Test } from 'tap'
import { CHAT, startScene } from '../reload/scene.ts'
import { call, codeOf, runInput, type Reply } from '../../testing/support/client.ts'
import { head, openRaw, type RawConnection } from '../../testing/support/raw.ts'
import { rows } from '../../testing/support/rows.ts'
import { OPERATOR, OWNERS_SHARE, sharing, type Sharing } from '../../testing/support/sharing.ts'
import { until } from '../../testing/support/until.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'

const SECRET = 'the content of the thread'

/** An upstream that answers messages when the test says so, and runs at once. */
function held(): { readonly answering: Answering; readonly answer: () => void; readonly waits: () => boolean } {
  const waiting: (() => void)[] = []
  const answering: Answering = (request, response) => {
    if (request.method !== 'GET') return events()(request, response)
    waiting.push(() => void json({ messages: [{ id: 'm1', role: 'user', content: SECRET }] })(request, response))
  }
  return { answering, answer: () => waiting.splice(0).forEach((one) => one()), waits: () => waiting.length > 0 }
}

/** bob, to whom alice has granted t1, waits for its messages. */
async function waitingReader(t: Test) {
  const { answering, answer, waits } = held()
  const gate = await sharing(t, answering)
  await gate.run(gate.alice)
  t.equal((await gate.operate({ user: 'corp:bob', right: 'read' })).status, 201)
  const read = call(`${gate.base}/threads/t1/messages`, { token: gate.bob })
  await until(waits)
  return { ...gate, read, answer }
}

const ENDS: Readonly<Record<string, (gate: Sharing) => Promise<unknown>>> = {
  'the grant ends': ({ operate }) => operate({ user: 'corp:bob' }, 'DELETE'),
  'the thread is deleted': ({ alice, base }) => call(`${base}/threads/t1`, { method: 'DELETE', token: alice }),
  'the user is revoked': ({ gateway }) =>
    call(`${gateway.adminUrl}/revocations`, { token: OPERATOR, body: { user: 'corp:bob' } }),
}

for (const [how, end] of Object.entries(ENDS)) {
  void test(`an answer that the upstream gives late is not delivered: ${how}`, async (t) => {
    const all = await waitingReader(t)
    await end(all)
    all.answer()
    const { status, text } = await all.read
    t.match(status, /40[13]/)
    t.notMatch(text, SECRET)
  })
}

void test('an answer that the upstream gives after the token expired is not delivered, where expiry closes', async (t) => {
  const { answering, answer, waits } = held()
  const gate = await sharing(t, answering, { config: { streams: { tokenExpiry: 'close' } } })
  await gate.run(gate.alice)
  const read = async (secondsLeft: number): Promise<Reply> => {
    // Tokens are good for 30 s more by the default tolerance.
    const exp = Math.floor(Date.now() / 1000) - 30 + secondsLeft
    let reply: Reply | null = null
    const token = gate.signer.sign('alice', { iat: exp - 60, exp })
    const replied = call(`${gate.base}/threads/t1/messages`, { token }).then((one) => (reply = one))
    await until(() => waits() || reply !== null)
    // On a machine that is this slow, the token expired on its way.
    if (!waits()) return secondsLeft > 60 ? replied : read(secondsLeft * 4)
    await until(() => Date.now() > (exp + 30) * 1000)
    answer()
    return replied
  }
  const late = await read(2)
  t.same([late.status, codeOf(late)], [401, 'credential-expired'])
  t.notMatch(late.text, SECRET)
})

void test('an answer that observe let through is not delivered once the gateway enforces', async (t) => {
  const { answering, answer, waits } = held()
  const scene = await startScene(t)
  scene.upstream.answer(answering)
  const [alice, bob] = [scene.token('alice'), scene.token('bob')]
  t.equal((await call(`${scene.base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 200)
  scene.write({ enforcement: 'observe' })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  const read = call(`${scene.base}/threads/t1/messages`, { token: bob })
  await until(waits)
  scene.write({ enforcement: 'enforce' })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  answer()
  const late = await read
  t.same([late.status, codeOf(late)], [403, 'not-owner'])
  t.notMatch(late.text, SECRET)
})

void test('nor is a list that observe let through, of which some is hidden once the gateway enforces', async (t) => {
  let answer: (() => void) | null = null
  const scene = await startScene(t)
  scene.upstream.answer((request, response) => {
    if (request.method !== 'GET') return events()(request, response)
    answer = () => void json({ threads: [{ id: 't1', name: SECRET }], nextCursor: null })(request, response)
  })
  const [alice, bob] = [scene.token('alice'), scene.token('bob')]
  t.equal((await call(`${scene.base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 200)
  scene.write({ enforcement: 'observe' })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  const list = call(`${scene.base}/threads?agentId=default`, { token: bob })
  await until(() => answer !== null)
  scene.write({ enforcement: 'enforce' })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  answer!()
  t.notMatch((await list).text, SECRET)
})

void test('an answer that a new policy denies is not delivered', async (t) => {
  const { answering, answer, waits } = held()
  const scene = await startScene(t)
  scene.upstream.answer(answering)
  const alice = scene.token('alice', { role: 'guest' })
  t.equal((await call(`${scene.base}/agent/default/run`, { token: alice, body: runInput('t1') })).status, 200)
  const read = call(`${scene.base}/threads/t1/messages`, { token: alice })
  await until(waits)
  scene.writePolicy(`${CHAT}  - { routes: all, deny: [signed-in], roles: [guest] }\n`)
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  answer()
  const late = await read
  t.equal(late.status, 403)
  t.notMatch(late.text, SECRET)
})

void test('/info that was asked under other rules names no agents that are hidden by now', async (t) => {
  let answer: (() => void) | null = null
  const scene = await startScene(t)
  const info = json({ version: '1.75.0', agents: { default: {}, secret: {} }, mode: 'sse' })
  scene.upstream.answer((request, response) => void (answer = () => void info(request, response)))
  const asked = call(`${scene.base}/info`, { token: scene.token('alice') })
  await until(() => answer !== null)
  scene.writePolicy(`${CHAT}  - { routes: [agent/run, agent/connect], agents: [secret], deny: [signed-in] }\n`)
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  scene.upstream.answer(info)
  answer!()
  const late = await asked
  t.equal(late.status, 200, 'it is asked again, by the rules of now')
  t.notMatch(late.text, 'secret')
})

for (const how of ['the grant ends', 'the user is revoked']) {
  const end = ENDS[how]!
  void test(`a new name that the upstream leaves to the table late is not given: ${how}`, async (t) => {
    let refuse: (() => void) | null = null
    const answering: Answering = (request, response) => {
      if (request.method !== 'PATCH') return events()(request, response)
      refuse = () => void json({ error: 'no such operation' }, 422)(request, response)
    }
    const gate = await sharing(t, answering, { config: { ownership: { lists: 'table' } } })
    await gate.run(gate.alice)
    t.equal((await gate.operate({ user: 'corp:bob', right: 'write' })).status, 201)
    const named = call(`${gate.base}/threads/t1`, { method: 'PATCH', token: gate.bob, body: { name: 'bob was here' } })
    await until(() => refuse !== null)
    await end(gate)
    refuse!()
    t.match((await named).status, /40[13]/)
    t.same(
      rows(gate.gateway.folder).map(({ name }) => name),
      [null],
    )
  })
}

void test('the grants of a thread that wait behind another answer are not given to a caller who is revoked', async (t) => {
  const gate = await sharing(t)
  await gate.run(gate.alice)
  await gate.run(gate.alice, 't2')
  t.equal((await gate.grants(gate.alice, { user: 'corp:bob', right: 'write' })).status, 201)
  gate.upstream.answer(
    (_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"begun":1}\n\n'),
  )
  const connection = await openRaw(gate.gateway.url)
  t.teardown(() => connection.destroy())
  const body = JSON.stringify(runInput('t2'))
  const lines = ['Host: a', `Authorization: Bearer ${gate.alice}`]
  const json = ['Content-Type: application/json', `Content-Length: ${body.length}`]
  connection.write(
    head('POST /api/copilotkit/agent/default/run HTTP/1.1', ...lines, ...json) +
      body +
      head('GET /api/copilotkit/threadwarden/threads/t1/grants HTTP/1.1', ...lines),
  )
  await connection.until('"begun"')
  await until(async () => {
    const metrics = await (await fetch(`${gate.gateway.healthUrl}/metrics`)).text()
    return metrics.includes('{route="threads/grants",reason="permitted"} 2')
  })
  const revoked = call(`${gate.gateway.adminUrl}/revocations`, { token: OPERATOR, body: { user: 'corp:alice' } })
  t.equal((await revoked).status, 201)
  t.notMatch(await connection.ended(), 'corp:bob')
})

void test('a list leaves out what ended while the upstream gave its later pages', async (t) => {
  let waiting: (() => void) | null = null
  const answering: Answering = (request, response) => {
    if (request.method !== 'GET') return events()(request, response)
    const isSecond = request.target.includes('cursor=')
    const give = (): unknown =>
      json({ threads: [{ id: isSecond ? 't2' : 't1', name: SECRET }], nextCursor: isSecond ? null : 'second' })(request, response)
    if (isSecond) waiting = () => void give()
    else give()
  }
  const gate = await sharing(t, answering)
  for (const threadId of ['t1', 't2']) {
    await gate.run(gate.alice, threadId)
    await gate.operate({ user: 'corp:bob', right: 'read' }, 'POST', threadId)
  }
  const listed = call(`${gate.base}/threads`, { token: gate.bob })
  await until(() => waiting !== null)
  await gate.operate({ user: 'corp:bob' }, 'DELETE', 't1')
  waiting!()
  t.same(
    ((await listed).json as { threads: { id: string }[] }).threads.map(({ id }) => id),
    ['t2'],
  )
})

const MIB = 1024 ** 2
/** More than the gateway and the system hold of an answer together. */
const LARGE = 64 * MIB

/** Answers messages with more than anybody holds, as fast as it is read. */
const large: Answering = (request, response) => {
  if (request.method !== 'GET') return events()(request, response)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': LARGE })
  fill(response, LARGE)
}

function fill(response: ServerResponse, left: number): void {
  while (left > 0) {
    left -= MIB
    if (!response.write(Buffer.alloc(MIB, 0x20))) return void response.once('drain', () => fill(response, left))
  }
  response.end()
}

/** Asks for the messages of t1, or for something else, and reads nothing after the first bytes of the answer. */
async function slowReader(t: Test, url: string, token: string, target = 'threads/t1/messages'): Promise<RawConnection> {
  const connection = await openRaw(url)
  t.teardown(() => connection.destroy())
  // At once, in the listener: a slow machine would take much of the answer until a test that waits goes on.
  connection.socket.on('data', () => {
    if (connection.text().includes('200 OK')) connection.socket.pause()
  })
  connection.write(head(`GET /api/copilotkit/${target} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${token}`))
  await connection.until('200 OK')
  return connection
}

/** What the log says of the messages that were cut. */
const cutWith = ({ lines }: { readonly lines: readonly Readonly<Record<string, unknown>>[] }): unknown[] =>
  lines.filter(({ msg, route }) => msg === 'request' && route === 'threads/messages').map(({ ended }) => ended)

for (const [how, end, why] of [
  ['the grant ends', ENDS['the grant ends'], 'not-allowed'],
  ['the thread is deleted', ENDS['the thread is deleted'], 'not-allowed'],
  ['the user is revoked', ENDS['the user is revoked'], 'credential-invalid'],
] as const) {
  void test(`an answer whose reader is slow is cut: ${how}`, async (t) => {
    const gate = await sharing(t, large)
    await gate.run(gate.alice)
    await gate.operate({ user: 'corp:bob', right: 'read' })
    await slowReader(t, gate.gateway.url, gate.bob)
    await end!(gate)
    await until(() => cutWith(gate.gateway).length === 1)
    t.same(cutWith(gate.gateway), [why])
  })
}

void test('a list whose reader is slow is cut when a grant ends on a thread that stands in it', async (t) => {
  const threads = Array.from({ length: 16 }, (_, at) => ({ id: `t${at}`, name: 'n'.repeat(MIB) }))
  const gate = await sharing(t)
  for (const { id } of threads) {
    await gate.run(gate.alice, id)
    await gate.operate({ user: 'corp:bob', right: 'read' }, 'POST', id)
  }
  await gate.run(gate.alice, 'another')
  await gate.operate({ user: 'corp:bob', right: 'read' }, 'POST', 'another')
  gate.upstream.answer(json({ threads }))
  await slowReader(t, gate.gateway.url, gate.bob, 'threads?agentId=default')
  const lists = () => gate.gateway.lines.filter(({ msg, route }) => msg === 'request' && route === 'threads/list')
  await gate.operate({ user: 'corp:bob' }, 'DELETE', 'another')
  await gate.operate({ user: 'corp:bob' }, 'DELETE', 't15')
  await until(() => lists().length === 1)
  t.same(
    lists().map(({ ended }) => ended),
    ['not-allowed'],
  )
})

void test('an answer whose reader is slow is cut when the rules that allowed it are replaced', async (t) => {
  const scene = await startScene(t)
  scene.upstream.answer(large)
  const greta = scene.token('greta', { role: 'guest' })
  await call(`${scene.base}/agent/default/run`, { token: greta, body: runInput('t1') })
  await slowReader(t, scene.gateway.url, greta)
  scene.writePolicy(`${CHAT}  - { routes: all, deny: [signed-in], roles: [guest] }\n`)
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  await until(() => cutWith(scene).length === 1)
  t.same(cutWith(scene), ['not-allowed'])
})

void test('slow readers of answers that are no streams count as streams: those beyond the limit are cut', async (t) => {
  const gate = await sharing(t, large, { policy: OWNERS_SHARE, config: { limits: { streams: 2 } } })
  await gate.run(gate.alice)
  for (let reader = 0; reader < 6; reader += 1) await slowReader(t, gate.gateway.url, gate.alice)
  await until(() => cutWith(gate.gateway).length === 4)
  t.same(cutWith(gate.gateway), Array(4).fill('rate-limited'))
  const stream = await call(`${gate.base}/agent/default/connect`, { token: gate.alice, body: runInput('t1') })
  t.equal(stream.status, 429, 'the two that are left take the places of streams')
})

void test('an answer whose reader takes nothing is cut after limits.sendTimeout, whatever it is', async (t) => {
  const gate = await sharing(t, large, { config: { limits: { sendTimeout: '200ms' } } })
  await gate.run(gate.alice)
  await slowReader(t, gate.gateway.url, gate.alice)
  await until(() => cutWith(gate.gateway).length === 1)
  t.same(cutWith(gate.gateway), ['stalled'])
})

void test('so is one that the gateway wrote, of which some was taken', async (t) => {
  const threads = Array.from({ length: 16 }, (_, at) => ({ id: `t${at}`, name: 'n'.repeat(MIB) }))
  const gate = await sharing(t, events(), { config: { limits: { sendTimeout: '200ms' } } })
  for (const { id } of threads) await gate.run(gate.alice, id)
  gate.upstream.answer(json({ threads }))
  const reader = await openRaw(gate.gateway.url)
  t.teardown(() => reader.destroy())
  let bytes = 0
  reader.socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > 3 * MIB) reader.socket.pause()
  })
  reader.write(head('GET /api/copilotkit/threads?agentId=default HTTP/1.1', 'Host: a', `Authorization: Bearer ${gate.alice}`))
  const cut = () => gate.gateway.lines.filter(({ msg, route }) => msg === 'request' && route === 'threads/list')
  await until(() => cut().length === 1)
  t.same(
    cut().map(({ ended }) => ended),
    ['stalled'],
  )
})

void test('a reader who takes the answer bit by bit is not cut, however long it takes in all', async (t) => {
  const gate = await sharing(t, large, { config: { limits: { sendTimeout: '1500ms' } } })
  await gate.run(gate.alice)
  const reader = await slowReader(t, gate.gateway.url, gate.alice)
  let bytes = reader.text().length
  reader.socket.removeAllListeners('data')
  reader.socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes % (8 * MIB) < chunk.length) {
      reader.socket.pause()
      setTimeout(() => reader.socket.resume(), 250)
    }
  })
  reader.socket.resume()
  await until(() => cutWith(gate.gateway).length === 1)
  t.same(cutWith(gate.gateway), [undefined])
  await until(() => bytes > LARGE - MIB)
})
