/** `threadwarden health`: what a probe learns about a running gateway, and about one that does not answer. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFileSync } from 'node:fs'
import { test, type Test } from 'tap'
import { configFile, serving } from '../../testing/support/program.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { startUpstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { run } from './in-process.ts'

async function listener(t: Test, answering: RequestListener): Promise<string> {
  const server = createServer(answering).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

void test('a gateway is found by its configuration, also if the file is invalid by now', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const port = await freePort()
  const { file } = configFile(t, { 'upstream.url': upstream.url, 'health.port': port })
  const { end } = await serving(t, file)
  await until(async () => (await run(t, ['health', '--config', file])).code === 0)
  t.match(await run(t, ['health', '--config', file]), { code: 0, stdout: 'ready\n', stderr: '' })
  t.match(await run(t, ['health', '--config', file, '--probe', 'live']), { code: 0, stdout: 'live\n' })
  t.match(await run(t, ['health', '--config', file, '--probe', 'startup']), { code: 0, stdout: 'startup\n' })
  const { stdout } = await run(t, ['health', '--config', file, '--json'])
  t.match(JSON.parse(stdout), { healthy: true, status: 200, answer: { status: 'ready' } })
  writeFileSync(file, `version: 1\nhealth: { port: "\${env:PORT}" }\nupstream: nonsense\n`)
  const environment = { PORT: String(port) }
  t.match(await run(t, ['health', '--config', file], { environment }), { code: 0, stdout: 'ready\n' })
  await end('SIGTERM')
  t.match(await run(t, ['health', '--config', file], { environment }), {
    code: 1,
    stderr: 'not ready: no answer (ECONNREFUSED)\n',
  })
})

void test('without its upstream a gateway lives and is not ready, and the reason is printed', async (t) => {
  const { file } = configFile(t)
  const { listening } = await serving(t, file)
  const url = String(listening['health'])
  t.match(await run(t, ['health', '--url', url, '--probe', 'live']), { code: 0 })
  t.match(await run(t, ['health', '--url', url]), { code: 1, stdout: '', stderr: /^not ready: upstream: .+\n$/ })
})

void test('what answers otherwise is not healthy', async (t) => {
  for (const [why, answering, stderr] of [
    ['another server', (_request, response) => void response.writeHead(404).end('no'), 'not ready: the answer was 404\n'],
    [
      'a redirect',
      (_request, response) => void response.writeHead(302, { location: '/livez' }).end(),
      'not ready: the answer was 302\n',
    ],
    ['silence', () => {}, 'not ready: no answer (no answer in time)\n'],
    ['too much', (_request, response) => void response.end('x'.repeat(100_000)), 'not ready: no answer (TOO_LARGE)\n'],
    [
      'control sequences',
      (_request, response) => void response.writeHead(503).end(JSON.stringify({ pending: { a: '\u001b[2J' } })),
      'not ready: a: \\u{1b}[2J\n',
    ],
  ] as const satisfies readonly (readonly [string, RequestListener, string])[]) {
    const url = await listener(t, answering)
    t.match(await run(t, ['health', '--url', url, '--timeout', '300ms']), { code: 1, stdout: '', stderr }, why)
  }
})

void test('wrong usage and an address that no file tells are errors', async (t) => {
  const { file } = configFile(t)
  t.match(await run(t, ['health', '--config', file]), { code: 1, stderr: /health\.port is 0 in .*--url/ })
  t.match(await run(t, ['health', '--config', file, '--probe', 'x']), { code: 2, stderr: /ready, live, startup/ })
  t.match(await run(t, ['health', '--config', file, '--timeout', '0s']), { code: 2, stderr: /not a duration/ })
  t.match(await run(t, ['health', '--url', 'chat.example.com']), { code: 2, stderr: /--url must be/ })
  writeFileSync(file, 'health: { port: many }\n')
  t.match(await run(t, ['health', '--config', file]), { code: 1, stderr: /health\.port/ })
})
