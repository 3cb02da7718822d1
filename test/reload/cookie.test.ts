/** A change after which the gateway accepts a cookie from fewer pages, or in no place, ends what rests on it. */
import { test, type Test } from 'tap'
import { call, runInput } from '../../testing/support/client.ts'
import type { Changes } from '../../testing/support/configuration.ts'
import { until } from '../../testing/support/until.ts'
import { startScene, type Scene } from './scene.ts'

const OWN = 'https://chat.example.com'
const APP = 'https://app.example.com'
const CREDENTIAL = 'authentication.issuers.corp.credential'
const USUAL: Changes = {
  [CREDENTIAL]: { header: true, cookie: 'session' },
  'listen.publicOrigins': [OWN],
  cors: { origins: [APP], credentials: true },
}

/** Opens a run whose token is in the cookie, and waits until it streams. */
async function opened(scene: Scene): Promise<{ readonly text: Promise<string> }> {
  const headers = { cookie: `session=${scene.token('alice')}`, origin: APP, 'sec-fetch-site': 'same-site' }
  const text = call(`${scene.base}/agent/default/run`, { headers, body: runInput('t-1') }).then(
    (answer) => answer.text,
    () => 'broke off',
  )
  await until(async () => (await scene.health('/metrics')).text.includes('threadwarden_open_streams 1\n'))
  return { text }
}

async function startStreaming(t: Test): Promise<Scene> {
  const scene = await startScene(t, USUAL)
  scene.upstream.answer(
    (_request, response) =>
      void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"RUN_STARTED"}\n\n'),
  )
  return scene
}

for (const [what, changes] of [
  ['the cookie is no longer accepted', { [CREDENTIAL]: {}, 'listen.publicOrigins': [] }],
  ['the cookie has another name', { [CREDENTIAL]: { header: true, cookie: 'other' } }],
  ['the header is no longer accepted', { [CREDENTIAL]: { cookie: 'session' } }],
  ['the origin of the page is no longer listed', { cors: { origins: [], credentials: false } }],
  ['listed pages may no longer send cookies', { cors: { origins: [APP], credentials: false } }],
  ['an own origin is gone', { 'listen.publicOrigins': [] }],
] as const satisfies readonly (readonly [string, Changes])[]) {
  void test(`a stream ends when ${what}`, async (t) => {
    const scene = await startStreaming(t)
    const stream = await opened(scene)
    scene.write(changes)
    t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
    t.match(await stream.text, /"type":"RUN_ERROR"[^]*"code":"not-allowed"/)
  })
}

for (const [what, changes] of [
  ['another own origin', { 'listen.publicOrigins': [OWN, 'https://new.example.com'] }],
  ['another listed origin', { cors: { origins: [APP, 'https://new.example.com'], credentials: true } }],
] as const satisfies readonly (readonly [string, Changes])[]) {
  void test(`a stream goes on with ${what}`, async (t) => {
    const scene = await startStreaming(t)
    const stream = await opened(scene)
    scene.write(changes)
    t.match(await scene.gateway.reload('test'), { outcome: 'reloaded' })
    await scene.upstream.close()
    t.equal(await stream.text, 'broke off', 'it went on until the upstream ended')
  })
}
