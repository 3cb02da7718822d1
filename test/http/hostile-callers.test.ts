/**
 * Callers who stop reading, leave early or write nonsense into a running exchange. None of them may end the process, leave
 * something open at the upstream, or go unlogged. Each of these got through once.
 */
import { createServer } from 'node:http'
import { connect as netConnect, type AddressInfo } from 'node:net'
import { PassThrough, Writable } from 'node:stream'
import { test } from 'tap'
import { streamedBody } from '../../src/http/upstream/answer-body.ts'
import { makeOpenAnswers } from '../../src/http/upstream/open-answers.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { sayOnFailure } from '../../testing/support/decided.ts'
import { openRun } from '../../testing/support/event-stream.ts'
import { gateBefore, gated, NOWHERE } from '../../testing/support/gated.ts'
import { startTestGateway } from '../../testing/support/gateway.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { firstAnswer, head, openRaw, requestBytes, sendRaw, type RawConnection } from '../../testing/support/raw.ts'
import { callerOf } from '../../testing/support/stream-caller.ts'
import { AUDIENCE, ISSUER, JWK, makeSigner } from '../../testing/support/tokens.ts'
import { INFO, json, startUpstream, type Answering } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

/** A stream that has begun and does not end. */
const begun: Answering = (_request, response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')

void test('a stream whose end waits in the buffer of a caller who does not read gets no more comments', async (t) => {
  // The caller's side of a connection that takes nothing any more: what is written is never done with, and so is the end.
  const stalled = new Writable({ write: () => {} })
  const errors: unknown[] = []
  stalled.on('error', (error) => errors.push(error))
  const streams = makeOpenAnswers(Date.now, makeMetrics().streams)
  const body = new PassThrough()
  const rules = { keepAlive: 1, tokenExpiry: 'ignore', grace: 0, sendTimeout: 0 } as const
  streams.pass(
    streamedBody(body),
    callerOf(stalled),
    'events',
    { requestId: 'r-1', userId: 'corp:alice', credential: null },
    rules,
  )
  body.end('data: 1\n\n')
  await until(() => stalled.writableEnded)
  streams.endAll('late', 'shutting-down')
  await new Promise((resolve) => setTimeout(resolve, 30))
  t.same(errors, [], 'a second write after the end would be an error that ends the process')
  stalled.destroy()
  await until(() => streams.count() === 0)
})

void test('a request is logged however it ends', async (t) => {
  const gate = await gated(t, begun)
  const { gateway } = gate
  const caller = await openRun(gate)
  await caller.until('data: 1')
  caller.destroy()
  await until(() => gateway.lines.some((line) => line['msg'] === 'request'))
  t.match(
    gateway.lines.find((line) => line['msg'] === 'request'),
    { route: 'agent/run', principal: 'corp:alice', status: 200, reason: 'permitted', complete: false },
  )
})

void test('nonsense on a connection whose answer has begun closes it, and puts nothing into the answer', async (t) => {
  const gate = await gated(t, begun)
  const { upstream } = gate
  const caller = await openRun(gate)
  await caller.until('data: 1')
  caller.write('GARBAGE\0\r\n\r\n')
  const text = await caller.ended()
  t.equal(text.match(/HTTP\/1\.1/g)?.length, 1)
  await until(() => upstream.requests[0]!.left())
})

void test('a caller who leaves while keys are fetched has nothing sent for them', async (t) => {
  let answerKeys = (): void => {}
  const keys = createServer(
    (_request, response) => (answerKeys = () => response.writeHead(200).end(JSON.stringify({ keys: [JWK] }))),
  )
  await new Promise<void>((resolve) => keys.listen(0, '127.0.0.1', resolve))
  const upstream = await startUpstream(json(INFO))
  const jwksUri = `http://127.0.0.1:${(keys.address() as AddressInfo).port}/jwks`
  const corp = { issuer: ISSUER, audiences: [AUDIENCE], algorithms: ['RS256'], jwksUri }
  const gateway = await startTestGateway({
    upstream: { url: upstream.url, transport: 'multi-route' },
    authentication: { issuers: { corp } },
  })
  sayOnFailure(t, gateway)
  t.teardown(async () => {
    await gateway.close()
    keys.closeAllConnections()
    keys.close()
    await upstream.close()
  })
  const signer = makeSigner()
  signer.remove()
  const ask = head('GET /api/copilotkit/info HTTP/1.1', 'Host: a', `Authorization: Bearer ${signer.sign('alice')}`)
  const [leaves, stays] = [await openRaw(gateway.url), await openRaw(gateway.url)]
  leaves.write(ask)
  leaves.socket.end()
  await new Promise((resolve) => setTimeout(resolve, 50))
  leaves.destroy()
  stays.write(ask)
  await new Promise((resolve) => setTimeout(resolve, 50))
  answerKeys()
  t.match(await stays.until('mode'), /200/)
  await until(() => gateway.lines.filter((line) => line['msg'] === 'request').length > 0)
  t.equal(upstream.requests.length, 1, 'only what was asked by the caller who stayed')
  const { text } = await call(`${gateway.healthUrl}/metrics`)
  t.match(text, 'threadwarden_decisions_total{route="info",reason="caller-left"} 1')
  stays.destroy()
})

void test('a caller who sends too much in chunks gets 413 and a closed connection', async (t) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { config: { limits: { runBody: '64KiB' } } })
  const lines = [
    'POST /api/copilotkit/agent/default/run HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${alice}`,
    'Content-Type: application/json',
  ]
  const caller = await openRaw(gateway.url)
  caller.write(head(...lines, 'Transfer-Encoding: chunked'))
  for (let at = 0; at < 6; at += 1) caller.write(`4000\r\n${'x'.repeat(0x4000)}\r\n`)
  t.match(firstAnswer(await caller.ended()), { status: 413 })
  t.same(upstream.requests, [])
})

void test('what Node would answer by itself is answered in our words', async (t) => {
  const { gateway } = await gated(t)
  const info = 'GET /api/copilotkit/info HTTP/1.1'
  const said = async (...lines: string[]) => {
    const { status, body } = firstAnswer(await sendRaw(gateway.url, head(...lines)))
    return [status, (JSON.parse(body) as { code: string }).code]
  }
  t.same(await said(info, 'Connection: close'), [400, 'header-malformed'], 'no Host')
  t.same(await said(info, 'Host: a', 'Expect: nonsense', 'Connection: close'), [400, 'header-malformed'])
  t.same(
    await said(info, 'Host: a', 'Expect: 100-continue', 'Connection: close'),
    [401, 'credential-missing'],
    'no 100 before it',
  )
  t.same(await said('CONNECT a:443 HTTP/1.1', 'Host: a:443'), [400, 'target-malformed'])
})

void test('CONNECT is answered and gone, whatever its sender does then', async (t) => {
  const { gateway, upstream, alice } = await gated(t)
  const connect = head('CONNECT a:1 HTTP/1.1', 'Host: a')
  // An error on a socket that nobody listens to would end this process.
  for (let at = 0; at < 60; at += 1) {
    const caller = await openRaw(gateway.url)
    caller.write(connect)
    await new Promise((resolve) => setImmediate(resolve))
    caller.socket.resetAndDestroy()
  }
  // A caller who keeps their side open does not keep ours.
  const held = netConnect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1', allowHalfOpen: true })
  held.on('error', () => {})
  held.write(connect)
  held.resume()
  await new Promise((resolve) => held.once('end', resolve))
  await gateway.stop(0)
  held.destroy()
  t.same(upstream.requests, [])
  t.ok(alice)
})

void test('CONNECT behind a request does not answer in its place', async (t) => {
  const gate = await gated(t, begun)
  const caller = await openRun(gate)
  await caller.until('data: 1')
  caller.write(head('CONNECT a:1 HTTP/1.1', 'Host: a'))
  t.equal((await caller.ended()).match(/HTTP\/1\.1/g)?.length, 1)
})

void test('a body that breaks gives its share of the budget back, though its sender stays', async (t) => {
  const { gateway, base, alice, bob } = await gated(t, json({}), { config: { limits: { bodiesInFlight: '1MiB' } } })
  const caller = await openRaw(gateway.url)
  const lines = [
    'POST /api/copilotkit/agent/default/run HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${alice}`,
    'Content-Type: application/json',
  ]
  caller.write(head(...lines, 'Transfer-Encoding: chunked'))
  const big = 'x'.repeat(0xf0000)
  caller.write(`f0000\r\n${big}\r\nZZZ\r\n`)
  await caller.until('400')
  const other = runInput(crypto.randomUUID(), 'y'.repeat(200_000))
  await until(async () => (await call(`${base}/agent/default/run`, { token: bob, body: other })).status === 200)
  t.pass('the other caller is served')
  caller.destroy()
})

void test('one caller’s slow bodies leave others half of the room', async (t) => {
  const { gateway, base, alice, bob } = await gated(t, json({}), {
    config: { limits: { bodiesInFlight: '2MiB', runBody: '1MiB' } },
  })
  const lines = [
    'POST /api/copilotkit/agent/default/run HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${alice}`,
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
  ]
  const slow = async (): Promise<RawConnection> => {
    const caller = await openRaw(gateway.url)
    t.teardown(() => caller.destroy())
    caller.write(head(...lines))
    caller.write(`c0000\r\n${'x'.repeat(0xc0000)}\r\n`)
    return caller
  }
  const callers = [await slow(), await slow()]
  // The gateway may read the second one first.
  t.match(await Promise.race(callers.map((caller) => caller.until('not-ready'))), /^HTTP\/1\.1 503/)
  const other = runInput(crypto.randomUUID(), 'y'.repeat(800_000))
  t.equal((await call(`${base}/agent/default/run`, { token: bob, body: other })).status, 200)
})

void test('no 100 before a refusal that needs no body, and none to HTTP/1.0', async (t) => {
  const { gateway, alice } = await gated(t)
  const ask = (version: string, ...more: string[]) =>
    sendRaw(gateway.url, head(`POST /api/copilotkit/agent/default/run HTTP/${version}`, 'Host: a', `Authorization: Bearer ${alice}`, 'Expect: 100-continue', 'Connection: close', ...more)) // oxfmt-ignore
  t.match(await ask('1.1', 'Content-Type: text/plain', 'Content-Length: 2'), /^HTTP\/1\.1 415/)
  t.match(await ask('1.1', 'Content-Type: application/json', 'Content-Length: 999999999999'), /^HTTP\/1\.1 413/)
  const wanted = await openRaw(gateway.url)
  wanted.write(head('POST /api/copilotkit/agent/default/run HTTP/1.1', 'Host: a', `Authorization: Bearer ${alice}`, 'Content-Type: application/json', 'Expect: 100-continue', 'Content-Length: 2')) // oxfmt-ignore
  await wanted.until('HTTP/1.1 100')
  wanted.write('{}')
  t.match(await wanted.until('thread-id-invalid'), /HTTP\/1\.1 400/)
  wanted.destroy()
  const old = await openRaw(gateway.url)
  old.write(head('POST /api/copilotkit/agent/default/run HTTP/1.0', 'Host: a', `Authorization: Bearer ${alice}`, 'Content-Type: application/json', 'Expect: 100-continue', 'Content-Length: 2') + '{}') // oxfmt-ignore
  t.notMatch(await old.ended(), / 100 /)
})

void test('the log names the caller of a cut answer, and no status that was never sent', async (t) => {
  const gate = await gated(t, () => {})
  const { gateway, upstream } = gate
  const caller = await openRun(gate)
  await upstream.arrived(1)
  caller.destroy()
  const line = () => gateway.lines.find((one) => one['msg'] === 'request')
  await until(() => line() !== undefined)
  t.match(line(), { client: '127.0.0.1', principal: 'corp:alice', complete: false })
  t.notOk('status' in (line() ?? {}))
})

void test('a recording that goes on after its upstream could not be reached ends nothing but itself', async (t) => {
  const framing = ['Content-Type: multipart/form-data; boundary=b', 'Transfer-Encoding: chunked']
  const chunk = (kibibytes: number) => `${(kibibytes * 1024).toString(16)}\r\n${'a'.repeat(kibibytes * 1024)}\r\n`
  // Beyond the limit it was an error without a listener, which ended the process; within it, nobody read on.
  for (const [runBody, more] of [
    ['64KiB', 80],
    ['64MiB', 800],
  ] as const) {
    const { gateway, base, alice } = await gateBefore(t, NOWHERE, { config: { limits: { runBody } } })
    const begin = requestBytes({ method: 'POST', target: '/api/copilotkit/transcribe', token: alice, framing, keepAlive: true })
    const caller = await openRaw(gateway.url)
    caller.write(Buffer.concat([begin, Buffer.from('1\r\na\r\n')]))
    await caller.until('upstream-unreachable')
    caller.write(`${chunk(more)}0\r\n\r\n`)
    caller.write(requestBytes({ target: '/api/copilotkit/nowhere', token: alice }))
    t.match(await caller.ended(), /HTTP\/1\.1 502 [^]*HTTP\/1\.1 404 /, 'the rest is let go, and the next request is answered')
    const leaver = await openRaw(gateway.url)
    leaver.write(Buffer.concat([begin, Buffer.from('1\r\na\r\n')]))
    await leaver.until('upstream-unreachable')
    leaver.socket.resetAndDestroy()
    t.equal((await call(`${base}/nowhere`, { token: alice })).status, 404, 'the gateway is still there')
  }
})

void test('a caller who pipelines without end is cut off, and takes no more than a few requests upstream', async (t) => {
  const gate = await gated(t, begun)
  const { gateway, upstream, alice } = gate
  const next = requestBytes({ target: '/api/copilotkit/info', token: alice, keepAlive: true })
  const patient = await openRaw(gateway.url)
  upstream.answer(json({}))
  patient.write(Buffer.concat(Array.from({ length: 16 }, () => next)))
  await until(() => (patient.text().match(/HTTP\/1\.1 200/g)?.length ?? 0) === 16)
  patient.destroy()
  upstream.answer(begun)
  const before = upstream.beginnings()
  const greedy = await openRun(gate)
  await greedy.until('data: 1')
  for (let at = 0; at < 200; at += 1) greedy.write(next)
  await greedy.ended()
  t.ok(upstream.beginnings() - before <= 16)
})
