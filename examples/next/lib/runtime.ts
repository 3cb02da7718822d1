/** The CopilotKit runtime with Threadwarden's hooks, once in the process. */
import { resolve } from 'node:path'
import { CopilotRuntime, createCopilotRuntimeHandler } from '@copilotkit/runtime/v2'
import { makeHooks } from 'threadwarden/hooks'
import { EchoAgent } from './agent.ts'

type Handler = (request: Request) => Promise<Response>

// Next.js loads this module once for instrumentation.ts and once for the route, and again after each edit in development.
const shared = globalThis as typeof globalThis & { threadwardenHandler?: Promise<Handler> }

/** Starts with the first call: while it builds, Next.js loads this module too, and must not open the store. */
export function runtimeHandler(): Promise<Handler> {
  return (shared.threadwardenHandler ??= start())
}

/** Ends the server if it cannot start them: Next.js would only log the error and go on. */
export async function startWithServer(): Promise<void> {
  try {
    await runtimeHandler()
  } catch (error) {
    console.error(error)
    process.exit(1)
  }
}

async function start(): Promise<Handler> {
  const runtime = new CopilotRuntime({ agents: { default: new EchoAgent() } })
  const hooks = await makeHooks({
    config: resolve('threadwarden.yaml'),
    runtime,
    createHandler: createCopilotRuntimeHandler,
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void hooks.close(2000))
  return createCopilotRuntimeHandler({ runtime, basePath: '/api/copilotkit', hooks })
}
