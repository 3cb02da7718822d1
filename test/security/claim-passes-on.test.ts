/**
 * Attack: a caller opens a stream on a thread that is nobody's, or theirs for as long as their first run is not refused, and keeps
 * it when the thread becomes somebody else's (CWE-613, CWE-863). Claims are no news to anybody: what rests on no settled owner is
 * asked about by itself.
 */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { test, type Test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { head, openRaw, type RawConnection } from '../../testing/support/raw.ts'
import { owners } from '../../testing/support/rows.ts'
import { until } from '../../testing/support/until.ts'
import { events, json } from '../../testing/support/upstream.ts'

const ENDED = /"code":"not-allowed"/

/** Opens a stream on t1, and waits until it has begun. */
async function opened(t: Test, url: string, token: string, route: string): Promise<RawConnection> {
  const stream = await openRaw(url)
  t.teardown(() => stream.destroy())
  const body = JSON.stringify(runInput('t1'))
  const lines = ['Host: a', `Authorization: Bearer ${token}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
  stream.write(head(`POST /api/copilotkit/agent/default/${route} HTTP/1.1`, ...lines) + body)
  await stream.until('RUN_STARTED')
  return stream
}

/** An upstream that keeps connects and suggestions of alice open, and holds her first run. */
async function scene(t: Test) {
  const streams: ServerResponse[] = []
  let refuse: (() => void) | null = null
  const gate = await gated(t, (request, response) => {
    if (request.headers.get('authorization')?.[0] !== `Bearer ${gate.alice}`) return events()(request, response)
    if (request.target.endsWith('/run')) {
      refuse = () => void json({ error: 'no' }, 404)(request, response)
      return
    }
    streams.push(response)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
  })
  const open = (route: string): Promise<RawConnection> => opened(t, gate.gateway.url, gate.alice, route)
  const run = (token: string) => call(`${gate.base}/agent/default/run`, { token, body: runInput('t1') })
  return { ...gate, streams, open, run, refuses: () => refuse !== null, refuse: () => refuse?.() }
}

void test('a connect that rested on a run that was refused ends', async (t) => {
  const all = await scene(t)
  const first = all.run(all.alice)
  await until(() => all.refuses())
  const stream = await all.open('connect')
  all.refuse()
  t.equal((await first).status, 404)
  t.same(owners(all.gateway.folder), [])
  t.equal((await all.run(all.bob)).status, 200)
  t.same(owners(all.gateway.folder), ['t1=corp:bob'])
  const writing = setInterval(() => all.streams.forEach((one) => one.write('data: {"of":"bob"}\n\n')), 50)
  t.teardown(() => clearInterval(writing))
  await until(() => ENDED.test(stream.text()))
})

void test('a suggestion on a thread that was nobody’s ends when somebody claims it', async (t) => {
  const all = await scene(t)
  const stream = await all.open('suggest')
  t.equal((await all.run(all.bob)).status, 200)
  t.same(owners(all.gateway.folder), ['t1=corp:bob'])
  await until(() => ENDED.test(stream.text()))
})

void test('a suggestion that the upstream answers after another user has claimed the thread is not delivered', async (t) => {
  let answer: (() => void) | null = null
  const gate = await gated(t, (request, response) => {
    if (!request.target.endsWith('/suggest')) return events()(request, response)
    answer = () => void events({ type: 'TEXT_MESSAGE_CONTENT', delta: 'of bob' })(request, response)
  })
  const suggested = call(`${gate.base}/agent/default/suggest`, { token: gate.alice, body: runInput('t1') })
  await until(() => answer !== null)
  t.equal((await call(`${gate.base}/agent/default/run`, { token: gate.bob, body: runInput('t1') })).status, 200)
  answer!()
  const late = await suggested
  t.same([late.status, codeOf(late)], [403, 'not-owner'])
  t.notMatch(late.text, 'of bob')
})

void test('a connect that was the owner’s until they deleted the thread ends when it is forgotten and claimed', async (t) => {
  const { base, alice, bob, upstream, gateway } = await gated(t)
  const run = (token: string) => call(`${base}/agent/default/run`, { token, body: runInput('t1') })
  t.equal((await run(alice)).status, 200)
  upstream.answer((request, response) => {
    if (request.method === 'DELETE') return json({})(request, response)
    if (request.target.endsWith('/run')) return events()(request, response)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')
  })
  const stream = await opened(t, gateway.url, alice, 'connect')
  t.equal((await call(`${base}/threads/t1`, { method: 'DELETE', token: alice })).status, 200)
  const database = new Database(join(gateway.folder, 'ownership.db'))
  t.equal(database.prepare('DELETE FROM threads WHERE upstream_deleted = 1').run().changes, 1, 'as the retention does')
  database.close()
  t.equal((await run(bob)).status, 200)
  await until(() => ENDED.test(stream.text()))
})
