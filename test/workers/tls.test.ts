/** Two workers on one port with TLS: a swapped Secret reaches both, a stream goes on, and a pair that does not match reaches none. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { makeFolder } from '../../testing/support/gateway.ts'
import { makeAuthority, type Issued } from '../../testing/support/issuing.ts'
import { runInput } from '../../testing/support/client.ts'
import { openRaw, requestBytes } from '../../testing/support/raw.ts'
import { presentedAt } from '../../testing/support/secure.ts'
import type { Line } from '../../testing/support/program.ts'
import { startScene } from './scene.ts'

void test('a Secret is swapped by its link while a stream is open', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const authority = makeAuthority()
  const pair = (name: string): Issued => authority.issue({ name, usage: 'server' })
  // As the kubelet does it: files are links through ..data, which alone is replaced.
  const mount = (version: string, { cert, key }: Issued): void => {
    mkdirSync(join(folder, version))
    writeFileSync(join(folder, version, 'tls.crt'), cert)
    writeFileSync(join(folder, version, 'tls.key'), key)
    symlinkSync(version, join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  }
  mount('..1', pair('first'))
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(folder, name))
  const tls = { certificateFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') }
  const scene = await startScene(t, { config: { listen: { host: '127.0.0.1', port: 0, tls } } })
  t.match(scene.url, /^https:/)
  /** The names that several connections see, which go to the workers in turn. */
  const presented = async (): Promise<ReadonlySet<string>> =>
    new Set(await Promise.all(Array.from({ length: 8 }, () => presentedAt(scene.url, authority))))
  t.same([...(await presented())], ['first'])
  const body = JSON.stringify(runInput('t1'))
  const token = scene.sign('alice')
  ;(await openRaw(scene.url)).destroy()
  const claim = await openRaw(scene.url)
  claim.write(requestBytes({ target: '/api/copilotkit/agent/default/run', token, body }))
  t.match(await claim.ended(), 'HTTP/1.1 200')
  const stream = await openRaw(scene.url)
  stream.write(requestBytes({ target: '/api/copilotkit/agent/default/connect', token, body }))
  await stream.until('RUN_STARTED')
  const outcome = (msg: RegExp, after: number) => (line: Line) =>
    msg.test(String(line['msg'])) && scene.lines.indexOf(line) >= after
  let at = scene.lines.length
  mount('..2', pair('second'))
  await scene.line(outcome(/^the new configuration is active/, at))
  t.same([...(await presented())], ['second'])
  t.notOk(stream.isClosed(), 'the stream goes on')
  at = scene.lines.length
  mount('..3', { cert: pair('third').cert, key: pair('third').key })
  await scene.line(outcome(/^the new configuration is invalid/, at))
  t.same([...(await presented())], ['second'])
  at = scene.lines.length
  mount('..4', pair('fourth'))
  await scene.line(outcome(/^the new configuration is active/, at))
  t.same([...(await presented())], ['fourth'])
  t.notOk(stream.isClosed())
  stream.destroy()
  at = scene.lines.length
  mount('..5', { cert: pair('fifth').cert, key: pair('fifth').key })
  await scene.line(outcome(/^the new configuration is invalid/, at))
  process.kill(scene.processOf(1), 'SIGKILL')
  await scene.line(({ msg, worker }) => msg === 'the worker is serving again' && worker === 1)
  t.same([...(await presented())], ['fourth'], 'a new worker has the pair of the others')
  // Counted by each worker, reported as one.
  ;(await openRaw(scene.url)).destroy()
  t.equal((await scene.figure('threadwarden_certificate_expiry_timestamp_seconds')) > Date.now() / 1000, true)
  t.same(await scene.end('SIGTERM'), { code: 0, signal: null })
})
