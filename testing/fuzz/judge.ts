/**
 * The judge: the real runtime package, behind its own adapters, stopped by its own hook when it has resolved a request.
 * Memories and the debug stream are switched on, so that every route that it knows is there to be reached.
 */
import '../../examples/no-telemetry.ts'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createRequire, findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Transport } from '../../src/core/route/transport.ts'
import type { Adapter } from './case.ts'
import { handedOn, type MakeJsonRequest, type Resolution, type ResolvedRoute } from './handed-on.ts'
import { incoming, outgoing, type Written } from './message.ts'

/** What the runtime resolved, or the status that it answered without resolving anything. */
export type Verdict = Resolution | number

interface HookContext {
  readonly request: Request
  readonly route: ResolvedRoute
}

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

const PACKAGE_FILE = findPackageJSON('@copilotkit/runtime', EXAMPLES) as string

async function load(path: string): Promise<object> {
  return (await import(pathToFileURL(join(dirname(PACKAGE_FILE), path)).href)) as object
}

/** Loads what the package exports under these names, as `import` would from `examples/`. */
async function loadExported(...names: readonly string[]): Promise<RuntimePackage> {
  const { exports } = createRequire(PACKAGE_FILE)(PACKAGE_FILE) as { exports: Record<string, { import: string }> }
  const parts: object[] = []
  for (const name of names) parts.push(await load(exports[name]!.import))
  return Object.assign({}, ...parts) as RuntimePackage
}

const runtimePackage = await loadExported('./v2', './v2/node', './v2/express')
// Not exported. It is what the runtime itself opens an envelope with, and so the only true reading of one.
const { createJsonRequest } = (await load('dist/v2/runtime/endpoints/single-route-helpers.mjs')) as {
  readonly createJsonRequest: MakeJsonRequest
}

/** How a runtime is mounted. */
export interface Mount {
  readonly adapter: Adapter
  readonly transport: Transport
  /** `''` or `/a/b`. */
  readonly basePath: string
}

/**
 * Mounts the runtime.
 * @param resolved told what each request was resolved to, instead of the handler
 */
export function mountRuntime(
  { adapter, transport: mode, basePath }: Mount,
  resolved: (resolution: Resolution, request: Request) => void,
): RequestListener {
  const agents = { default: {} }
  const runtime = new runtimePackage.CopilotRuntime({ agents, exposeMemoryRoutes: true, debug: true })
  const hooks = {
    async onBeforeHandler({ request, route }: HookContext): Promise<never> {
      resolved(await handedOn(mode, route, request, createJsonRequest), request)
      // oxlint-disable-next-line typescript/only-throw-error -- a response is how a hook answers
      throw new Response('{}', { status: 200, headers: { 'content-type': 'application/json', 'x-judged': 'yes' } })
    },
  }
  if (adapter === 'node') {
    const options = { runtime, hooks, mode, ...(basePath === '' ? {} : { basePath }) }
    const listener = runtimePackage.createCopilotNodeListener(options)
    return (request, response) => void listener(request, response)
  }
  const application = express()
  // Express would otherwise print each request that it can't read.
  application.set('env', 'test')
  if (adapter === 'express with a JSON parser') application.use(express.json({ limit: '4mb' }))
  const options = { runtime, hooks, mode, basePath: basePath === '' ? '/' : basePath }
  application.use(runtimePackage.createCopilotExpressHandler(options))
  return application
}

/** Asks a runtime that is mounted in one way what it makes of requests, one after the other. */
export function makeJudge(mount: Mount): (written: Written) => Promise<Verdict> {
  let resolution: Resolution | undefined
  const listener = mountRuntime(mount, (found) => (resolution = found))
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
