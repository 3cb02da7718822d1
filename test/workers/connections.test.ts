/** The limit of open connections is divided among the workers, and what they count is one figure. */
import { test } from 'tap'
import { openRaw, type RawConnection } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'
import { startScene } from './scene.ts'

const MOST = 16

void test('each worker keeps its part of the limit', async (t) => {
  const scene = await startScene(t, { config: { listen: { host: '127.0.0.1', port: 0, connections: MOST } } })
  const opened: RawConnection[] = []
  t.teardown(() => opened.forEach((one) => one.destroy()))
  const openOnes = (): number => opened.filter((one) => !one.isClosed()).length
  // In turn, more or less: each worker gets more than its part.
  for (let at = 0; at < 6 * MOST; at += 1) opened.push(await openRaw(scene.url))
  await until(() => openOnes() === MOST)
  await until(async () => (await scene.figure('threadwarden_open_connections')) === MOST)
  t.equal(await scene.figure('threadwarden_connections_over_limit_total{outcome="idle-closed"}'), 5 * MOST)
  for (const worker of [1, 2]) {
    const { connections } = await scene.line(
      (line) => line['worker'] === worker && String(line['msg']).startsWith('listen.connections'),
    )
    t.equal(connections, MOST / 2)
  }
})
