/** An Express application with a runtime and the gateway in one process. */
import '../../no-telemetry.ts'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { CopilotRuntime, createCopilotRuntimeHandler } from '@copilotkit/runtime/v2'
import { createCopilotExpressHandler } from '@copilotkit/runtime/v2/express'
import express from 'express'
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

const application = express()
application.use(createCopilotExpressHandler({ runtime, basePath: '/api/copilotkit', hooks, cors: false }))

const server = createServer(application)
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
