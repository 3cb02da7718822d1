/** Starts an installed runtime of any tested version, with one agent of another process. */
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import '../../examples/no-telemetry.ts'
import { listen, remember, stop } from '../../examples/http.ts'
import { startOldRuntime } from '../../examples/runtime-1.54/runtime.ts'
import type { RuntimeRequest } from '../../examples/runtime.ts'
import { folderOf } from './installed.ts'

export interface Released {
  readonly url: string
  readonly basePath: string
  readonly requests: RuntimeRequest[]
  close(): Promise<void>
}

export interface ReleasedOptions {
  readonly mode: 'multi-route' | 'single-route'
  /** Of the agent `remote`. */
  readonly agentUrl: string
  readonly agentHeaders?: Readonly<Record<string, string>>
}

interface NodeModule {
  readonly createCopilotNodeListener: (options: object) => RequestListener
}

interface RuntimeModule {
  readonly CopilotRuntime: new (options: object) => object
}

interface ClientModule {
  readonly HttpAgent: new (options: object) => object
}

type Entries = Readonly<Record<string, { readonly import: string | { readonly default: string } }>>

export async function startReleased(version: string, options: ReleasedOptions): Promise<Released> {
  if (version === '1.54.1') return startOldRuntime({ adapter: 'hono', ...options })
  const folder = folderOf(version)
  if (folder === null) throw new Error(`runtime ${version} is not installed: node scripts/setup.mjs --tests --runtimes`)
  const { exports: entries } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly exports: Entries }
  const load = async (entry: string): Promise<unknown> => {
    const file = entries[entry]?.import
    return import(pathToFileURL(join(folder, (typeof file === 'object' ? file.default : file) ?? entry)).href)
  }
  const { CopilotRuntime } = (await load('./v2')) as RuntimeModule
  const { createCopilotNodeListener } = (await load('./v2/node')) as NodeModule
  const { HttpAgent } = (await import(createRequire(join(folder, 'package.json')).resolve('@ag-ui/client'))) as ClientModule
  const remote = new HttpAgent({ url: options.agentUrl, headers: { ...options.agentHeaders } })
  const basePath = '/api/copilotkit'
  const listener = createCopilotNodeListener({
    runtime: new CopilotRuntime({ agents: { remote } }),
    basePath,
    mode: options.mode,
  })
  const requests: RuntimeRequest[] = []
  const server = createServer((request, response) => {
    const { method = '', url = '', headers, rawHeaders } = request
    remember(requests, { method, url, headers, rawHeaders })
    listener(request, response)
  })
  const { origin } = await listen(server, 0, '127.0.0.1')
  return { url: origin, basePath, requests, close: () => stop(server) }
}
