/** An upstream that changes its transport: noticed at the first telling answer, or when it is asked the next time. */
import { test, type Test } from 'tap'
import { startRuntime } from '../../examples/runtime.ts'
import { makeReadiness } from '../../src/http/listeners/readiness.ts'
import { makeTransportProbe, type ProbeParts } from '../../src/http/upstream/transport-probe.ts'
import { openUpstream } from '../../src/http/upstream/upstream.ts'
import { makeLog } from '../../src/observe/log.ts'
import { call, runInput } from '../../testing/support/client.ts'
import { gateBefore, type Gated } from '../../testing/support/gated.ts'
import { owners } from '../../testing/support/rows.ts'
import { INFO, json, startUpstream, type Answering, type Upstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

const AUTO = { config: { upstream: { transport: 'auto' } } }
const NOT_HERE = json({ error: 'Not found' }, 404)
const NOT_THIS_METHOD = json({ error: 'Method not allowed' }, 405, { allow: 'POST' })

/** Answers to the gateway's questions, and to requests, of a runtime of either transport. */
const AS: Record<string, Answering> = {
  'multi-route': (request, response) => (request.method === 'GET' ? json(INFO) : NOT_HERE)(request, response),
  'single-route': (request, response) => (request.method === 'POST' ? json(INFO) : NOT_THIS_METHOD)(request, response),
}

function saidChanged({ gateway }: Gated): boolean {
  return gateway.lines.some((line) => line['msg'] === 'the upstream has changed its transport')
}

// The next question is 15 s away; the time-out says that nobody waited for it.
for (const [from, to] of [
  ['multi-route', 'single-route'],
  ['single-route', 'multi-route'],
] as const) {
  void test(`a change from ${from} to ${to} is noticed at the first telling answer`, { timeout: 10_000 }, async (t) => {
    const upstream = await startUpstream(AS[from])
    t.teardown(() => upstream.close())
    upstream.answerQuestions(AS[from]!)
    const gate = await gateBefore(t, upstream.url, AUTO)
    await gate.gateway.ready()
    t.equal((await call(`${gate.base}/info`, { token: gate.alice })).status, 200)
    upstream.answer(AS[to]!)
    upstream.answerQuestions(AS[to]!)
    const telling = await call(`${gate.base}/info`, { token: gate.alice })
    t.equal(telling.status, to === 'single-route' ? 405 : 404, 'its own answer passes')
    await until(() => saidChanged(gate))
    t.equal((await call(`${gate.base}/info`, { token: gate.alice })).status, 200)
  })
}

void test(
  'a runtime that comes back as the other kind is found, and its threads keep their owners',
  { timeout: 30_000 },
  async (t) => {
    let runtime = await startRuntime({ mode: 'multi-route' })
    const gate = await gateBefore(t, runtime.url, AUTO)
    await gate.gateway.ready()
    t.teardown(() => runtime.close())
    const run = (token: string): Promise<{ readonly status: number }> =>
      call(`${gate.base}/agent/default/run`, { token, body: runInput('t1') })
    t.equal((await run(gate.alice)).status, 200)
    for (const mode of ['single-route', 'multi-route'] as const) {
      await runtime.close()
      t.equal((await run(gate.alice)).status, 502, 'away')
      runtime = await startRuntime({ mode, port: runtime.port })
      await until(async () => (await run(gate.alice)).status === 200)
      t.equal((await run(gate.bob)).status, 403)
      t.same(owners(gate.gateway.folder), ['t1=corp:alice'])
    }
  },
)

/** A probe that has its first answer, and how often it has asked. */
async function probing(t: Test, intervals: ProbeParts['intervals'], more: Partial<ProbeParts> = {}) {
  const asked: Upstream = await startUpstream()
  t.teardown(() => asked.close())
  const upstream = openUpstream({ url: asked.url, timeouts: { connect: 1000, headers: 1000, body: 0 } })
  t.teardown(() => upstream.close())
  const readiness = makeReadiness()
  const probe = makeTransportProbe({
    upstream,
    basePath: '/api/copilotkit',
    headers: {},
    named: null,
    readiness,
    onVersion: () => {},
    onNews: () => {},
    log: makeLog('silent'),
    intervals,
    ...more,
  })
  t.teardown(() => probe.stop())
  await probe.start()
  return { asked, probe, readiness }
}

void test('however many answers are telling, one question is asked', async (t) => {
  const { asked, probe } = await probing(t, { pending: 10, known: 3_600_000 })
  t.equal(asked.questions.length, 1)
  for (let times = 0; times < 1000; times += 1) probe.suspect()
  await until(() => asked.questions.length === 2)
  for (let times = 0; times < 1000; times += 1) probe.suspect()
  await until(() => asked.questions.length === 3)
  t.equal(asked.questions.length, 3)
})

void test('what is told while an answer is awaited is asked again: that answer may be older', async (t) => {
  const { asked, probe } = await probing(t, { pending: 10, known: 3_600_000 })
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  asked.answerQuestions(async (request, response) => {
    await held
    return AS['multi-route']!(request, response)
  })
  probe.suspect()
  await until(() => asked.questions.length === 2)
  probe.suspect()
  asked.answerQuestions(AS['single-route']!)
  release()
  await until(() => probe.facts?.transport === 'single-route')
  t.strictSame(probe.facts, { transport: 'single-route', resources: false, histories: null, lists: null, managed: false })
})

void test('an upstream that is away, or has too much to do, keeps its standing', async (t) => {
  const { asked, probe, readiness } = await probing(t, { pending: 10, known: 3_600_000 })
  for (const status of [500, 502, 503, 429, 408]) {
    const before = asked.questions.length
    asked.answerQuestions(json({}, status))
    probe.suspect()
    await until(() => asked.questions.length > before + 1)
    t.equal(probe.facts?.transport, 'multi-route', `${status}`)
    t.match(readiness.pending().get('upstream'), `answered ${status}`)
  }
  asked.answerQuestions(AS['multi-route']!)
  await until(() => !readiness.pending().has('upstream'))
})

void test('an upstream that turns out to be no runtime loses it', async (t) => {
  const { asked, probe } = await probing(t, { pending: 10, known: 3_600_000 })
  asked.answerQuestions(json({ status: 'ok' }))
  probe.suspect()
  await until(() => probe.facts === null)
  t.equal(probe.facts, null)
})

void test('an upstream that answers in both ways is taken at its paths, or as it is named', async (t) => {
  for (const [named, transport] of [
    [null, 'multi-route'],
    ['multi-route', 'multi-route'],
    ['single-route', 'single-route'],
  ] as const) {
    const { probe, asked } = await probing(t, { pending: 10, known: 3_600_000 }, { named })
    asked.answerQuestions(json(INFO))
    probe.suspect()
    await until(() => probe.facts !== null)
    t.equal(probe.facts?.transport, transport)
  }
})

void test('what a named upstream has said of itself is not forgotten when it has no answer', async (t) => {
  const { asked, probe } = await probing(t, { pending: 10, known: 3_600_000 }, { named: 'multi-route' })
  asked.answerQuestions(json({ ...INFO, mode: 'intelligence' }))
  probe.suspect()
  await until(() => probe.facts?.managed === true)
  const before = asked.questions.length
  asked.answerQuestions(NOT_HERE)
  probe.suspect()
  await until(() => asked.questions.length > before + 1)
  t.equal(probe.facts?.managed, true)
})

void test('whoever has to know is told when the upstream has become another one, and not else', async (t) => {
  const told: unknown[] = []
  const onNews: ProbeParts['onNews'] = ({ managed }) => void told.push(managed)
  const { asked, probe } = await probing(t, { pending: 1, known: 3_600_000 }, { onNews })
  for (const mode of ['sse', 'intelligence', 'intelligence', 'sse']) {
    const before = asked.questions.length
    asked.answerQuestions(json({ ...INFO, mode }))
    probe.suspect()
    await until(() => asked.questions.length > before && (mode === 'intelligence') === probe.facts?.managed)
  }
  t.same(told, [false, true, false])
})

void test('the more suspicions come to nothing, the longer is the pause before the next question', async (t) => {
  const pending = 20
  const { asked, probe } = await probing(t, { pending, known: 3_600_000 })
  const times = [performance.now()]
  for (let turn = 1; turn <= 4; turn += 1) {
    probe.suspect()
    await until(() => asked.questions.length > turn)
    times.push(performance.now())
  }
  // Nothing is said of how late a question may be: a timer is never early, and that is what is promised.
  const pauses = times.slice(1).map((time, at) => time - times[at]!)
  for (const [at, pause] of pauses.entries()) {
    if (at > 0) t.ok(pause >= pending * 2 ** at * 0.8, `pause ${at}: ${Math.round(pause)} ms`)
  }
  asked.answerQuestions(AS['single-route']!)
  probe.suspect()
  await until(() => probe.facts?.transport === 'single-route')
  const before = asked.questions.length
  probe.suspect()
  await until(() => asked.questions.length > before)
  t.pass('and is found all the same')
})
