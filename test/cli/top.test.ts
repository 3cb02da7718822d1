/** `threadwarden top`: what it shows of a running gateway, once and again and again. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type Test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import { gated, type GatedUpstream } from '../../testing/support/gated.ts'
import { until } from '../../testing/support/until.ts'
import { ROOT } from '../suites/suites.ts'

const CREDENTIAL = 'c'.repeat(40)

async function scene(t: Test): Promise<GatedUpstream & { readonly credentialFile: string }> {
  const one = await gated(
    t,
    (_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': begun\n\n'),
    { config: { admin: { port: 0, credential: CREDENTIAL } } },
  )
  const credentialFile = join(one.gateway.folder, 'credential')
  writeFileSync(credentialFile, `${CREDENTIAL}\n`)
  return { ...one, credentialFile }
}

function top(...args: readonly string[]) {
  return spawn(process.execPath, [join(ROOT, 'src/cli.ts'), 'top', ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: {} })
}

async function ended(
  child: ReturnType<typeof top>,
): Promise<{ readonly code: unknown; readonly out: string; readonly err: string }> {
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, out, err }
}

void test('it shows refusals by reason, the latest ones with their rules, and open streams', async (t) => {
  const { gateway, base, alice, bob, credentialFile } = await scene(t)
  const url = gateway.adminUrl ?? ''
  const stream = call(`${base}/agent/default/run`, { token: alice, body: runInput('t-1') })
  await until(async () => (await call(`${url}/streams`, { token: CREDENTIAL })).text.includes('t-1'))
  await call(`${base}/threads/t-1/messages`, { token: bob })
  await call(`${base}/info`)
  const { code, out, err } = await ended(top('--once', '--url', url, '--credential-file', credentialFile))
  t.same([code, err], [0, ''])
  t.match(out, /^threadwarden \d+\.\d+\.\d+ {2}ready {2}generation 1 {2}policy [0-9a-f]{12} {2}1 streams\n/)
  t.match(out, /^permitted +1 +1 +1$/m)
  t.match(out, /^thread-foreign +1 +1 +1$/m)
  t.match(out, /^\d\d:\d\d:\d\d +corp:bob +threads\/messages +t-1 +thread-foreign +-$/m)
  t.match(out, /^\d\d:\d\d:\d\d +- +none +- +credential-missing +-$/m)
  t.match(out, /^\d\d:\d\d:\d\d +corp:alice +agent\/run +default +t-1$/m)
  t.notMatch(out, '\u001b', 'no control sequence where it is no terminal')

  const json = await ended(top('--once', '--json', '--url', url, '--credential-file', credentialFile))
  t.match(JSON.parse(json.out), { status: { ready: true }, streams: [{ thread: 't-1' }], refusals: [{}, {}] })

  const again = top('--interval', '100ms', '--url', url, '--credential-file', credentialFile)
  let seen = ''
  again.stdout.setEncoding('utf8').on('data', (part: string) => (seen += part))
  await until(() => seen.split('DECISIONS').length > 3)
  again.kill('SIGINT')
  const [status] = (await once(again, 'close')) as [number | null]
  t.equal(status, 0)
  for (const { requestId } of ((await call(`${url}/streams`, { token: CREDENTIAL })).json as { streams: { requestId: string }[] })
    .streams)
    await call(`${url}/streams/${requestId}`, { token: CREDENTIAL, method: 'DELETE' })
  await stream
})

void test('what is wrong is told', async (t) => {
  const { gateway, credentialFile } = await scene(t)
  const url = gateway.adminUrl ?? ''
  const wrong = join(gateway.folder, 'wrong')
  writeFileSync(wrong, 'x'.repeat(40))
  for (const [args, code, text] of [
    [['--once', '--url', url, '--credential-file', wrong], 1, /the credential is wrong \(401\)/],
    [['--once', '--url', gateway.healthUrl, '--credential-file', credentialFile], 1, /is this the admin listener\?/],
    [['--once', '--url', 'http://127.0.0.1:1', '--credential-file', credentialFile], 1, /ECONNREFUSED/],
    [['--once', '--url', 'ftp://x', '--credential-file', credentialFile], 2, /--url must be the address of the admin listener/],
    [['--once', '--url', url, '--credential-file', '/dev/null'], 2, /contains no credential/],
    [['--interval', '1', '--url', url, '--credential-file', credentialFile], 2, /--interval 1 is not a duration/],
    [['--once', '--config', gateway.file], 2, /admin\.port is 0/],
  ] as const) {
    const result = await ended(top(...args))
    t.equal(result.code, code, args.join(' '))
    t.match(result.err, text)
    t.notMatch(result.err, CREDENTIAL)
  }
})
