/** One decision, one line, in a stream of its own: over a real gateway, whatever is decided. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import type { AuditLine } from '../../src/audit/line.ts'
import { BASE, BODY_ROUTES, PATH_ROUTES } from '../security/thread-routes.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { gated, type GatedOptions, type GatedUpstream } from '../../testing/support/gated.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { MULTI_ROUTE, type Pair } from '../../testing/support/pair.ts'
import { testEachPair } from '../../testing/support/pairs.ts'
import { head, sendRaw } from '../../testing/support/raw.ts'
import { events, json, type Answering } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

/** A gateway that writes to a file, and all that is in it when the gateway has stopped. */
interface Audited extends GatedUpstream {
  readonly text: () => Promise<string>
  readonly lines: () => Promise<readonly AuditLine[]>
}

async function audited(t: Test, pair: Pair, answering: Answering = events(), more: GatedOptions = {}): Promise<Audited> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'audit.jsonl')
  const gate = await gated(t, answering, { pair, ...more, config: { ...more.config, audit: { to: 'file', file } } })
  const text = async (): Promise<string> => {
    await gate.gateway.stop(0)
    return readdirSync(folder)
      .map((name) => readFileSync(join(folder, name), 'utf8'))
      .join('')
  }
  const lines = async (): Promise<readonly AuditLine[]> =>
    (await text())
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as AuditLine)
  return { ...gate, text, lines }
}

const figures = async ({ gateway }: GatedUpstream, name: string): Promise<number> => {
  const { text } = await call(`${gateway.healthUrl}/metrics`)
  const found = [...text.matchAll(new RegExp(`^threadwarden_${name}(?:\\{[^}]*\\})? (\\d+)$`, 'gm'))]
  return found.reduce((sum, [, value]) => sum + Number(value), 0)
}

void testEachPair('each request has one line, with who, what and why', async (t, pair) => {
  const { client } = pair
  const gate = await audited(t, pair, events(), { config: { limits: { runBody: '2KiB', runs: '2/h' } } })
  const { base, call, alice, bob, gateway, upstream } = gate
  const run = (threadId: unknown, token: string, text = 'hello') =>
    call(`${base}/agent/default/run`, { token, body: runInput(threadId, text) })
  await run('t1', alice)
  await run('t1', bob)
  await call(`${base}/threads/t1/state`, { token: bob })
  await call(`${base}/info`)
  await call(`${base}/info`, { token: 'nonsense' })
  await call(`${base}/nowhere`, { token: alice })
  await run('', alice)
  await run('t1', alice, 'x'.repeat(3000))
  await call(`${base}/threads/clear`, { method: 'POST', token: alice })
  for (const id of ['t2', 't3', 't4', 't5']) await run(id, alice)
  upstream.answer(json({ threads: [] }))
  await call(`${base}/threads`, { token: alice })
  upstream.answer((_request, response) => void response.destroy())
  await call(`${base}/threads/t1/messages`, { token: alice })
  await sendRaw(gateway.url, 'GET / HTTP/1.1\r\nHost a\r\n\r\n')
  const total = await figures(gate, 'decisions_total')
  await until(async () => (await figures(gate, 'audit_lines_total')) === total)
  t.equal(total, 16)
  t.equal(await figures(gate, 'audit_lost_total'), 0)
  const lines = await gate.lines()
  t.strictSame(
    lines.map(({ route, thread, reason, status, principal }) => [route, thread, reason, status, principal?.id ?? null]),
    [
      ['agent/run', 't1', 'permitted', null, 'corp:alice'],
      ['agent/run', 't1', 'thread-foreign', 403, 'corp:bob'],
      ['threads/state', 't1', 'thread-foreign', 404, 'corp:bob'],
      ['none', null, 'credential-missing', 401, null],
      ['none', null, 'token-malformed', 401, null],
      ['none', null, 'route-unknown', 404, 'corp:alice'],
      ['agent/run', null, 'thread-id-invalid', 400, 'corp:alice'],
      ['agent/run', null, 'body-too-large', 413, 'corp:alice'],
      ['threads/clear', null, 'operator-only', 403, 'corp:alice'],
      ['agent/run', 't2', 'permitted', null, 'corp:alice'],
      ['agent/run', 't3', 'permitted', null, 'corp:alice'],
      ['agent/run', 't4', 'permitted', null, 'corp:alice'],
      ['agent/run', 't5', 'runs-limited', 429, 'corp:alice'],
      ['threads/list', null, 'permitted', null, 'corp:alice'],
      ['threads/messages', 't1', 'permitted', null, 'corp:alice'],
      ['none', null, 'http-unreadable', 400, null],
    ],
  )
  t.equal(lines.length, 16)
  t.equal(new Set(lines.map(({ requestId }) => requestId)).size, 16)
  t.match(lines[0], {
    client: '127.0.0.1',
    transport: client,
    agent: 'default',
    facts: { record: 'none', enforcement: 'enforce' },
    rule: { file: 'default.yaml' },
    generation: 1,
    policy: /^[0-9a-f]{64}$/,
  })
  t.match(lines[1], { facts: { record: 'foreign' } })
  for (const { latencyMs } of lines.slice(0, -1)) t.ok(latencyMs !== null && latencyMs > 0 && latencyMs < 60_000)
})

void test('what is refused around the gate has its line as well, and what fails after its permit no second one', async (t) => {
  const gate = await audited(t, MULTI_ROUTE, json({}))
  const { base, call, alice, gateway } = gate
  const send = (type: string): Promise<string> => {
    const lines = ['Host: a', `Authorization: Bearer ${alice}`, `Content-Type: ${type}`, 'Content-Length: 2', 'Connection: close']
    return sendRaw(gateway.url, `${head('POST /api/copilotkit/agent/default/run HTTP/1.1', ...lines)}{}`)
  }
  // The gate refuses the first, and the framework around it the second, which is no media type at all.
  for (const type of ['text/plain', 'nonsense']) t.match(await send(type), /^HTTP\/1\.1 415 /, type)
  gate.upstream.answer(json({}, 302))
  await call(`${base}/info`, { token: alice })
  t.match(
    (await gate.lines()).map(({ reason }) => reason),
    ['media-type-unsupported', 'media-type-unsupported', 'permitted'],
  )
})

void test('a change of the configuration shows in the lines behind it', async (t) => {
  const gate = await audited(t, MULTI_ROUTE)
  const { base, call, alice, gateway } = gate
  await call(`${base}/info`, { token: alice })
  const config = JSON.parse(readFileSync(gateway.file, 'utf8')) as object
  writeFileSync(gateway.file, JSON.stringify({ ...config, enforcement: 'observe' }))
  t.equal((await gateway.reload('test')).outcome, 'reloaded')
  await call(`${base}/agent/default/run`, { token: alice, body: runInput('t1') })
  await call(`${base}/agent/default/run`, { token: gate.bob, body: runInput('t1') })
  const lines = await gate.lines()
  t.strictSame(
    lines.map(({ generation, facts, decision, observed }) => [generation, facts.enforcement, decision, observed]),
    [
      [1, 'enforce', 'permitted', null],
      [2, 'observe', 'permitted', null],
      [2, 'observe', 'permitted', 'thread-foreign'],
    ],
  )
})

void testEachPair('no line holds a token, a header, a query or a word of a body', async (t, pair) => {
  const gate = await audited(t, pair, json({ mine: 'their-words' }), {
    config: { upstream: { headers: { 'x-service-token': 'service-secret' } }, forwardHeaders: ['x-tenant'] },
  })
  const { gateway, signer } = gate
  const token = signer.sign('alice', { email: 'mail-secret', name: 'name-secret', tenant: 'claim-secret' })
  const tokens = [token, signer.sign('alice', { exp: 1000 }), `${token}x`]
  const headers = [
    'Cookie: a=cookie-secret',
    'X-Tenant: tenant-secret',
    'X-Forwarded-For: address-secret',
    'User-Agent: agent-secret',
  ]
  const body = JSON.stringify(runInput('t1', 'my-words secret', { state: { a: 'state-secret' } }))
  for (const one of tokens) {
    for (const { to } of [...PATH_ROUTES, ...BODY_ROUTES]) {
      await sendRaw(gateway.url, gateway.bytes({ ...to('t1'), token: one, lines: headers }))
    }
    for (const request of [
      { target: `${BASE}/agent/default/run?token=query-secret`, body },
      { target: `${BASE}/threads?cursor=query-secret&agentId=secret` },
      { target: `${BASE}/path-secret` },
      { target: `${BASE}/threads/${one}/messages` },
      { target: `${BASE}/agent/${one}/run`, body },
      { target: `/${one}` },
      { target: BASE, body: JSON.stringify({ method: 'secret', params: { one } }) },
      { target: `${BASE}/agent/default/run`, body: body.slice(0, -1) },
      { method: 'SECRET', target: `${BASE}/info` },
      { target: `${BASE}/info`, lines: ['secret without a colon'] },
      { target: `${BASE}/info`, version: 'SECRET/1.1' },
    ]) {
      await sendRaw(
        gateway.url,
        gateway.bytes({ token: one, ...request, lines: [...headers, ...('lines' in request ? request.lines : [])] }),
      )
    }
  }
  const text = await gate.text()
  t.ok(text.includes('corp:alice') && text.split('\n').length > 40)
  for (const part of [
    ...signer.signed.flatMap((one) => one.split('.').slice(1)),
    'secret',
    'my-words',
    'their-words',
    'Bearer',
  ]) {
    t.notOk(text.includes(part), part.slice(0, 30))
  }
})

void test('on stdout the lines stand beside the log, and nothing is written where it is off', async (t) => {
  for (const to of ['stdout', 'off']) {
    const gate = await gated(t, events(), { config: { audit: { to } } })
    await gate.call(`${gate.base}/info`, { token: gate.alice })
    await gate.call(`${gate.base}/info`)
    const lines = gate.gateway.lines.filter((line) => Object.keys(line)[0] === 'audit')
    t.strictSame(
      lines.map(({ reason }) => reason),
      to === 'off' ? [] : ['permitted', 'credential-missing'],
      to,
    )
    t.equal(await figures(gate, 'audit_lines_total'), lines.length)
  }
})

void test('an audit that can not be written stops no request, and says so everywhere', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const gate = await gated(t, events(), { config: { audit: { to: 'file', file: join(folder, 'deep', 'audit.jsonl') } } })
  const { base, call, alice, gateway } = gate
  await call(`${base}/info`, { token: alice })
  await until(async () => (await figures(gate, 'audit_lines_total')) === 1)
  rmSync(join(folder, 'deep'), { recursive: true })
  writeFileSync(join(folder, 'deep'), '')
  const readyz = async (): Promise<string> => (await call(`${gateway.healthUrl}/readyz`)).text
  await until(async () => (await readyz()).includes('audit'))
  t.match(await readyz(), /"status":"ready".*"notes":\{.*"audit":"audit lines cannot be written/)
  t.equal((await call(`${base}/info`, { token: alice })).status, 200)
  t.ok(gateway.lines.some(({ msg, level }) => level === 'error' && /audit lines cannot be written/.test(String(msg))))
  rmSync(join(folder, 'deep'))
  await until(async () => !(await readyz()).includes('audit'))
  await until(async () => (await figures(gate, 'audit_lines_total')) === 2)
})

void test('a gateway whose audit can not be opened does not start', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  writeFileSync(join(folder, 'plain'), '')
  const file = join(folder, 'plain', 'audit.jsonl')
  await t.rejects(gated(t, events(), { config: { audit: { to: 'file', file } } }), { message: /audit\.file.*plain/s })
})
