/**
 * The runtime of the package's former name, 1.54.1, with up to two agents: `default`, in its own process, and `remote`, a
 * self-hosted one. It asks nobody who they are. In its own folder, because its packages contradict those of the newer one.
 */
/// <reference path="../libraries.d.ts" />
import '../no-telemetry.ts'
import { createServer, type RequestListener } from 'node:http'
import { type AbstractAgent, HttpAgent } from '@ag-ui/client'
import {
  CopilotRuntime,
  type CopilotRuntimeLike,
  createCopilotEndpoint,
  createCopilotEndpointSingleRoute,
} from '@copilotkitnext/runtime'
import { createCopilotEndpointExpress, createCopilotEndpointSingleRouteExpress } from '@copilotkitnext/runtime/express'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { listen, remember, stop } from '../http.ts'
import type { RuntimeRequest } from '../runtime.ts'
import { EchoAgent } from './echo-agent.ts'

export interface OldRuntimeOptions {
  /** How the runtime is mounted: in an Express 4 application (the default) or in a Hono application on node:http. */
  readonly adapter?: 'express' | 'hono'
  /** `single-route`: one POST with an envelope instead of routes. By default `multi-route`. */
  readonly mode?: 'multi-route' | 'single-route'
  /** Where the agent `remote` is; without it there's no such agent. */
  readonly agentUrl?: string
  /** Headers that the runtime sends to `remote`; here those of the caller win over them. */
  readonly agentHeaders?: Readonly<Record<string, string>>
}

export interface OldRuntime {
  /** The origin, such as `http://127.0.0.1:4000`; routes are below `basePath`. */
  readonly url: string
  readonly port: number
  readonly basePath: string
  /** The last requests, oldest first. Set its length to 0 to forget them. */
  readonly requests: RuntimeRequest[]
  /** Stops the server, every stream and every run of `default`. Threads stay: they belong to the process. */
  close(): Promise<void>
}

/** Starts a runtime on any free port of the loopback interface. */
export async function startOldRuntime(options: OldRuntimeOptions = {}): Promise<OldRuntime> {
  const { agentUrl, agentHeaders = {} } = options
  const closing = new AbortController()
  const agents: Record<string, AbstractAgent> = { default: new EchoAgent(closing.signal) }
  if (agentUrl !== undefined) agents['remote'] = new HttpAgent({ url: agentUrl, headers: { ...agentHeaders } })
  const basePath = '/api/copilotkit'
  // Its own class does not fit its own interface where optional means absent (exactOptionalPropertyTypes).
  const runtime = new CopilotRuntime({ agents }) as CopilotRuntimeLike
  const listener = mount(runtime, basePath, options)
  const requests: RuntimeRequest[] = []
  const server = createServer((request, response) => {
    const { method = '', url = '', headers, rawHeaders } = request
    remember(requests, { method, url, headers, rawHeaders })
    listener(request, response)
  })
  const bound = await listen(server, 0, '127.0.0.1')
  const close = async () => {
    closing.abort()
    await stop(server)
  }
  return { url: bound.origin, port: bound.port, basePath, requests, close }
}

function mount(
  runtime: CopilotRuntimeLike,
  basePath: string,
  { adapter = 'express', mode = 'multi-route' }: OldRuntimeOptions,
): RequestListener {
  const settings = { runtime, basePath }
  const single = mode === 'single-route'
  if (adapter === 'hono') {
    const { fetch } = single ? createCopilotEndpointSingleRoute(settings) : createCopilotEndpoint(settings)
    const listener = getRequestListener(fetch)
    return (request, response) => void listener(request, response)
  }
  const application = express()
  application.use(single ? createCopilotEndpointSingleRouteExpress(settings) : createCopilotEndpointExpress(settings))
  return application
}
