/** The hooks of the sidecar pod, as the manifest has them: streams end by the gateway before the runtime is stopped. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { freePort } from '../../testing/support/free-port.ts'
import { configFile, serving } from '../../testing/support/program.ts'
import { objectsOf } from './builds.ts'
import { workloadsOf } from './objects.ts'

const [WORKLOAD] = workloadsOf(objectsOf('sidecar'))

void test('a stream gets its end event while the runtime waits in its hook', async (t) => {
  const runtime = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: {"type":"RUN_STARTED","threadId":"t1","runId":"r1"}\n\n')
  }).listen(0, '127.0.0.1')
  await once(runtime, 'listening')
  t.teardown(() => {
    runtime.closeAllConnections()
    runtime.close()
  })
  const health = await freePort()
  const { file } = configFile(t, {
    'authentication.mode': 'off',
    'upstream.url': `http://127.0.0.1:${(runtime.address() as AddressInfo).port}`,
    'upstream.transport': 'multi-route',
    'health.port': health,
  })
  const gateway = await serving(t, file, { environment: { TERMINATION_GRACE_PERIOD_SECONDS: '6' } })
  const stream = await fetch(`${String(gateway.listening['url'])}/api/copilotkit/agent/default/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ threadId: 't1', runId: 'r1', messages: [], state: {}, tools: [], context: [], forwardedProps: {} }),
  })
  t.equal(stream.status, 200)

  const order: string[] = []
  // The kubelet runs both at once.
  const hook = async (command: readonly string[], name: string): Promise<void> => {
    const [program = '', ...args] = command
    t.equal(program, 'node')
    const child = spawn(process.execPath, args, { stdio: 'ignore' })
    t.teardown(() => child.kill('SIGKILL'))
    const [code] = (await once(child, 'close')) as [number | null]
    t.equal(code, 0, name)
    order.push(name)
  }
  const commandOf = (of: 'gateway' | 'runtime'): readonly string[] => {
    const container = of === 'gateway' ? WORKLOAD?.gateway : WORKLOAD?.pod.containers[0]
    return container?.lifecycle?.preStop?.exec?.command ?? []
  }
  const [begin, wait] = [
    commandOf('gateway').map((word) => word.replace('kill(1,', `kill(${gateway.pid},`)),
    commandOf('runtime').map((word) => word.replace('127.0.0.1:8081', `127.0.0.1:${health}`)),
  ]
  const waiting = hook(wait, 'the hook of the runtime')
  await hook(begin, 'the hook of the gateway')
  const text = await stream.text()
  order.push('the end of the stream')
  await waiting
  t.match(text, /RUN_STARTED[^]*"type":"RUN_ERROR"[^]*"code":"shutting-down"/)
  t.same(order, ['the hook of the gateway', 'the end of the stream', 'the hook of the runtime'])
  await gateway.line(({ msg }) => msg === 'stopped')
})
