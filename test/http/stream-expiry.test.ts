/** Streams whose credential ends: at once, after a grace, or not; and streams whose credential was revoked. */
import { test, type Test } from 'tap'
import { runInput, call, codeOf } from '../../testing/support/client.ts'
import { gateBefore, gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { head, openRaw } from '../../testing/support/raw.ts'
import { owners } from '../../testing/support/rows.ts'
import { until } from '../../testing/support/until.ts'
import { events, type Answering } from '../../testing/support/upstream.ts'

/** A stream that has begun and does not end by itself. */
const begun: Answering = (_request, response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')

/** A gateway whose clock is that of the tokens, to the second. */
function gate(t: Test, streams: object): Promise<GatedUpstream> {
  return gated(t, begun, { config: { streams } })
}

/** A run by a token with so many seconds left; resolves with the text of the stream when that has ended. */
async function run({ base, signer }: GatedUpstream, seconds: number, thread = 't1'): Promise<string> {
  const now = Math.floor(Date.now() / 1000)
  const token = signer.sign('alice', { iat: now, exp: now + seconds })
  const answer = await call(`${base}/agent/default/run`, { token, body: runInput(thread) })
  return answer.text
}

const EXPIRED = 'data: {"type":"RUN_ERROR","message":"Your sign-in has expired: sign in again.","code":"credential-expired"}\n\n'

// Tokens are good for 30 s more by the default tolerance: one that ended 26 s ago has some seconds left, enough to begin.
void test('close: a stream ends with its token, with an event that says why, and the upstream is left', async (t) => {
  const gateway = await gate(t, { tokenExpiry: 'close' })
  const text = await run(gateway, -26)
  t.ok(text.endsWith(EXPIRED), text)
  // The run itself goes on: leaving does not stop it.
  await until(() => gateway.upstream.requests.at(-1)?.left() === true)
})

void test('grace: a stream may go on for a bounded time', async (t) => {
  const gateway = await gate(t, { tokenExpiry: 'grace', grace: '100ms' })
  t.ok((await run(gateway, -26)).endsWith(EXPIRED))
})

void test('a stream that is over before its token is not touched', async (t) => {
  const gateway = await gated(t, events({ type: 'RUN_FINISHED' }), { config: { streams: { tokenExpiry: 'close' } } })
  t.equal(await run(gateway, -26), 'data: {"type":"RUN_FINISHED"}\n\n')
})

/** Waits until this many streams are open: what has only reached the upstream is refused in place of being ended. */
async function streaming({ gateway }: Pick<GatedUpstream, 'gateway'>, count: number): Promise<void> {
  const metrics = async () => (await fetch(`${gateway.healthUrl}/metrics`)).text()
  await until(async () => (await metrics()).includes(`threadwarden_open_streams ${count}\n`))
}

void test('a user who is revoked is refused from then on, and their streams end, in every gateway on the store', async (t) => {
  const credential = 'c'.repeat(40)
  const first = await gated(t, begun, { config: { admin: { port: 0, credential } } })
  const second = await gateBefore(t, first.upstream.url, { shared: first.gateway.folder, signer: first.signer })
  const own = call(`${first.base}/agent/default/run`, { token: first.alice, body: runInput('t1') })
  const other = call(`${second.base}/agent/default/run`, { token: first.alice, body: runInput('t2') })
  const bobs = call(`${second.base}/agent/default/run`, { token: first.bob, body: runInput('t3') })
  await streaming(first, 1)
  await streaming(second, 2)
  const revoked = await call(`${first.gateway.adminUrl}/revocations`, { token: credential, body: { user: 'corp:alice' } })
  t.equal(revoked.status, 201)
  for (const stream of [own, other]) {
    t.match(
      (await stream).text,
      /"type":"RUN_ERROR","message":"Your access was revoked: sign in again.","code":"credential-invalid"/,
    )
  }
  for (const { base } of [first, second]) {
    const refused = await call(`${base}/info`, { token: first.alice })
    t.same([refused.status, codeOf(refused)], [401, 'credential-invalid'])
  }
  t.ok(first.gateway.lines.some((line) => line['reason'] === 'token-revoked'))
  t.notOk(JSON.stringify(first.gateway.lines).includes(credential))
  await second.gateway.stop(0)
  t.match((await bobs).text, 'shutting-down', 'nobody else noticed anything')
})

void test('a token is revoked by its id, and the user’s others are not', async (t) => {
  const credential = 'c'.repeat(40)
  const { base, gateway, signer } = await gated(t, events(), { config: { admin: { port: 0, credential } } })
  const [stolen, other] = [signer.sign('alice', { jti: 'stolen' }), signer.sign('alice', { jti: 'other' })]
  t.equal((await call(`${base}/info`, { token: stolen })).status, 200)
  await call(`${gateway.adminUrl}/revocations`, { token: credential, body: { tokenId: 'stolen' } })
  t.equal((await call(`${base}/info`, { token: stolen })).status, 401, 'though it was remembered as good')
  t.equal((await call(`${base}/info`, { token: other })).status, 200)
  t.equal((await call(`${gateway.adminUrl}/revocations/token/stolen`, { method: 'DELETE', token: credential })).status, 204)
  t.equal((await call(`${base}/info`, { token: stolen })).status, 200)
})

void test('a request that was admitted before the revocation starts nothing after it', async (t) => {
  const credential = 'c'.repeat(40)
  const gate = await gated(t, events(), { config: { admin: { port: 0, credential } } })
  const body = JSON.stringify(runInput('t1'))
  const connection = await openRaw(gate.gateway.url)
  connection.write(
    head(
      'POST /api/copilotkit/agent/default/run HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${gate.alice}`,
      'Content-Type: application/json',
      'Expect: 100-continue',
      `Content-Length: ${body.length}`,
    ),
  )
  // The interim answer says that the head was admitted, and the body is awaited.
  await connection.until('100 Continue')
  await call(`${gate.gateway.adminUrl}/revocations`, { token: credential, body: { user: 'corp:alice' } })
  connection.write(body)
  t.match(await connection.until('credential-invalid'), 'HTTP/1.1 401')
  t.same(gate.upstream.requests, [])
  t.same(owners(gate.gateway.folder), [], 'nothing was claimed')
  connection.destroy()
})

void test('a stream that the upstream begins after the revocation ends at once', async (t) => {
  const credential = 'c'.repeat(40)
  let begin = (): void => {}
  const waiting: Answering = (request, response) => void (begin = () => void begun(request, response))
  const gate = await gated(t, waiting, { config: { admin: { port: 0, credential } } })
  const stream = call(`${gate.base}/agent/default/run`, { token: gate.alice, body: runInput('t1') })
  await gate.upstream.arrived(1)
  await call(`${gate.gateway.adminUrl}/revocations`, { token: credential, body: { user: 'corp:alice' } })
  begin()
  t.match((await stream).text, /"code":"credential-invalid"/)
})
