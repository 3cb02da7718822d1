/** A reader behind TLS that takes nothing is cut after limits.sendTimeout, as one without TLS is. */
import { test } from 'tap'
import { runInput } from '../../testing/support/client.ts'
import { gated } from '../../testing/support/gated.ts'
import { openRaw, requestBytes } from '../../testing/support/raw.ts'
import { secureFiles } from '../../testing/support/secure.ts'
import { until } from '../../testing/support/until.ts'

const MIB = 1024 ** 2
/** More than the gateway and the system hold of an answer. */
const LARGE = 24 * MIB

void test('who reads nothing is cut', async (t) => {
  const files = secureFiles(t)
  const gate = await gated(
    t,
    (request, response) => {
      if (!request.target.endsWith('/run')) return void response.writeHead(404).end()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`data: ${'x'.repeat(LARGE)}\n\n`)
    },
    { config: { ...files.listen(), limits: { sendTimeout: '500ms' } } },
  )
  const open = async (threadId: string) => {
    const body = JSON.stringify(runInput(threadId))
    const connection = await openRaw(gate.gateway.url)
    connection.write(requestBytes({ target: '/api/copilotkit/agent/default/run', token: gate.alice, body }))
    await connection.until('data: ')
    connection.socket.pause()
    return connection
  }
  const lineOf = (thread: string) => gate.gateway.lines.find(({ msg, thread: of }) => msg === 'request' && of === thread)
  const silent = await open('silent')
  await until(() => lineOf('silent') !== undefined)
  t.match(lineOf('silent'), { complete: false, ended: 'stalled' })
  silent.destroy()
})
