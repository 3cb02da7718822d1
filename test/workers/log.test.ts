/** All workers write to one stdout, and no line is cut by another's, however slowly it is read. */
import { test } from 'tap'
import { head, openRaw } from '../../testing/support/raw.ts'
import { startScene } from './scene.ts'

const CONNECTIONS = 400
/** As many as one connection may have waiting. */
const AT_ONCE = 12

void test('lines stay whole while nobody reads them for some time', async (t) => {
  const scene = await startScene(t, { workers: 3, config: { audit: { to: 'stdout' } } })
  scene.hear(false)
  const long = `/api/copilotkit/nobody?${'x'.repeat(100)}`
  const asked = Array.from({ length: CONNECTIONS }, async () => {
    const connection = await openRaw(scene.url)
    connection.write(head(`GET ${long} HTTP/1.1`, 'Host: a').repeat(AT_ONCE))
    return connection
  })
  const connections = await Promise.all(asked)
  scene.hear(true)
  for (const connection of connections) {
    await connection.until(new RegExp(`(?:HTTP/1.1 401[^]*){${AT_ONCE}}`))
    connection.destroy()
  }
  // Every line is read as JSON: one that was cut is none.
  await scene.end('SIGTERM')
  const refused = scene.lines.filter(({ msg, status }) => msg === 'request' && status === 401)
  const decided = scene.lines.filter(({ audit }) => audit === 1)
  t.same([refused.length, decided.length], [CONNECTIONS * AT_ONCE, CONNECTIONS * AT_ONCE])
})
