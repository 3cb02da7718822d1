/** A Hono application with a runtime and the gateway in one process. */
import '../../no-telemetry.ts'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { CopilotRuntime, createCopilotRuntimeHandler } from '@copilotkit/runtime/v2'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { makeHooks } from 'threadwarden/hooks'
import { EchoAgent } from '../../echo-agent.ts'
import { listen, stop } from '../../http.ts'

const closing = new AbortController()
const runtime = new CopilotRuntime({ agents: { default: new EchoAgent(closing.signal) } })
const hooks = await makeHooks({
  config: fileURLToPath(new URL('threadwarden.yaml', import.meta.url)),
  runtime,
  createHandler: createCopilotRuntimeHandler,
})

// The CORS of `createCopilotHonoHandler` is always on, and would answer before the hooks.
const handler = createCopilotRuntimeHandler({ runtime, basePath: '/api/copilotkit', hooks })
const application = new Hono()
application.all('/api/copilotkit/*', (context) => handler(context.req.raw))

const listener = getRequestListener(application.fetch)
const server = createServer((request, response) => void listener(request, response))
const { origin } = await listen(server, Number(process.env['PORT'] ?? 4000), '127.0.0.1')
await hooks.ready()
process.stdout.write(`${origin}\n`)

process.once('SIGTERM', () => {
  void (async () => {
    await hooks.close(2000)
    closing.abort()
    await stop(server)
  })()
})
