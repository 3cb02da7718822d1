/** Who else gets at the upstream. */
import { test } from 'tap'
import { startRuntime, type RuntimeOptions } from '../../examples/runtime.ts'
import { ownAddresses } from '../../src/http/upstream/exposure.ts'
import { INFO, json, startUpstream } from '../../testing/support/upstream.ts'
import { examined, hush, type Findings } from './examination.ts'

async function examinedRuntime(t: Parameters<typeof examined>[0], options: RuntimeOptions): Promise<Findings> {
  hush(t)
  const runtime = await startRuntime(options)
  t.teardown(() => runtime.close())
  return examined(t, { 'upstream.url': runtime.url }, { machine: { addresses: ownAddresses() } })
}

void test('an open debug stream is a problem', async (t) => {
  const { of } = await examinedRuntime(t, { debug: true })
  t.match(of('upstream.debug'), { level: 'problem', message: /reads the messages of all threads/, remedy: /NODE_ENV=production/ })
})

for (const mode of ['multi-route', 'single-route'] as const) {
  void test(`a closed one is not (${mode})`, async (t) => {
    const { of } = await examinedRuntime(t, { mode, debug: mode === 'single-route' })
    t.match(of('upstream.debug'), { level: 'ok' })
  })
}

for (const mode of ['multi-route', 'single-route'] as const) {
  void test(`a runtime that admits every origin is a warning (${mode})`, async (t) => {
    const open = await examinedRuntime(t, { mode, adapter: 'express' })
    t.match(open.of('upstream.cors'), { level: 'warning', message: /every origin with "\*"/, remedy: /cors: false/ })
    const closed = await examinedRuntime(t, { mode, adapter: 'express', cors: false })
    t.match(closed.of('upstream.cors'), { level: 'ok' })
  })
}

void test('one that repeats the origin of whoever asks is one, too', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.answerQuestions((request, response) => {
    const origin = request.headers.get('origin')?.[0] ?? 'null'
    const cors = { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' }
    return json(INFO, 200, cors)(request, response)
  })
  const { of } = await examined(t, { 'upstream.url': upstream.url })
  t.match(of('upstream.cors'), { level: 'warning', message: /by repeating the origin of the request, credentials included/ })
})

void test('an upstream beside the gateway that listens on loopback alone is fine', async (t) => {
  const { of } = await examinedRuntime(t, {})
  t.match(of('upstream.exposure'), { level: 'ok', message: /listens only on loopback/ })
})

void test('one that others reach is a problem, and the addresses are named', async (t) => {
  const upstream = await startUpstream(json({}), { host: '0.0.0.0' })
  t.teardown(() => upstream.close())
  // Another loopback address stands for one that others reach.
  const { of } = await examined(t, { 'upstream.url': upstream.url }, { machine: { addresses: ['127.0.0.2'] } })
  t.match(of('upstream.exposure'), { level: 'problem', message: /also open on 127\.0\.0\.2:\d+/, remedy: /only on 127\.0\.0\.1/ })
})

void test('an upstream on another machine should ask for a secret', async (t) => {
  const address = ownAddresses().find((one) => !one.includes(':'))
  if (address === undefined) return t.pass('this machine has no other address')
  const upstream = await startUpstream(json({}), { host: '0.0.0.0' })
  t.teardown(() => upstream.close())
  const url = upstream.url.replace('127.0.0.1', address)
  const none = await examined(t, { 'upstream.url': url })
  t.match(none.of('upstream.exposure'), { level: 'warning', message: /requires no secret/, remedy: /upstream\.headers/ })
  const headers = { 'x-api-key': 'a-long-secret' }
  const vain = await examined(t, { 'upstream.url': url, 'upstream.headers': headers })
  t.match(vain.of('upstream.exposure'), { level: 'warning', message: /does not check upstream\.headers/ })
  upstream.answerQuestions((request, response) => json(INFO, request.headers.has('x-api-key') ? 200 : 401)(request, response))
  const kept = await examined(t, { 'upstream.url': url, 'upstream.headers': headers })
  t.match(kept.of('upstream.exposure'), { level: 'ok', message: /requires the secret/ })
  return undefined
})

void test('nothing is said of the exposure of an upstream that gives no answer', async (t) => {
  const { of } = await examined(t, { 'upstream.url': 'http://127.0.0.1:1' }, { machine: { addresses: ownAddresses() } })
  t.match(of('upstream.reachable'), { level: 'problem' })
  t.match(of('upstream.exposure'), { level: 'unknown', message: 'not checked: the upstream gives no answer' })
})
