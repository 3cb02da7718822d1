/**
 * A claim that is left behind by a request that came to nothing: whoever sends refused runs on guessed ids would own them, and
 * their first real user could not (squatting; docs/explanation/ownership.md). Only a run writes a row, and the row goes again where the run
 * certainly did not start. Where it may have started, the row stays: test/http/claim-release.
 */
import { runInput } from '../../testing/support/client.ts'
import { gateBefore, gated, NOWHERE } from '../../testing/support/gated.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { openRaw, sendRaw, type RawRequest } from '../../testing/support/raw.ts'
import { owners, rows } from '../../testing/support/rows.ts'
import { events, json } from '../../testing/support/upstream.ts'
import { BASE, BODY_ROUTES, codeIn, PATH_ROUTES, run } from './thread-routes.ts'

const RUN = `${BASE}/agent/default/run`

void testFirstPair('every other route about an unknown thread writes no row, whatever the upstream says', async (t, pair) => {
  const { gateway, alice, olga, upstream } = await gated(t, undefined, { pair })
  for (const answering of [json({ threads: [{ id: 't1' }] }), json({}, 404), events()]) {
    upstream.answer(answering)
    for (const token of [alice, olga]) {
      for (const { name, to } of [...PATH_ROUTES, ...BODY_ROUTES].filter(({ name }) => name !== 'agent/run')) {
        const answer = await gateway.ask({ ...to('t1'), token })
        t.ok([200, 403, 404].includes(answer.status), name)
      }
      await gateway.ask({ target: `${BASE}/threads`, token })
      t.same(owners(gateway.folder), [])
    }
  }
  t.ok(
    upstream.requests.every(({ target }) => /\/(?:suggest|threads)$/.test(target)),
    'of all these only a suggestion and the list are sent',
  )
})

void testFirstPair('a run that is refused here writes no row', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair, config: { limits: { runBody: '4KiB' } } })
  const body = JSON.stringify(runInput('t1'))
  const framed = (...lines: string[]): Partial<RawRequest> => ({ framing: [...lines, `Content-Length: ${body.length}`] })
  const refused: readonly (readonly [number, RawRequest])[] = [
    [401, { target: RUN, body }],
    [401, { target: RUN, body, token: `${alice}x` }],
    [400, { target: RUN, body, token: alice, lines: [`Authorization: Bearer ${alice}`] }],
    [400, { target: `${RUN}/`, body, token: alice }],
    [400, { target: `${BASE}/agent/x/../default/run`, body, token: alice }],
    [404, { target: `${RUN}/t1`, body, token: alice }],
    [405, { method: 'PUT', target: RUN, body, token: alice }],
    [400, { target: `${BASE}/agent/toString/run`, body, token: alice }],
    [400, { target: RUN, body: JSON.stringify(runInput('clear')), token: alice }],
    [400, { target: RUN, body: JSON.stringify(runInput('')), token: alice }],
    [400, { target: RUN, body: JSON.stringify(runInput(['t1'])), token: alice }],
    [400, { target: RUN, body: `${body}x`, token: alice }],
    [400, { target: RUN, body: `${body.slice(0, -1)},"threadId":"t1"}`, token: alice }],
    [413, { target: RUN, body: JSON.stringify(runInput('t1', 'x'.repeat(5000))), token: alice }],
    [415, { target: RUN, body, token: alice, ...framed('Content-Type: text/plain') }],
    [415, { target: RUN, body, token: alice, ...framed('Content-Type: application/json', 'Content-Encoding: gzip') }],
    [400, { target: RUN, body, token: alice, ...framed('Content-Type: application/json', 'Expect: x') }],
  ]
  for (const [status, request] of refused) {
    t.equal((await gateway.ask(request)).status, status, `${status} ${request.target}`)
    t.same(owners(gateway.folder), [])
  }
  t.equal(upstream.beginnings(), 0)
  t.equal(await run(gateway, alice, 't1'), 200)
  t.same(owners(gateway.folder), ['t1=corp:alice'], 'the honest one does')
})

void testFirstPair('a run that a rule refuses writes no row', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair, config: { ownership: { unknownThread: 'deny' } } })
  t.equal(await run(gateway, alice, 't1'), 403)
  t.same(owners(gateway.folder), [])
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('a run that the upstream refused releases the thread, and another user may claim it', async (t, pair) => {
  const { gateway, alice, bob, upstream } = await gated(t, undefined, { pair })
  for (const status of [400, 401, 402, 403, 404, 405, 409, 410, 413, 415, 418, 422, 429, 451]) {
    const threadId = `t${status}`
    for (const type of ['application/json', 'text/html', 'text/event-stream']) {
      upstream.answer((_request, response) => void response.writeHead(status, { 'content-type': type }).end('{}'))
      t.equal(await run(gateway, alice, threadId), status)
      t.same(owners(gateway.folder), [], `${status} ${type} leaves nothing`)
    }
  }
  upstream.answer(events())
  t.equal(await run(gateway, bob, 't404'), 200)
  t.same(owners(gateway.folder), ['t404=corp:bob'])
  const again = await gateway.ask({ target: RUN, token: alice, body: JSON.stringify(runInput('t404')) })
  t.equal(codeIn(again), 'not-owner')
})

void testFirstPair('many refused runs on many guessed ids leave an empty table', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, json({}, 404), { pair })
  await Promise.all(Array.from({ length: 100 }, (_, at) => run(gateway, alice, `guess-${at % 50}`)))
  t.equal(upstream.requests.length, 100)
  t.same(rows(gateway.folder), [])
})

void testFirstPair('a connection that was refused releases the thread', async (t, pair) => {
  const { gateway, alice } = await gateBefore(t, NOWHERE, { pair })
  t.equal(await run(gateway, alice, 't1'), 502)
  t.same(owners(gateway.folder), [])
})

void testFirstPair('a look at an old thread that fails or finds something claims nothing', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, events(), { pair, config: { ownership: { unknownThread: 'verify' } } })
  for (const [answering, status] of [
    [json({ messages: [{ id: '1' }] }), 403],
    [json({}, 401), 403],
    [json({}, 422), 403],
    [json({}, 500), 502],
  ] as const) {
    upstream.answer(answering)
    t.equal(await run(gateway, alice, 't1'), status)
    t.same(owners(gateway.folder), [])
  }
  t.ok(upstream.requests.every(({ target }) => !target.endsWith('/run')))
})

void testFirstPair('a caller who leaves before the body is whole claims nothing', async (t, pair) => {
  const { gateway, alice, upstream } = await gated(t, undefined, { pair })
  const body = JSON.stringify(runInput('t1'))
  for (const framing of [`Content-Length: ${body.length + 1}`, 'Transfer-Encoding: chunked']) {
    const connection = await openRaw(gateway.url)
    const top = gateway.bytes({
      target: RUN,
      token: alice,
      body: '',
      framing: ['Content-Type: application/json', framing],
      keepAlive: true,
    })
    connection.write(top)
    connection.write(framing.startsWith('Content') ? body : `${body.length.toString(16)}\r\n${body}\r\n`)
    connection.socket.end()
    await connection.ended()
    t.same(owners(gateway.folder), [], framing)
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('a run hidden behind another request claims nothing', async (t, pair) => {
  const { gateway, alice, bob, upstream } = await gated(t, undefined, { pair })
  const inner = gateway.bytes({ target: RUN, token: alice, body: JSON.stringify(runInput('t1')) })
  // The length counts the hidden request in: it is the body of the outer one, and no JSON.
  const outer = { target: RUN, token: bob, body: inner }
  t.match(await sendRaw(gateway.url, gateway.bytes(outer)), /^HTTP\/1\.1 400 /)
  t.same(owners(gateway.folder), [])
  t.equal(upstream.beginnings(), 0)
})
