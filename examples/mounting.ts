/** A runtime with hooks in its own process, mounted in each of the ways that it has. */
/// <reference path="./libraries.d.ts" />
import './no-telemetry.ts'
import type { RequestListener } from 'node:http'
import { type CopilotRuntime, createCopilotRuntimeHandler } from '@copilotkit/runtime/v2'
import { createCopilotExpressHandler } from '@copilotkit/runtime/v2/express'
import { createCopilotHonoHandler } from '@copilotkit/runtime/v2/hono'
import { createCopilotNodeHandler, createCopilotNodeListener } from '@copilotkit/runtime/v2/node'
import express from 'express'
import { Hono } from 'hono'

export { createCopilotRuntimeHandler }

/** The hooks of a runtime's handler. */
export type RuntimeHooks = NonNullable<Parameters<typeof createCopilotRuntimeHandler>[0]['hooks']>

/** How a runtime is mounted. */
export interface Mounting {
  readonly runtime: CopilotRuntime
  readonly hooks: RuntimeHooks
  /** By default `node`. `hono`: its CORS is always on. `express with a JSON parser`: bodies are read before the runtime. */
  readonly adapter?: 'node' | 'express' | 'express with a JSON parser' | 'hono'
  /** The path of a router around the adapter, such as `/chat`. By default none. */
  readonly below?: string
  /** By default `multi-route`. */
  readonly mode?: 'multi-route' | 'single-route'
  /** `/api/copilotkit` by default. */
  readonly basePath?: string
}

/** Mounts a runtime; gives what a node:http server calls for each request. */
export function mount({
  runtime,
  hooks,
  adapter = 'node',
  mode = 'multi-route',
  basePath,
  below = '/',
}: Mounting): RequestListener {
  const settings = { runtime, hooks, mode, basePath: basePath ?? '/api/copilotkit' }
  if (adapter === 'node') {
    const listener = createCopilotNodeListener(settings)
    return (request, response) => void listener(request, response)
  }
  if (adapter === 'hono') {
    const application = new Hono().route(below, createCopilotHonoHandler(settings))
    const listener = createCopilotNodeHandler(async (request) => application.fetch(request))
    return (request, response) => void listener(request, response)
  }
  const application = express()
  if (adapter !== 'express') application.use(express.json({ limit: '30mb' }))
  application.use(below, createCopilotExpressHandler({ ...settings, cors: false }))
  return application
}
