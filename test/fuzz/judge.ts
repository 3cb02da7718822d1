/**
 * The judge: the real runtime package, behind its own adapters, stopped by its own hook when it has resolved a request.
 * Memories and the debug stream are switched on, so that every route that it knows is there to be reached.
 */
import '../../examples/no-telemetry.ts'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createRequire, findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { PLACES, type Adapter, type Place } from './case.ts'
import { incoming, outgoing, type Written } from './message.ts'

/** What the runtime makes of a request. */
export interface Resolution {
  /** The operation and the ids of its path. */
  readonly route: { readonly method: string; readonly agentId?: string; readonly threadId?: string; readonly memoryId?: string }
  /** The thread that the handler of this operation would use: of the path, or of the body (contract §1). */
  readonly thread: unknown
  readonly method: string
  /** The query as the runtime's handlers read it: `searchParams` of the request's URL. */
  readonly query: readonly (readonly [string, string])[]
  /** The body as the runtime's handlers read it, undefined if they can't. */
  readonly body: unknown
}

/** What the runtime resolved, or the status that it answered without resolving anything. */
export type Verdict = Resolution | number

interface HookContext {
  readonly request: Request
  readonly route: Resolution['route']
}

const THREAD_IN_BODY = ['agent/run', 'agent/connect', 'agent/suggest', 'annotate']

/** What is used here of the package; the types that it ships can't be found from outside `examples/`. */
interface RuntimePackage {
  readonly CopilotRuntime: new (options: object) => object
  readonly createCopilotNodeListener: (options: object) => (request: IncomingMessage, response: ServerResponse) => Promise<void>
  readonly createCopilotExpressHandler: (options: object) => object
}
interface Express {
  (): RequestListener & { use(handler: object): void; set(name: string, value: unknown): void }
  json(options: object): object
}

const EXAMPLES = new URL('../../examples/package.json', import.meta.url)
const express = createRequire(EXAMPLES)('express') as Express

/** Loads what the package exports under these names, as `import` would from `examples/`. */
async function load(...names: readonly string[]): Promise<RuntimePackage> {
  const file = findPackageJSON('@copilotkit/runtime', EXAMPLES) as string
  const { exports } = createRequire(file)(file) as { exports: Record<string, { import: string }> }
  const parts: object[] = []
  for (const name of names) parts.push((await import(pathToFileURL(join(dirname(file), exports[name]!.import)).href)) as object)
  return Object.assign({}, ...parts) as RuntimePackage
}

const runtimePackage = await load('./v2', './v2/node', './v2/express')

/**
 * Mounts the runtime.
 * @param resolved told what each request was resolved to, instead of the handler
 */
export function mountRuntime(
  adapter: Adapter,
  place: Place,
  resolved: (resolution: Resolution, request: Request) => void,
): RequestListener {
  const { basePath } = PLACES[place]
  const agents = { default: {} }
  const runtime = new runtimePackage.CopilotRuntime({ agents, exposeMemoryRoutes: true, debug: true })
  const hooks = {
    async onBeforeHandler({ request, route }: HookContext): Promise<never> {
      const body = isRecording(request, route) ? undefined : await request.json().catch(() => undefined)
      const thread = THREAD_IN_BODY.includes(route.method) ? memberOf(body, 'threadId') : route.threadId
      const query = [...new URL(request.url).searchParams]
      resolved({ route, thread, method: request.method, query, body }, request)
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- a response is how a hook answers
      throw new Response('{}', { status: 200, headers: { 'content-type': 'application/json', 'x-judged': 'yes' } })
    },
  }
  if (adapter === 'node') {
    const options = { runtime, hooks, ...(basePath === '' ? {} : { basePath }) }
    const listener = runtimePackage.createCopilotNodeListener(options)
    return (request, response) => void listener(request, response)
  }
  const application = express()
  // Express would otherwise print each request that it can't read.
  application.set('env', 'test')
  if (adapter === 'express with a JSON parser') application.use(express.json({ limit: '4mb' }))
  application.use(runtimePackage.createCopilotExpressHandler({ runtime, hooks, basePath: basePath === '' ? '/' : basePath }))
  return application
}

/** A member of a value, if that is an object. */
export function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
}

/** True for a body that the runtime reads as a form. It looks for lower case alone; the gateway writes that. */
function isRecording(request: Request, route: Resolution['route']): boolean {
  const type = request.headers.get('content-type')?.toLowerCase() ?? ''
  return route.method === 'transcribe' && type.includes('multipart/form-data')
}

/** Asks a runtime that is mounted in one way what it makes of requests, one after the other. */
export function makeJudge(adapter: Adapter, place: Place): (written: Written) => Promise<Verdict> {
  let resolution: Resolution | undefined
  const listener = mountRuntime(adapter, place, (found) => (resolution = found))
  return (written) => {
    resolution = undefined
    return new Promise((done) => {
      const message = incoming(written)
      listener(
        message,
        outgoing(message, (status) => done(resolution ?? status)),
      )
    })
  }
}

const { error, warn } = console
let hushed = 0

/** Silences what the runtime says on the console of each request that it can't read. Gives what ends the silence. */
export function hush(): () => void {
  hushed += 1
  Object.assign(console, { error: () => {}, warn: () => {} })
  return () => {
    hushed -= 1
    if (hushed === 0) Object.assign(console, { error, warn })
  }
}
