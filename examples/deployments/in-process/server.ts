/** A server with a runtime and the gateway in one process. In your own project, import `threadwarden/hooks`. */
import '../../no-telemetry.ts'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { CopilotRuntime, createCopilotRuntimeHandler } from '@copilotkit/runtime/v2'
import { createCopilotNodeListener } from '@copilotkit/runtime/v2/node'
import { makeHooks } from '../../../src/sdk/hooks/index.ts'
import { EchoAgent } from '../../echo-agent.ts'
import { listen, stop } from '../../http.ts'

export interface Server {
  readonly base: string
  close(): Promise<void>
}

/**
 * @param port 0 for any free one
 * @param environment has `ISSUER_URL`, and `THREADWARDEN_DATA` for a store outside of this folder
 */
export async function startServer(port: number, environment: NodeJS.ProcessEnv = process.env): Promise<Server> {
  const closing = new AbortController()
  const runtime = new CopilotRuntime({ agents: { default: new EchoAgent(closing.signal) } })
  const config = fileURLToPath(new URL('threadwarden.yaml', import.meta.url))
  const hooks = await makeHooks({ config, runtime, createHandler: createCopilotRuntimeHandler, environment })
  const listener = createCopilotNodeListener({ runtime, basePath: '/api/copilotkit', hooks })
  const server = createServer((request, response) => void listener(request, response))
  const { origin } = await listen(server, port, '127.0.0.1')
  await hooks.ready()
  return {
    base: `${origin}/api/copilotkit`,
    async close() {
      await hooks.close(5000)
      closing.abort()
      await stop(server)
    },
  }
}

if (import.meta.main) {
  const server = await startServer(4000)
  process.stdout.write(`${server.base}\n`)
  process.once('SIGTERM', () => void server.close())
}
