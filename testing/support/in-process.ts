/**
 * The gateway as hooks of a runtime in this process, behind the server that a runtime's adapter makes of node's. Before the
 * real runtime (stack.ts) everything is real. A test of what reaches an upstream has a handler instead that calls the hooks as
 * the runtime's does, in the same order and with its own router, and hands on by HTTP to the upstream that records.
 */
import { Agent, createServer, request as ask, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createRequire, findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pathToFileURL } from 'node:url'
import { listen, remember, stop } from '../../examples/http.ts'
import type { Runtime } from '../../examples/runtime.ts'
import type { Gateway } from '../../src/gateway/start.ts'
import { makeHooks, type CreateHandler, type Hooks, type RouteInfo, type RuntimeHooks } from '../../src/sdk/hooks/index.ts'

/** Hooks and the server that calls them. */
export interface InProcess extends Gateway {
  readonly hooks: Hooks
}

/** What is used here of libraries that the runtime's package has for itself. */
interface Adapter {
  readonly createRequest: (request: IncomingMessage, response: ServerResponse) => Request
  readonly sendResponse: (response: ServerResponse, answer: Response) => Promise<void>
}
type MatchRoute = (pathname: string, basePath: string | undefined) => RouteInfo | null

/**
 * Starts hooks and a server.
 * @param file the configuration
 * @param runtime a real one, whose `requests` get what comes through to it; or the address of an upstream
 */
export async function startInProcess(
  file: string,
  runtime: Runtime | string,
  log: { write(line: string): void },
): Promise<InProcess> {
  return typeof runtime === 'string' ? start(file, await relaying(runtime), log) : start(file, await real(runtime), log)
}

async function start<Kind extends object>(
  file: string,
  parts: Parts<Kind>,
  log: { write(line: string): void },
): Promise<InProcess> {
  const { runtime, createHandler } = parts
  const hooks = await makeHooks({ config: file, runtime, createHandler, log, health: true })
  const server = createServer(parts.mount(hooks))
  const { origin } = await listen(server, 0, '127.0.0.1')
  return {
    hooks,
    url: origin,
    healthUrl: hooks.healthUrl!,
    adminUrl: hooks.adminUrl,
    answers: () => Promise.resolve(true),
    keysAttempted: untold,
    readiness: { set: untold, pending: untold, note: untold, notes: untold },
    config: untold,
    reopenAudit: untold,
    reload: () => hooks.reload() as ReturnType<Gateway['reload']>,
    stop: async (deadline) => {
      await hooks.close(deadline)
      parts.end()
      await stop(server)
    },
  }
}

function untold(): never {
  throw new Error('hooks tell of it at their health listener alone')
}

/** What hooks stand before, and how it is mounted with them. */
interface Parts<Kind extends object> {
  readonly runtime: Kind
  readonly createHandler: CreateHandler<Kind>
  readonly mount: (hooks: RuntimeHooks) => RequestListener
  readonly end: () => void
}

/** Loaded when it is wanted: the most of these tests do without, and it takes its time. */
async function real({ runtime, requests, basePath }: Runtime): Promise<Parts<Runtime['runtime']>> {
  const { createCopilotRuntimeHandler, mount } = await import('../../examples/mounting.ts')
  recordIn(runtime, requests)
  return {
    runtime,
    createHandler: createCopilotRuntimeHandler,
    mount: (hooks) => mount({ runtime, hooks, basePath }),
    end: () => {},
  }
}

/** Records what comes to a runtime behind every hook, whether it was decided or went past the gateway. */
export function recordIn(runtime: Runtime['runtime'], requests: Runtime['requests']): void {
  const record = ({ request }: { readonly request: Request }): void => remember(requests, requestOf(request))
  Object.defineProperty(runtime, 'beforeRequestMiddleware', { value: record, configurable: true })
}

function requestOf({ method, url, headers }: Request): Runtime['requests'][number] {
  const { pathname, search } = new URL(url)
  const named = Object.fromEntries(headers)
  return { method, url: `${pathname}${search}`, headers: named, rawHeaders: Object.entries(named).flat() }
}

const EXAMPLES = new URL('../../examples/package.json', import.meta.url)
const PACKAGE_FILE = findPackageJSON('@copilotkit/runtime', EXAMPLES) as string

async function relaying(upstream: string): Promise<Parts<object>> {
  const path = (name: string): string => pathToFileURL(join(dirname(PACKAGE_FILE), name)).href
  const { createRequest, sendResponse } = createRequire(PACKAGE_FILE)('@remix-run/node-fetch-server') as Adapter
  const { matchRoute } = (await import(path('dist/v2/runtime/core/fetch-router.mjs'))) as { matchRoute: MatchRoute }
  const agent = new Agent({ keepAlive: true })
  const runtime = {}
  const createHandler: CreateHandler<object> = ({ hooks, basePath }) => handlerOf(hooks, basePath)
  const handlerOf = (hooks: RuntimeHooks, basePath: string | undefined) => async (request: Request) => {
    let route: RouteInfo | null = null
    try {
      await hooks.onRequest({ request, runtime })
      route = matchRoute(new URL(request.url).pathname, basePath)
      if (route === null) return await answered(hooks, request, { method: 'info' }, new Response(null, { status: 404 }))
      await hooks.onBeforeHandler({ request, runtime, route })
      return await answered(hooks, request, route, await relay(upstream, agent, request))
    } catch (error) {
      if (!(error instanceof Response)) throw error
      return answered(hooks, request, route ?? { method: 'info' }, error)
    }
  }
  const answered = async (hooks: RuntimeHooks, request: Request, route: RouteInfo, response: Response): Promise<Response> =>
    (await hooks.onResponse({ request, runtime, route, response })) ?? response
  return {
    runtime,
    createHandler,
    mount: (hooks) => {
      const handle = handlerOf(hooks, undefined)
      return (message, response) => {
        void (async () => sendResponse(response, await handle(createRequest(message, response))))().catch(() => {
          if (!response.headersSent) response.writeHead(500).end('Internal Server Error')
          else response.destroy()
        })
      }
    },
    end: () => agent.destroy(),
  }
}

/** What is permitted, as a request of the network. */
async function relay(upstream: string, agent: Agent, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = ask(
      `${upstream}${pathname}${search}`,
      { agent, method: request.method, headers: Object.fromEntries(request.headers), signal: request.signal },
      resolve,
    )
    outgoing.on('error', reject)
    if (request.body === null) outgoing.end()
    else pipeline(Readable.fromWeb(request.body), outgoing).catch(() => {})
  })
  const told = new Headers()
  for (let at = 0; at < answer.rawHeaders.length; at += 2) told.append(answer.rawHeaders[at]!, answer.rawHeaders[at + 1]!)
  const status = answer.statusCode ?? 500
  // The types of Node's web streams and those of the global fetch are not each other's.
  const body = [204, 205, 304].includes(status) ? null : (Readable.toWeb(answer) as unknown as ReadableStream)
  if (body === null) answer.resume()
  return new Response(body, { status, headers: told })
}
