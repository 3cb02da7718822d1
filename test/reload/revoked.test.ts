/** A change of the configuration ends what it no longer allows: open streams and requests on their way, and nothing else. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { until } from '../../testing/support/until.ts'
import { json, type Answering } from '../../testing/support/upstream.ts'
import { CHAT, startScene, waitingRun, type Scene } from './scene.ts'

/** A stream that has begun and does not end by itself. */
const begun: Answering = (_request, response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n')

/** Opens a run and waits until it has reached the upstream. */
async function opened(scene: Scene, subject: string, claims: Record<string, unknown> = {}) {
  const before = scene.upstream.requests.length
  const token = scene.token(subject, claims)
  const answer = call(`${scene.base}/agent/default/run`, { token, body: runInput(`of-${subject}`) }).then(
    ({ text }) => text,
    () => 'broke off',
  )
  await scene.upstream.arrived(before + 1)
  return answer
}

/** Waits until this many streams are open: what has only reached the upstream is refused in place of being ended. */
async function streaming({ health }: Scene, count: number): Promise<void> {
  await until(async () => (await health('/metrics')).text.includes(`threadwarden_open_streams ${count}\n`))
}

const NO_GUESTS = `${CHAT}  - { name: no-guests, routes: all, deny: [signed-in], roles: [guest] }\n`

void test('streams of those whom the new policy denies end with an event that says so; others go on', async (t) => {
  const scene = await startScene(t)
  scene.upstream.answer(begun)
  const guest = opened(scene, 'greta', { role: 'guest' })
  await streaming(scene, 1)
  const other = opened(scene, 'alice')
  await streaming(scene, 2)
  scene.writePolicy(NO_GUESTS)
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  t.match(await guest, /"type":"RUN_ERROR"[^]*"code":"not-allowed"/)
  await scene.upstream.close()
  t.equal(await other, 'broke off', 'it went on until the upstream ended')
})

void test('streams that the ownership table could not be asked about are ended as soon as it can', async (t) => {
  const scene = await startScene(t)
  scene.upstream.answer(begun)
  const guest = opened(scene, 'greta', { role: 'guest' })
  await streaming(scene, 1)
  const file = join(scene.folder, 'ownership.db')
  renameSync(file, `${file}.away`)
  await until(async () => (await scene.health('/readyz')).status === 503)
  scene.writePolicy(NO_GUESTS)
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  await until(() => scene.lines.some(({ msg }) => /could not be checked again/.test(String(msg))))
  renameSync(`${file}.away`, file)
  t.match(await guest, /"type":"RUN_ERROR"[^]*"code":"not-allowed"/)
})

for (const [what, changes] of [
  [
    'an issuer that is gone',
    {
      'authentication.issuers.corp': undefined,
      'authentication.issuers.other': { issuer: 'other', audiences: ['chat'], algorithms: ['HS256'], secretFile: 'secret' },
    },
  ],
  [
    'an audience that is no longer taken',
    { 'authentication.issuers.corp': { issuer: 'corp', audiences: ['another'], algorithms: ['HS256'], secretFile: 'secret' } },
  ],
  [
    'a claim that is now required',
    {
      'authentication.issuers.corp': {
        issuer: 'corp',
        audiences: ['chat'],
        algorithms: ['HS256'],
        secretFile: 'secret',
        requiredClaims: { '/org': 'acme' },
      },
    },
  ],
  [
    'a token type that is no longer taken',
    {
      'authentication.issuers.corp': {
        issuer: 'corp',
        audiences: ['chat'],
        algorithms: ['HS256'],
        secretFile: 'secret',
        tokenTypes: ['access+jwt'],
      },
    },
  ],
] as const) {
  void test(`a stream ends with ${what}`, async (t) => {
    const scene = await startScene(t)
    scene.upstream.answer(begun)
    const stream = opened(scene, 'alice')
    await streaming(scene, 1)
    scene.write(changes)
    t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
    t.match(await stream, /"type":"RUN_ERROR"[^]*"code":"not-allowed"/)
    const again = await call(`${scene.base}/info`, { token: scene.token('alice') })
    t.equal(again.status, 401, 'a token that was remembered is not taken any more, either')
  })
}

void test('a key that is replaced ends what it let in: open streams, and requests on their way', async (t) => {
  const scene = await startScene(t)
  scene.upstream.answer(begun)
  const stream = opened(scene, 'alice')
  await streaming(scene, 1)
  const run = await waitingRun(scene, scene.token('bob'), runInput('t-9'))
  writeFileSync(join(scene.folder, 'secret'), 'y'.repeat(64))
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  t.match(await stream, /"type":"RUN_ERROR"[^]*"code":"not-allowed"/)
  run.send()
  t.match(await run.answer, { status: 403, text: /"not-allowed"/ })
  t.equal(scene.upstream.requests.length, 1)
})

void test('a run that observe let in goes under verify only after the question that verify asks', async (t) => {
  const scene = await startScene(t, { enforcement: 'observe' })
  const run = await waitingRun(scene, scene.token('alice'), runInput('t-9'))
  scene.write({ enforcement: 'enforce', 'ownership.unknownThread': 'verify' })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  scene.upstream.answer(json({ messages: [{ id: 'm1', role: 'user', content: 'from before' }] }))
  run.send()
  t.match(await run.answer, { status: 403 })
  t.same(
    scene.upstream.requests.map(({ method, target }) => `${method} ${target}`),
    ['GET /api/copilotkit/threads/t-9/messages'],
  )
})

void test('a request that was admitted before and decided after a change is refused if the change denies it', async (t) => {
  const scene = await startScene(t)
  const run = await waitingRun(scene, scene.token('greta', { role: 'guest' }), runInput('t-1'))
  scene.writePolicy(NO_GUESTS)
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  run.send()
  t.match(await run.answer, { status: 403, text: /"not-allowed"/ })
  t.equal(scene.upstream.requests.length, 0, 'nothing reaches upstream')
})

void test('what was switched to observe and back ends on threads without an owner', async (t) => {
  const scene = await startScene(t, { enforcement: 'observe' })
  scene.upstream.answer(begun)
  const stream = opened(scene, 'alice')
  await streaming(scene, 1)
  scene.write({ enforcement: 'enforce', 'ownership.unknownThread': 'deny' })
  t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
  t.match(await stream, /"type":"RUN_ERROR"[^]*"code":"not-allowed"/)
  const next = await call(`${scene.base}/agent/default/run`, { token: scene.token('alice'), body: runInput('of-alice') })
  t.same([next.status, codeOf(next)], [403, 'not-owner'], 'what was observed makes nobody an owner')
})
