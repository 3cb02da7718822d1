/** `threadwarden serve`: one line says that it listens and where; a signal ends it in order. */
import { test } from 'tap'
import { configFile, serving } from '../../testing/support/program.ts'

void test('the listening line names the bound addresses, and they answer', async (t) => {
  const { listening, lines, end } = await serving(t, configFile(t).file)
  t.match(listening, {
    level: 'info',
    msg: 'listening',
    url: /^http:\/\/127\.0\.0\.1:\d+$/,
    health: /^http:\/\/127\.0\.0\.1:\d+$/,
    mode: 'required',
    unknownThread: 'claim',
  })
  t.notMatch(listening, { url: /:0$/ })
  t.equal((await fetch(`${String(listening['health'])}/livez`)).status, 200)
  const refused = await fetch(`${String(listening['url'])}/api/copilotkit/info`)
  t.equal(refused.status, 401)
  t.match(await refused.json(), { code: 'credential-missing' })
  t.equal(lines.filter((line) => line['msg'] === 'listening').length, 1)
  await end('SIGTERM')
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  void test(`${signal} ends it with exit code 0`, async (t) => {
    const { lines, end } = await serving(t, configFile(t).file)
    t.same(await end(signal), { code: 0, signal: null })
    t.match(
      lines.filter(({ msg }) => msg === 'draining' || msg === 'stopped'),
      [{ msg: 'draining', signal, deadlineMs: 25_000 }, { msg: 'stopped' }],
    )
  })
}

void test('the time to drain is the grace period of its surroundings but for a margin', async (t) => {
  const environment = { TERMINATION_GRACE_PERIOD_SECONDS: '12' }
  const { lines, end } = await serving(t, configFile(t).file, { environment })
  t.same(await end('SIGTERM'), { code: 0, signal: null })
  t.match(
    lines.filter(({ msg }) => msg === 'draining'),
    [{ deadlineMs: 7000 }],
  )
})

void test('requests are served for shutdown.delay after SIGTERM, which is part of the grace period', async (t) => {
  const environment = { TERMINATION_GRACE_PERIOD_SECONDS: '5' }
  const { lines, end } = await serving(t, configFile(t, { 'shutdown.delay': '500ms' }).file)
  t.same(await end('SIGTERM'), { code: 0, signal: null })
  t.match(
    lines.filter(({ msg }) => msg === 'draining'),
    [{ delayMs: 500, deadlineMs: 25_000 }],
  )
  t.notOk(lines.some(({ msg }) => String(msg).startsWith('shutdown')))
  const short = await serving(t, configFile(t, { 'shutdown.delay': '1h' }).file, { environment })
  t.same(await short.end('SIGTERM'), { code: 0, signal: null })
  t.match(
    short.lines.filter(({ msg }) => msg === 'draining'),
    [{ delayMs: 0, deadlineMs: 0 }],
  )
  t.match(
    short.lines.filter(({ msg }) => /^shutdown.delay takes the whole/.test(String(msg))),
    [{ level: 'warn' }],
  )
})

void test('nobody waits at a terminal', async (t) => {
  const { lines, end } = await serving(t, configFile(t, { 'shutdown.delay': '20s' }).file)
  t.same(await end('SIGINT'), { code: 0, signal: null })
  t.match(
    lines.filter(({ msg }) => msg === 'draining'),
    [{ delayMs: 0 }],
  )
})

void test('warnings of the configuration are in the log, and what is secret is not', async (t) => {
  const { file } = configFile(t, { 'upstream.headers': { 'x-api-key': 'hunter2' }, 'authentication.mode': 'off' })
  const { lines, end } = await serving(t, file)
  await end('SIGTERM')
  const told = lines.filter(({ level, msg }) => level === 'warn' && msg === 'configuration')
  const warned = told.filter((line) => line['file'] === file).map(({ path }) => path)
  t.same(warned, ['upstream.headers.x-api-key', 'authentication.issuers', 'authentication.mode'])
  t.notMatch(JSON.stringify(lines), /hunter2/)
})
