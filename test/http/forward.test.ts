/** The forwarder by itself: it takes permits and nothing else, and tells the failures of the upstream from callers who left. */
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { PassThrough } from 'node:stream'
import { test } from 'tap'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { decide, type Permit } from '../../src/core/decide/decide.ts'
import { EVERYBODY } from '../../src/core/decide/principal.ts'
import { assumedFacts } from '../../src/core/route/transport.ts'
import { refuse } from '../../src/core/reasons.ts'
import { streamedBody } from '../../src/http/upstream/answer-body.ts'
import { makeForwarder } from '../../src/http/upstream/forward.ts'
import type { Settlement } from '../../src/http/pipeline/settlement.ts'
import { makeOpenAnswers, type OpenAnswers } from '../../src/http/upstream/open-answers.ts'
import { makeLog } from '../../src/observe/log.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { rulesOf } from '../../testing/support/rules-of.ts'
import { compiled, SHIPPED } from '../../testing/support/policies.ts'
import { answerOf, portOf, upstreamOf } from '../../testing/support/port.ts'
import { authorized } from '../../testing/support/requests.ts'
import { responseOver } from '../../testing/support/stream-caller.ts'

const GONE = { outcome: 'failed', refusal: refuse('upstream-unreachable'), maybeSent: false, detail: 'ECONNREFUSED' } as const

/** A forwarder before an upstream that is away, and what it was told to send, to count and to log. */
function forwarding() {
  const sent: string[] = []
  const counted: string[] = []
  const lines: Record<string, unknown>[] = []
  const upstream = upstreamOf(async ({ target, headers }) => {
    sent.push(target)
    if (target.endsWith('/info') && 'content-type' in headers) throw new Error('a type of a body that is not there')
    return GONE
  })
  const forwarder = makeForwarder({
    upstream,
    basePath: '/base',
    identity: () => ({}),
    headerRules: { server: {}, forward: [], forwardAuthorization: true, forwardCookies: [] },
    transport: { suspect: () => {} },
    settlement: { settle: async () => {} } satisfies Settlement,
    answers: makeOpenAnswers(Date.now, makeMetrics().streams),
    answerRules: { keepAlive: 0, tokenExpiry: 'ignore', grace: 0, sendTimeout: 0 },
    metrics: { ...makeMetrics().requests, upstreamFailed: (reason) => void counted.push(reason) },
    log: makeLog('info', { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) }),
  })
  return { forwarder, sent, counted, lines }
}

const FACTS = { userScoped: false, unknownThread: 'claim', enforcement: 'enforce' } as const

/** A permit, by default to ask for /info. */
function permitted(descriptor = classify('GET', ['info'], new Map()) as RouteDescriptor): Permit {
  const decision = decide(descriptor, EVERYBODY, compiled(SHIPPED).rules, FACTS)
  if (decision.outcome !== 'permitted') throw new Error('not permitted')
  return decision
}

void test('nothing is sent without a permit that the decision made, however much it looks like one', async (t) => {
  const { forwarder, sent } = forwarding()
  const permit = permitted()
  for (const forged of [
    Object.assign({}, permit),
    Object.create(permit) as Permit,
    JSON.parse(JSON.stringify(permit)) as Permit,
  ]) {
    await t.rejects(forwarder.ask(authorized(forged)), /without a permit/)
    await t.rejects(
      forwarder.pass(authorized(forged), () => {}),
      /without a permit/,
    )
  }
  t.same(sent, [])
  t.same(await forwarder.ask(authorized(permit)), GONE)
  t.same(sent, ['/base/info'])
})

void test('what the gateway answers itself goes to nobody, whatever permit there is for it', async (t) => {
  const { forwarder, sent } = forwarding()
  const grants = classify('GET', ['threadwarden', 'threads', 't1', 'grants'], new Map()) as RouteDescriptor
  const record = { owner: EVERYBODY.id, deleted: false }
  const own = decide(grants, EVERYBODY, rulesOf({ 'threads/grants': [{ threads: ['own'] }] }), { ...FACTS, record }) as Permit
  await t.rejects(forwarder.ask(authorized(own)), /the gateway answers this request itself/)
  await t.rejects(
    forwarder.pass(authorized(own), () => {}),
    /the gateway answers this request itself/,
  )
  await t.rejects(
    forwarder.pass(authorized(permitted(), { payload: { kind: 'own', body: {} } }), () => {}),
    /the gateway answers this request itself/,
  )
  t.same(sent, [])
})

void test('a recording that could not be sent is let go', async (t) => {
  const { forwarder } = forwarding()
  const body = new PassThrough()
  const payload = { kind: 'stream', type: 'multipart/form-data; boundary=b', length: undefined, body } as const
  const classified = classify('POST', ['transcribe'], new Map()) as RouteDescriptor
  const sending = forwarder.pass(authorized(permitted(classified), { payload }), () => {})
  t.match(await sending, { status: 502 })
  t.ok(body.destroyed)
})

void test('a failure is counted and logged with what is known of it', (t) => {
  const { forwarder, counted, lines } = forwarding()
  const { exchange } = authorized(permitted())
  t.match(forwarder.failed(GONE, exchange), { status: 502, body: '"code":"upstream-unreachable"' })
  t.equal(exchange.record.reason, 'upstream-unreachable')
  t.same(counted, ['upstream-unreachable'])
  t.match(lines, [{ level: 'warn', requestId: 'id-1', reason: 'upstream-unreachable', detail: 'ECONNREFUSED' }])
  t.end()
})

void test('a caller who left is no failure of the upstream’s', (t) => {
  const { forwarder, counted, lines } = forwarding()
  const { exchange } = authorized(permitted())
  forwarder.failed({ ...GONE, refusal: refuse('caller-left') }, exchange)
  t.equal(exchange.record.reason, 'caller-left')
  t.same(counted, [])
  t.same(lines, [])
  t.end()
})

/** A plain answer that has begun, and the caller's side of it. */
function begun() {
  const body = new PassThrough()
  // Like node's own response, it does not destroy itself where it fails.
  const response = Object.assign(new PassThrough({ autoDestroy: false }), { writeHead: () => response })
  const answer = {
    outcome: 'answered',
    status: 200,
    headers: { 'content-type': 'text/plain' },
    body: streamedBody(body),
  } as const
  return { body, response: responseOver(response), answer }
}

void test('an answer and its caller end together, whichever of them breaks', async (t) => {
  const { forwarder } = forwarding()
  const closed = (one: Readable | ServerResponse) => new Promise((resolve) => one.once('close', resolve))

  const left = begun()
  void forwarder.deliver(left.answer, authorized(permitted(), { response: left.response }))
  left.response.destroy()
  await closed(left.body)
  t.ok(left.body.destroyed, 'the caller left')

  const failed = begun()
  void forwarder.deliver(failed.answer, authorized(permitted(), { response: failed.response }))
  failed.response.emit('error', new Error('the connection failed'))
  t.ok(failed.response.destroyed, 'no error of a caller’s may reach the process')
  await closed(failed.body)

  const broken = begun()
  void forwarder.deliver(broken.answer, authorized(permitted(), { response: broken.response }))
  broken.body.destroy(new Error('the upstream broke off'))
  await closed(broken.response)
  t.ok(broken.response.destroyed, 'no short answer that looks whole')

  const late = begun()
  late.response.destroy()
  await closed(late.response)
  void forwarder.deliver(late.answer, authorized(permitted(), { response: late.response }))
  t.ok(late.body.destroyed, 'the caller had left before')
})

void test('only an answer that the other transport would give makes the gateway ask what the upstream is', async (t) => {
  for (const [transport, telling] of [
    ['single-route', [404]],
    ['multi-route', [400, 404, 405, 415]],
  ] as const) {
    for (const status of [200, 204, 400, 401, 403, 404, 405, 409, 415, 422, 500, 503]) {
      let suspected = 0
      const forwarder = makeForwarder({
        upstream: upstreamOf(async () => answerOf(status)),
        basePath: '/base',
        headerRules: { server: {}, forward: [], forwardAuthorization: true, forwardCookies: [] },
        identity: () => ({}),
        transport: { suspect: () => (suspected += 1) },
        settlement: { settle: async () => {} },
        answers: portOf<OpenAnswers>({}),
        answerRules: { keepAlive: 0, tokenExpiry: 'ignore', grace: 0, sendTimeout: 0 },
        metrics: makeMetrics().requests,
        log: makeLog('silent'),
      })
      await forwarder.ask(authorized(permitted(), { upstream: assumedFacts(transport) }))
      t.equal(suspected, (telling as readonly number[]).includes(status) ? 1 : 0, `${transport} ${status}`)
    }
  }
})
