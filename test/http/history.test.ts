/** What the upstream's answers say of a thread that nobody owns, status by status: only two that are empty are no history. */
import { Readable } from 'node:stream'
import { test } from 'tap'
import { assumedFacts } from '../../src/core/route/transport.ts'
import { makeAskHistory } from '../../src/http/pipeline/history.ts'
import { answerOf, upstreamOf } from '../../testing/support/port.ts'

const NO_MESSAGES = '{"messages":[]}'
const NO_EVENTS = '{"events":[]}'

type Said = readonly [status: number, body: string]

/** Asks an upstream that says this of messages, and of events. */
async function asked(...said: Said[]) {
  const bodies: Readable[] = []
  const targets: string[] = []
  const upstream = upstreamOf(async ({ target }) => {
    const [status, text] = said[targets.length] ?? [500, '']
    const body = Readable.from([Buffer.from(text)])
    targets.push(target)
    bodies.push(body)
    return answerOf(status, body)
  })
  const history = await makeAskHistory(upstream, '/base')(assumedFacts('multi-route'), 't1', {}, new AbortController().signal)
  return { history: typeof history === 'string' ? history : history.reason, bodies, targets }
}

void test('each answer has its meaning, and none is left open', async (t) => {
  for (const [expected, ...said] of [
    ['none', [200, NO_MESSAGES], [200, NO_EVENTS]],
    ['none', [404, ''], [404, '']],
    ['some', [200, '{"messages":[1]}']],
    ['some', [200, NO_EVENTS]],
    ['some', [200, NO_MESSAGES], [200, '{"events":[1]}']],
    ['some', [200, 'nonsense']],
    ['none', [200, NO_MESSAGES.padEnd(64 * 1024)], [200, NO_EVENTS]],
    ['some', [200, NO_MESSAGES.padEnd(64 * 1024 + 1)]],
    ['some', [400, '']],
    ['some', [499, '']],
    ['cannot-tell', [422, '']],
    ['cannot-tell', [404, ''], [422, '']],
    ['upstream-answer-unreadable', [399, '']],
    ['upstream-answer-unreadable', [500, '']],
    ['upstream-answer-unreadable', [201, NO_MESSAGES]],
  ] as const satisfies readonly (readonly [string, ...Said[]])[]) {
    const { history, bodies, targets } = await asked(...said)
    t.equal(history, expected, JSON.stringify(said).slice(0, 80))
    t.same(targets, ['/base/threads/t1/messages', '/base/threads/t1/events'].slice(0, said.length))
    t.ok(bodies.every((body) => body.destroyed))
  }
})

/** Asks an upstream that answers the first question like this, and tells whether a change was suspected. */
async function answered(status: number, type: string, text: string, facts = assumedFacts('single-route')) {
  let suspected = 0
  let asked = 0
  const upstream = upstreamOf(async () => {
    asked += 1
    return answerOf(status, text, { 'content-type': type })
  })
  const ask = makeAskHistory(upstream, '/base', () => (suspected += 1))
  const history = await ask(facts, 't1', {}, new AbortController().signal)
  return [typeof history === 'string' ? history : history.reason, suspected, asked]
}

void test('what a runtime of the other transport says is no history and no word that there is none', async (t) => {
  const json = 'application/json'
  const code = JSON.stringify({ error: 'Not found', code: 'single_route_envelope_against_multi_route_runtime' })
  t.same(await answered(404, json, code), ['upstream-answer-unreadable', 1, 1])
  t.same(await answered(404, 'text/html; charset=utf-8', '<h1>no</h1>'), ['upstream-answer-unreadable', 1, 1])
  t.same(await answered(405, json, '{}'), ['upstream-answer-unreadable', 1, 1])
  t.same(await answered(415, json, '{}'), ['upstream-answer-unreadable', 1, 1])
  t.same(await answered(404, json, '{"error":"no such thread"}'), ['none', 0, 2])
})

void test('a runtime that has no histories is not asked for them', async (t) => {
  for (const facts of [assumedFacts('multi-route'), assumedFacts('single-route')]) {
    t.same(await answered(404, 'application/json', '', { ...facts, histories: false }), ['cannot-tell', 0, 0])
    t.same(await answered(404, 'application/json', '', { ...facts, histories: true }), ['none', 0, 2])
  }
})
