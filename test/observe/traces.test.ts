/** Traces as a receiver of OTLP gets them, of gateways in processes of their own: the environment of a process turns them on. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { traceParentOf } from '../../src/observe/traces.ts'
import { call, runInput, type Reply } from '../../testing/support/client.ts'
import { startOtlpReceiver, type OtlpReceiver } from '../../testing/support/otlp-receiver.ts'
import { configFile, serving, type Line, type Serving } from '../../testing/support/program.ts'
import { signedAs } from '../../testing/support/signing.ts'
import { events, json, startUpstream, type Answering, type Upstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

const CALLERS_TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLERS_SPAN = '00f067aa0ba902b7'
const SAMPLED = { traceparent: `00-${CALLERS_TRACE}-${CALLERS_SPAN}-01`, tracestate: 'vendor=abc' }
const UNSAMPLED = { traceparent: `00-${CALLERS_TRACE}-${CALLERS_SPAN}-00` }

const token = (user: string): string => {
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: 'corp', aud: 'chat', sub: user, iat: now, exp: now + 3600 }
  return signedAs('HS256', '{"alg":"HS256"}', claims, 'x'.repeat(64))
}

interface Traced {
  readonly receiver: OtlpReceiver
  readonly upstream: Upstream
  readonly serving: Serving
  readonly run: (thread: string, headers?: Record<string, string>) => Promise<Reply>
  /** The log line of an answer. */
  readonly lineOf: (reply: Reply) => Promise<Line & { readonly traceId: string }>
}

const RUN: Answering = (request, response) =>
  (request.method === 'POST' ? events({ type: 'RUN_STARTED' }, { type: 'RUN_FINISHED' }) : json({ messages: [] }))(
    request,
    response,
  )

async function traced(
  t: Test,
  { env = {}, config = {}, answering = RUN, endpoint = undefined as string | undefined } = {},
): Promise<Traced> {
  const receiver = await startOtlpReceiver(t)
  const upstream = await startUpstream(answering)
  t.teardown(() => upstream.close())
  const { file, folder } = configFile(t, { 'upstream.url': upstream.url, ...config })
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint ?? receiver.url, OTEL_BSP_SCHEDULE_DELAY: '20', ...env }
  const process = await serving(t, file, { folder, environment })
  const { url, health } = process.listening as { readonly url: string; readonly health: string }
  await until(async () => (await fetch(`${health}/readyz`)).ok)
  return {
    receiver,
    upstream,
    serving: process,
    run: (thread, headers = {}) =>
      call(`${url}/api/copilotkit/agent/default/run`, { token: token('alice'), body: runInput(thread), headers }),
    async lineOf(reply) {
      const id = reply.headers.get('x-request-id')
      const line = await process.line(({ msg, requestId }) => msg === 'request' && requestId === id)
      return { ...line, traceId: String(line['traceId']) }
    },
  }
}

const TRUSTED = { listen: { host: '127.0.0.1', port: 0, trustedProxies: ['127.0.0.0/8'] } }

const sentUpstream = ({ upstream }: Traced) => upstream.requests.at(-1)?.headers

void test('a trace of a trusted caller is continued, and the upstream is part of it', async (t) => {
  const scene = await traced(t, { config: TRUSTED })
  const reply = await scene.run('secret-thread', SAMPLED)
  t.equal(reply.status, 200)
  const [request, ...parts] = await scene.receiver.trace(CALLERS_TRACE)
  t.match(request, {
    name: 'POST agent/run',
    parent: CALLERS_SPAN,
    traceState: 'vendor=abc',
    isError: false,
    attributes: {
      'http.request.method': 'POST',
      'http.route': 'agent/run',
      'http.response.status_code': 200,
      'url.scheme': 'http',
      'threadwarden.reason': 'permitted',
      'threadwarden.complete': true,
    },
  })
  const partOf = (name: string) => parts.find((part) => part.name === name)
  const parentsOf = (name: string) => parts.filter((part) => part.name === name).map(({ parent }) => parent)
  const decide = partOf('decide')?.spanId
  t.same(Object.fromEntries(parts.map(({ name }) => [name, parentsOf(name).toSorted()])), {
    authenticate: [request?.spanId],
    decide: [request?.spanId],
    // The look at the thread, and the confirmation of the claim.
    store: [decide, request?.spanId].toSorted(),
    claim: [decide],
    upstream: [request?.spanId],
  })
  t.match(partOf('upstream'), { kind: 'client', attributes: { 'http.response.status_code': 200 } })
  const headers = sentUpstream(scene)
  t.same(headers?.get('traceparent'), [`00-${CALLERS_TRACE}-${partOf('upstream')?.spanId}-01`])
  t.same(headers?.get('tracestate'), ['vendor=abc'])
  t.match(await scene.lineOf(reply), { traceId: CALLERS_TRACE, agent: 'default' })
  t.match(scene.receiver.resources[0], { 'service.name': 'threadwarden', 'service.version': /^\d/ })
  for (const id of ['secret-thread', 'alice']) t.notOk(scene.receiver.bytes().includes(id), `no span has ${id}`)
})

void test('a caller who is not trusted chooses neither ids nor what is sampled', async (t) => {
  const scene = await traced(t)
  for (const headers of [SAMPLED, UNSAMPLED]) {
    const reply = await scene.run('t-1', headers)
    const { traceId } = await scene.lineOf(reply)
    t.match(traceId, /^[\da-f]{32}$/)
    t.not(traceId, CALLERS_TRACE)
    const [request] = await scene.receiver.trace(traceId)
    t.match(request, { parent: '', traceState: '' })
    t.match(sentUpstream(scene)?.get('traceparent'), [new RegExp(`^00-${traceId}-[\\da-f]{16}-01$`)])
    t.notOk(sentUpstream(scene)?.has('tracestate'), 'state of a trace that is not continued')
  }
  t.notOk(scene.receiver.spans.some(({ traceId }) => traceId === CALLERS_TRACE))
})

void test('ids of threads and users are in spans for an operator who asks for them, and the environment names the service', async (t) => {
  const env = {
    THREADWARDEN_TRACE_IDS: 'true',
    OTEL_SERVICE_NAME: 'chat-gateway',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=hush',
  }
  const scene = await traced(t, { env })
  const { traceId } = await scene.lineOf(await scene.run('t-1'))
  const [request] = await scene.receiver.trace(traceId)
  t.match(request?.attributes, { 'threadwarden.thread.id': 't-1', 'user.id': 'corp:alice' })
  t.match(scene.receiver.resources[0], { 'service.name': 'chat-gateway', 'deployment.environment': 'test' })
  t.match(scene.receiver.headers[0], { 'api-key': 'hush', 'content-type': 'application/x-protobuf' })
})

void test('refusals and failures are spans too, and a stream ends with its last event', async (t) => {
  const scene = await traced(t, {
    answering: async (request, response) => {
      const { threadId } = request.json as { readonly threadId: string }
      if (threadId === 'broken') return void response.destroy()
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
      await sleep(120)
      response.end('data: {"type":"RUN_FINISHED"}\n\n')
    },
  })
  const traceOf = async (reply: Reply) => {
    const { traceId } = await scene.lineOf(reply)
    return scene.receiver.trace(traceId)
  }
  const [stream, ...parts] = await traceOf(await scene.run('t-1'))
  const upstream = parts.find(({ name }) => name === 'upstream')
  // The timers of two processes may differ by a millisecond.
  t.ok((stream?.took ?? 0) >= 118, 'the request lasts as long as its stream')
  t.ok((upstream?.took ?? Infinity) < (stream?.took ?? 0), 'the part of the upstream, until the head of its answer')
  const broken = await scene.run('broken')
  t.equal(broken.status, 502)
  const [failed, ...failedParts] = await traceOf(broken)
  t.match(failed, {
    isError: true,
    attributes: { 'http.response.status_code': 502, 'threadwarden.reason': 'upstream-broke-off' },
  })
  t.match(
    failedParts.find(({ name }) => name === 'upstream'),
    { isError: true, attributes: { 'error.type': 'upstream-broke-off' } },
  )
  const refused = await scene.run('t-1', { authorization: 'Bearer forged' })
  const [request, ...refusedParts] = await traceOf(refused)
  t.match(request, { isError: false, attributes: { 'http.response.status_code': 401, 'threadwarden.reason': 'token-malformed' } })
  t.same(
    refusedParts.map(({ name }) => name),
    ['authenticate'],
  )
})

void test('what the sampler leaves out is not sent, and the upstream learns of it', async (t) => {
  const scene = await traced(t, { env: { OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, config: TRUSTED })
  const reply = await scene.run('t-1')
  const { traceId } = await scene.lineOf(reply)
  t.match(sentUpstream(scene)?.get('traceparent'), [new RegExp(`^00-${traceId}-[\\da-f]{16}-00$`)])
  await scene.run('t-1', UNSAMPLED)
  t.match(sentUpstream(scene)?.get('traceparent'), [new RegExp(`^00-${CALLERS_TRACE}-[\\da-f]{16}-00$`)])
  await scene.run('t-1', SAMPLED)
  await scene.receiver.trace(CALLERS_TRACE)
  t.same([...new Set(scene.receiver.spans.map((span) => span.traceId))], [CALLERS_TRACE])
})

void test('a stop sends the last spans, and a receiver that hangs or is down holds nothing up', async (t) => {
  const env = { OTEL_BSP_SCHEDULE_DELAY: '600000' }
  const last = await traced(t, { env })
  const { traceId } = await last.lineOf(await last.run('t-1'))
  t.equal(last.receiver.spans.length, 0)
  t.match(await last.serving.end('SIGTERM'), { code: 0 })
  t.ok((await last.receiver.trace(traceId)).length > 1)

  const hanging = await traced(t)
  hanging.receiver.hang()
  t.equal((await hanging.run('t-1')).status, 200)
  t.match(await hanging.serving.end('SIGTERM'), { code: 0 })

  const down = await traced(t, { endpoint: 'http://127.0.0.1:1' })
  t.equal((await down.run('t-1')).status, 200)
  t.match(await down.serving.line(({ msg }) => msg === 'traces could not be exported'), { level: 'warn', detail: /ECONNREFUSED/ })
  t.equal((await down.run('t-2')).status, 200)
  t.match(await down.serving.end('SIGTERM'), { code: 0 })
})

void test('every worker traces its requests', async (t) => {
  const scene = await traced(t, { config: { workers: 2 } })
  const { traceId, worker } = await scene.lineOf(await scene.run('t-1'))
  t.ok(Number(worker) > 0)
  t.ok((await scene.receiver.trace(traceId)).length > 1)
  t.match(await scene.serving.end('SIGTERM'), { code: 0 })
})

const loadsIn = async (t: Test, environment: Readonly<Record<string, string>>): Promise<readonly string[]> => {
  const { file, folder } = configFile(t)
  const loaded = join(folder, 'loaded')
  const hook = join(folder, 'hook.mjs')
  writeFileSync(loaded, '')
  writeFileSync(
    hook,
    `import { registerHooks } from 'node:module'
import { appendFileSync } from 'node:fs'
registerHooks({ resolve(name, context, next) {
  // prom-client loads the API, which does nothing by itself.
  if (name.startsWith('@opentelemetry/') && name !== '@opentelemetry/api') appendFileSync(${JSON.stringify(loaded)}, name + '\\n')
  return next(name, context)
} })`,
  )
  const process = await serving(t, file, { folder, environment, node: ['--import', hook] })
  await process.end('SIGTERM')
  return readFileSync(loaded, 'utf8').split('\n').filter(Boolean)
}

void test('nothing of the library is loaded unless traces are configured', async (t) => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }
  t.same(await loadsIn(t, {}), [])
  t.same(await loadsIn(t, { ...endpoint, OTEL_SDK_DISABLED: 'true' }), [])
  t.same(await loadsIn(t, { ...endpoint, OTEL_TRACES_EXPORTER: 'none' }), [])
  t.ok((await loadsIn(t, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:1/v1/traces' })).length > 0)
})

void test('values that the environment should not have are reported', async (t) => {
  const env = {
    OTEL_TRACES_SAMPLER: 'sometimes',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_BSP_MAX_QUEUE_SIZE: '-1',
    OTEL_TRACES_EXPORTER: 'zipkin',
  }
  const { serving: process } = await traced(t, { env })
  for (const variable of Object.keys(env))
    t.ok(
      process.lines.some((line) => line['variable'] === variable && line['level'] === 'warn'),
      variable,
    )
})

void test('a trace of a caller', (t) => {
  const parse = (...values: string[]) => traceParentOf(new Map(values.length === 0 ? [] : [['traceparent', values]]))
  const good = `00-${CALLERS_TRACE}-${CALLERS_SPAN}`
  t.same(parse(`${good}-01`), { traceId: CALLERS_TRACE, spanId: CALLERS_SPAN, isSampled: true })
  t.same(parse(`${good}-00`), { traceId: CALLERS_TRACE, spanId: CALLERS_SPAN, isSampled: false })
  t.match(parse(`01-${CALLERS_TRACE}-${CALLERS_SPAN}-01-more`), { isSampled: true }, 'a later version may say more')
  for (const bad of [
    [],
    [`${good}-01`, `${good}-01`],
    [''],
    [good],
    [`${good}-1`],
    [`${good}-01-more`],
    [`ff-${CALLERS_TRACE}-${CALLERS_SPAN}-01`],
    [`00-${CALLERS_TRACE.toUpperCase()}-${CALLERS_SPAN}-01`],
    [`00-${'0'.repeat(32)}-${CALLERS_SPAN}-01`],
    [`00-${CALLERS_TRACE}-${'0'.repeat(16)}-01`],
    [`00-${CALLERS_TRACE}a-${CALLERS_SPAN}-01`],
    [` ${good}-01`],
    [`${good}-01\n`],
    [`${good}-01,${good}-01`],
  ])
    t.equal(parse(...bad), null, JSON.stringify(bad))
  t.end()
})

void test('without traces, the log has the id of a valid trace of the caller', async (t) => {
  const { file, folder } = configFile(t)
  const process = await serving(t, file, { folder })
  const { url } = process.listening as { readonly url: string }
  const idOf = async (headers: Record<string, string>) => {
    const reply = await call(`${url}/api/copilotkit/info`, { headers })
    return (await process.line(({ requestId }) => requestId === reply.headers.get('x-request-id')))['traceId']
  }
  t.equal(await idOf(SAMPLED), CALLERS_TRACE)
  t.equal(await idOf({ traceparent: 'forged' }), undefined)
  t.match(process.listening, { version: /^\d+\.\d+\.\d+/, configuration: /^[\da-f]{16}$/ })
  await until(() => process.lines.length > 2)
})
