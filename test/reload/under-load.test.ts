/**
 * Changes of the configuration under load: nothing is dropped, and no request goes by two configurations. Policy and server
 * headers of each generation bear its letter, so that the upstream sees what a request was made of.
 */
import { test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { events, INFO, json, startUpstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { CHAT, startScene, waitingRun } from './scene.ts'

const CLIENTS = 12
const CHANGES = 40

/** A policy of which only tools and properties of this letter pass. */
const policyOf = (letter: string): string => `${CHAT}tools: [${letter}]\nforwardedProps: [{ name: ${letter} }]\n`

void test('forty changes under load: every request is served, and by exactly one generation', async (t) => {
  const scene = await startScene(t, { 'upstream.headers': { 'x-generation': 'a' } }, policyOf('a'))
  const { upstream, base, gateway } = scene
  upstream.answer(events({ type: 'RUN_STARTED' }, { type: 'RUN_FINISHED' }))
  const tools = ['a', 'b'].map((name) => ({ name, description: '', parameters: {} }))
  const body = (thread: string) => runInput(thread, 'hello', { tools, forwardedProps: { a: 1, b: 1 } })
  let over = false
  const statuses = new Map<number, number>()
  const clients = Array.from({ length: CLIENTS }, async (_none, at) => {
    const token = scene.token(`user-${at}`)
    for (let run = 0; !over; run += 1) {
      const { status, text } = await call(`${base}/agent/default/run`, { token, body: body(`t-${at}-${run % 3}`) })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (!text.includes('RUN_FINISHED')) t.fail('a stream was cut')
    }
  })
  for (let change = 0; change < CHANGES; change += 1) {
    const letter = change % 2 === 0 ? 'b' : 'a'
    scene.writePolicy(policyOf(letter))
    scene.write({ 'upstream.headers': { 'x-generation': letter } })
    const before = upstream.requests.length
    t.match(await gateway.reload('test'), { outcome: 'reloaded', generation: change + 2 })
    await until(() => upstream.requests.length >= before + CLIENTS)
  }
  over = true
  await Promise.all(clients)
  t.same([...statuses.keys()], [200], 'nothing was refused and nothing dropped')
  const seen = new Set(
    upstream.requests.map(({ headers, json }) => {
      const sent = json as { tools: { name: string }[]; forwardedProps: object }
      return [
        headers.get('x-generation')?.join(),
        sent.tools.map(({ name }) => name).join(),
        Object.keys(sent.forwardedProps).join(),
      ].join(' ')
    }),
  )
  t.same([...seen].sort(), ['a a a', 'b b b'], 'headers, tools and properties are of one generation')
  t.match((await scene.health('/metrics')).text, new RegExp(`threadwarden_config_generation ${CHANGES + 1}\\n`))
})

for (const [what, changes] of [
  ['time-outs of the upstream', { 'upstream.timeouts': { connect: '3s' } }],
  ['a header for the upstream', { 'upstream.headers': { 'x-key': 'rotated' } }],
  ['what becomes of unknown threads', { 'ownership.unknownThread': 'deny' }],
] as const) {
  void test(`a body that is on its way when ${what} changed is sent by the connection that it came to`, async (t) => {
    const scene = await startScene(t)
    scene.upstream.answer(events({ type: 'RUN_FINISHED' }))
    const token = scene.token('alice')
    t.equal((await call(`${scene.base}/agent/default/run`, { token, body: runInput('t-1') })).status, 200)
    const run = await waitingRun(scene, token, runInput('t-1'))
    scene.write(changes)
    t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
    t.equal((await call(`${scene.base}/agent/default/run`, { token, body: runInput('t-1') })).status, 200)
    run.send()
    t.match(await run.answer, { status: 200, text: /RUN_FINISHED/ })
  })
}

void test('while a new upstream is asked what it is, the old one serves, and /readyz says nothing of the new one', async (t) => {
  const scene = await startScene(t)
  let asked = (): void => {}
  const isAsked = new Promise<void>((resolve) => (asked = resolve))
  let answer = (): void => {}
  const next = await startUpstream()
  t.teardown(() => next.close())
  next.answerQuestions((request, response) => {
    asked()
    answer = () => void json(INFO)(request, response)
  })
  scene.write({ 'upstream.url': next.url })
  const reloaded = scene.gateway.reload('test')
  await isAsked
  t.equal((await scene.health('/readyz')).status, 200)
  const token = scene.token('alice')
  t.equal((await call(`${scene.base}/info`, { token })).status, 200)
  t.equal(scene.upstream.requests.length, 1)
  answer()
  t.match(await reloaded, { outcome: 'reloaded' })
  t.equal((await call(`${scene.base}/info`, { token })).status, 200)
  t.same([scene.upstream.requests.length, next.requests.length], [1, 1])
  t.equal((await scene.health('/readyz')).status, 200)
})

void test('a gateway that stops takes no change any more, and ends', async (t) => {
  const scene = await startScene(t)
  let asked = (): void => {}
  const isAsked = new Promise<void>((resolve) => (asked = resolve))
  const next = await startUpstream()
  t.teardown(() => next.close())
  let answer = (): void => {}
  next.answerQuestions((request, response) => {
    asked()
    answer = () => void json(INFO)(request, response)
  })
  scene.write({ 'upstream.url': next.url })
  const reloaded = scene.gateway.reload('test')
  await isAsked
  const stopped = scene.gateway.stop(0)
  answer()
  t.match(await reloaded, { outcome: 'refused', generation: 1, faults: [/shutting down/] })
  await stopped
  t.match(await scene.gateway.reload('test'), { outcome: 'refused', generation: 1 })
})

void test('a body that is on its way when the rules change passes by those that are active when it has come', async (t) => {
  const scene = await startScene(t, {}, policyOf('a'))
  const { upstream } = scene
  upstream.answer(events({ type: 'RUN_FINISHED' }))
  const tools = ['a', 'b'].map((name) => ({ name }))
  const forwardedProps = { a: 1, b: 1 }
  const run = await waitingRun(scene, scene.token('alice'), runInput('t-slow', 'hello', { tools, forwardedProps }))
  scene.writePolicy(policyOf('b'))
  scene.write({ 'upstream.headers': { 'x-generation': 'b' } })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  run.send()
  t.match(await run.answer, { status: 200 })
  const sent = upstream.requests.at(-1)
  t.match(sent?.json, { tools: [{ name: 'b' }] })
  t.same((sent?.json as { forwardedProps: object }).forwardedProps, { b: 1 })
  t.same(sent?.headers.get('x-generation'), ['b'], 'and it is sent as the active configuration says')
})
