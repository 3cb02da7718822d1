/**
 * The real CopilotKit runtime with up to three agents: `default`, in its own process, `remote`, a self-hosted one, and
 * `graph`, a LangGraph server's. It does not authenticate callers, which is the gateway's task, unless it uses the managed
 * platform.
 */
/// <reference path="./libraries.d.ts" />
import './no-telemetry.ts'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { type AbstractAgent, HttpAgent } from '@ag-ui/client'
import { CopilotRuntime, InMemoryAgentRunner, TranscriptionService, type TranscribeFileOptions } from '@copilotkit/runtime/v2'
import { createCopilotExpressHandler } from '@copilotkit/runtime/v2/express'
import { createCopilotNodeListener } from '@copilotkit/runtime/v2/node'
import express from 'express'
import { command, noWords, portOf, untilStopped, UsageError } from './command.ts'
import { EchoAgent } from './echo-agent.ts'
import { listen, remember, stop } from './http.ts'
import { GRAPH_ID } from './langgraph.ts'
import { platformParts, type PlatformOptions, type PlatformParts } from './platform-runtime.ts'
import { RunnerWithoutLists } from './runner-without-lists.ts'

const ADAPTERS = ['node', 'express'] as const

export type Adapter = (typeof ADAPTERS)[number]

const RUNNERS = ['in-memory', 'without-lists'] as const

export interface RuntimeOptions {
  /** 0, the default: any free port. */
  readonly port?: number
  readonly host?: string
  /** `/api/copilotkit` by default; `''` for none: the runtime then takes the end of any path for a route. */
  readonly basePath?: string
  /** How the runtime is mounted: on node:http (the default) or in an Express application. */
  readonly adapter?: Adapter
  /** `single-route`: one POST with an envelope instead of routes. By default `multi-route`. */
  readonly mode?: 'multi-route' | 'single-route'
  /** Where the agent `remote` is; without it there's no such agent. */
  readonly agentUrl?: string
  /** Headers that the runtime sends to `remote`; they win over those of the caller. */
  readonly agentHeaders?: Readonly<Record<string, string>>
  /** Where the LangGraph server behind the agent `graph` is; without it there's no such agent. */
  readonly langGraphUrl?: string
  /** Headers that the runtime sends to it; those of the caller win over them, unlike with `remote`. */
  readonly langGraphHeaders?: Readonly<Record<string, string>>
  /** The runtime's own `debug` setting: opens its stream of all threads' events, and logs. */
  readonly debug?: boolean
  /** The adapter's own `cors` setting; by default off with `node` and open to all origins with `express`. */
  readonly cors?: boolean
  /** Whether `transcribe` is served. */
  readonly transcription?: boolean
  /** The runtime's own `exposeMemoryRoutes` setting. */
  readonly exposeMemoryRoutes?: boolean
  /** `without-lists`: a runner that has no lists of threads. By default the runtime's own, in memory. */
  readonly runner?: (typeof RUNNERS)[number]
  /** The managed platform, which keeps the threads in place of a runner. */
  readonly platform?: PlatformOptions
  /** Called for each request, before the runtime sees it. */
  readonly onRequest?: (request: RuntimeRequest) => void
}

/** A request as it arrived at the runtime; for tests. It holds the caller's token: don't print it. */
export interface RuntimeRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as they stood on the wire. */
  readonly rawHeaders: readonly string[]
}

export interface Runtime {
  /** The origin, such as `http://127.0.0.1:4000`; routes are below `basePath`. */
  readonly url: string
  readonly port: number
  readonly basePath: string
  readonly runtime: CopilotRuntime
  /** The last requests, oldest first. Set its length to 0 to forget them. */
  readonly requests: RuntimeRequest[]
  /** Stops the server, every stream and every run of `default`. Threads stay: they belong to the process. */
  close(): Promise<void>
}

/** Starts a runtime. */
export async function startRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  const { port = 0, host = '127.0.0.1', basePath = '/api/copilotkit', onRequest } = options
  const closing = new AbortController()
  const platform = options.platform === undefined ? undefined : platformParts(options.platform)
  const runtime = await makeRuntime(options, closing.signal, platform)
  const listener = mount(runtime, basePath, options, platform)
  const requests: RuntimeRequest[] = []
  const server = createServer((request, response) => {
    const { method = '', url = '', headers, rawHeaders } = request
    const record = { method, url, headers, rawHeaders }
    remember(requests, record)
    onRequest?.(record)
    listener(request, response)
  })
  const bound = await listen(server, port, host)
  const close = async () => {
    closing.abort()
    await stop(server)
  }
  return { url: bound.origin, port: bound.port, basePath, runtime, requests, close }
}

/** Empties the runtime's thread store, of which there is one in a process, whatever the number of runtimes. */
export function clearThreads(): void {
  new InMemoryAgentRunner().clearThreads()
}

async function makeRuntime(
  options: RuntimeOptions,
  closing: AbortSignal,
  platform: PlatformParts | undefined,
): Promise<CopilotRuntime> {
  const {
    agentUrl,
    agentHeaders = {},
    langGraphUrl,
    langGraphHeaders = {},
    debug,
    transcription,
    exposeMemoryRoutes,
    runner,
  } = options
  const agents: Record<string, AbstractAgent> = { default: new EchoAgent(closing) }
  if (agentUrl !== undefined) agents['remote'] = new HttpAgent({ url: agentUrl, headers: { ...agentHeaders } })
  if (langGraphUrl !== undefined) agents['graph'] = await langGraphAgent(langGraphUrl, langGraphHeaders)
  const common = {
    agents,
    ...(debug !== undefined && { debug }),
    ...(transcription === true && { transcriptionService: new TranscriptionStub() }),
    ...(exposeMemoryRoutes !== undefined && { exposeMemoryRoutes }),
  }
  if (platform !== undefined) return new CopilotRuntime({ ...common, ...platform.options })
  return new CopilotRuntime({ ...common, ...(runner === 'without-lists' && { runner: new RunnerWithoutLists() }) })
}

/** Loaded when it is wanted: few want it, and it takes its time. */
async function langGraphAgent(deploymentUrl: string, headers: Readonly<Record<string, string>>): Promise<AbstractAgent> {
  const { LangGraphAgent } = await import('@copilotkit/runtime/langgraph')
  return new LangGraphAgent({ deploymentUrl, graphId: GRAPH_ID, propertyHeaders: { ...headers } })
}

function mount(
  runtime: CopilotRuntime,
  basePath: string,
  { adapter = 'node', mode = 'multi-route', cors }: RuntimeOptions,
  platform: PlatformParts | undefined,
): RequestListener {
  const settings = {
    runtime,
    mode,
    ...(cors !== undefined && { cors }),
    ...(platform !== undefined && { hooks: platform.hooks }),
  }
  if (adapter === 'node') {
    const listener = createCopilotNodeListener({ ...settings, ...(basePath !== '' && { basePath }) })
    return (request, response) => void listener(request, response)
  }
  const application = express()
  application.use(createCopilotExpressHandler({ ...settings, basePath: basePath === '' ? '/' : basePath }))
  return application
}

/** Answers with the size of the recording. */
class TranscriptionStub extends TranscriptionService {
  override transcribeFile({ audioFile }: TranscribeFileOptions): Promise<string> {
    return Promise.resolve(`heard ${audioFile.size} bytes`)
  }
}

const USAGE = `The CopilotKit runtime, without a gateway. It does not authenticate callers.

  node runtime.ts [--port N] [--host H] [--base-path P] [--adapter A] [--agent-url URL]
                  [--langgraph-url URL] [--runner R]   starts it and prints its URL

  --port           the port (default: PORT in the environment, or a free one)
  --host           the address to listen on (default: HOST in the environment, or 127.0.0.1)
  --base-path      the path of the routes (default: /api/copilotkit)
  --adapter        ${ADAPTERS.join(' or ')} (default: node)
  --agent-url      the URL of the agent "remote" (default: no such agent)
  --langgraph-url  the URL of the LangGraph server of the agent "graph" (default: no such agent)
  --runner         ${RUNNERS.join(' or ')} (default: in-memory); the other one has no lists of threads
`

if (import.meta.main) {
  const flags = ['port', 'host', 'base-path', 'adapter', 'agent-url', 'langgraph-url', 'runner']
  await command(USAGE, flags, async (words, values) => {
    noWords(words)
    const { host = process.env['HOST'], 'base-path': basePath, 'agent-url': agentUrl, 'langgraph-url': langGraphUrl } = values
    const adapter = ADAPTERS.find((known) => known === (values['adapter'] ?? 'node'))
    if (adapter === undefined) throw new UsageError(`--adapter is ${ADAPTERS.join(' or ')}`)
    const runner = RUNNERS.find((known) => known === (values['runner'] ?? 'in-memory'))
    if (runner === undefined) throw new UsageError(`--runner is ${RUNNERS.join(' or ')}`)
    const runtime = await startRuntime({
      port: portOf({ port: process.env['PORT'], ...values }),
      adapter,
      runner,
      ...(host !== undefined && { host }),
      ...(basePath !== undefined && { basePath }),
      ...(agentUrl !== undefined && { agentUrl }),
      ...(langGraphUrl !== undefined && { langGraphUrl }),
    })
    process.stdout.write(`${runtime.url}${runtime.basePath}\n`)
    await untilStopped(runtime)
  })
}
