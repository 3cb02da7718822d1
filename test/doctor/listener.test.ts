/** A gateway with TLS: the doctor reaches it by the configured certificate, and says which one it presents. */
import { test } from 'tap'
import { startUpstream } from '../../testing/support/upstream.ts'
import { inDays } from '../../testing/support/issuing.ts'
import { secureFiles } from '../../testing/support/secure.ts'
import { examined } from './examination.ts'
import { startScene } from './gateway-scene.ts'

async function start(t: Parameters<typeof startScene>[0], mutual = false) {
  const files = secureFiles(t)
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const tls = mutual ? files.mutual : files.tls
  const scene = await startScene(t, upstream.url, files.listen(tls))
  const port = Number(new URL(scene.gateway.url).port)
  const { listen: _listen, ...rest } = scene.changes
  return { files, scene, changes: { ...rest, listen: { host: '127.0.0.1', port, tls } } }
}

void test('the running gateway presents the configured certificate, and is asked through it', async (t) => {
  const { files, changes } = await start(t)
  const { of } = await examined(t, changes)
  t.match(of('gateway.certificate'), { level: 'ok', message: /presents the configured certificate, valid until / })
  t.match(of('gateway.authentication'), { level: 'ok' })
  const late = await examined(t, changes, { clock: () => inDays(80).getTime() })
  t.match(late.of('gateway.certificate'), { level: 'warning', message: /expires at / })
  // The files are newer than what the gateway has loaded.
  files.write(files.authority.issue({ name: 'second', usage: 'server' }))
  const other = await examined(t, changes)
  t.match(other.of('gateway.certificate'), { level: 'problem', message: /does not present the certificate in .*tls\.crt/ })
  t.match(other.of('gateway.authentication'), { level: 'unknown', message: /does not present/ })
})

void test('where client certificates are required, only the certificate is seen', async (t) => {
  const { changes } = await start(t, true)
  const { of } = await examined(t, changes)
  t.match(of('gateway.certificate'), { level: 'ok' })
  t.match(of('gateway.authentication'), { level: 'unknown', message: /requires client certificates/, remedy: /--url/ })
})

void test('a gateway that runs without TLS', async (t) => {
  const files = secureFiles(t)
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const scene = await startScene(t, upstream.url)
  const { 'listen.port': port, ...rest } = scene.changes
  const { of } = await examined(t, { ...rest, listen: { host: '127.0.0.1', port, tls: files.tls } })
  t.match(of('gateway.certificate'), { level: 'problem', message: /handshake .* fails/, remedy: /restart the gateway/ })
})
