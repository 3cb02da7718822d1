/** Two gateways in processes of their own over one SQLite file: a stream ends at its token's end, and by revocation, in both. */
import { join } from 'node:path'
import { createSigner } from 'fast-jwt'
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { startUpstream, type Answering } from '../../testing/support/upstream.ts'
import { configFile, run, serving } from '../../testing/support/program.ts'

/** A stream that has begun and does not end by itself. */
const begun: Answering = (_request, response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')

const signer = createSigner({ key: 'x'.repeat(64), algorithm: 'HS256' })

/** A token of the configuration's issuer, with so many seconds left. */
function tokenOf(subject: string, seconds = 3600): string {
  const now = Math.floor(Date.now() / 1000)
  return signer({ iss: 'corp', aud: 'chat', sub: subject, iat: now - 60, exp: now + seconds })
}

void test('streams end in both processes: by expiry, and when the command revokes their user', async (t) => {
  const upstream = await startUpstream(begun)
  const { folder } = configFile(t)
  const changes = {
    'upstream.url': upstream.url,
    'upstream.transport': 'multi-route',
    'ownership.store': `sqlite:${join(folder, 'shared.db')}`,
    'streams.tokenExpiry': 'close',
  }
  const files = [configFile(t, changes).file, configFile(t, changes).file] as const
  const gateways = await Promise.all(files.map((file) => serving(t, file)))
  const bases = gateways.map(({ listening }) => `${String(listening['url'])}/api/copilotkit`)
  const open = (base: string, token: string, thread: string) =>
    call(`${base}/agent/default/run`, { token, body: runInput(thread) })

  // By the default tolerance a token that ended 26 s ago is good for some seconds more: time enough to begin.
  const short = bases.map((base, at) => open(base, tokenOf('alice', -26), `short-${at}`))
  for (const { status, text } of await Promise.all(short)) {
    t.match([status, text], [200, /"type":"RUN_ERROR"[^]*"code":"credential-expired"/])
  }

  const streams = bases.map((base, at) => open(base, tokenOf('alice'), `long-${at}`))
  const bobs = open(bases[1]!, tokenOf('bob'), 'bobs').then(
    ({ text }) => text,
    () => 'broke off',
  )
  await upstream.arrived(5)
  t.match(await run(t, ['revoke', '--config', files[0], '--user', 'corp:alice']), { code: 0 })
  for (const stream of streams) t.match((await stream).text, /"type":"RUN_ERROR"[^]*"code":"credential-invalid"/)
  for (const base of bases) {
    const refused = await call(`${base}/info`, { token: tokenOf('alice') })
    t.same([refused.status, codeOf(refused)], [401, 'credential-invalid'])
  }
  await upstream.close()
  t.equal(await bobs, 'broke off', 'nobody else noticed: his stream ends with the upstream alone')
})
