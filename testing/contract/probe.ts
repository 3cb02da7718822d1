/**
 * Asks an installed runtime what it takes and gives, and prints that as JSON: `node probe.ts FOLDER`. In a process of its own, because
 * it replaces `fetch` and the parsers of JSON. Nothing goes to the network.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { declaredInfo, readDictionary, type Dictionary } from './dictionary.ts'
import type { HeaderFacts, RouteFacts, RuntimeContract } from './facts.ts'
import { findPaths, type Resolved } from './paths.ts'
import { installRecorder, recording, type Reads } from './recorder.ts'

process.env['COPILOTKIT_TELEMETRY_DISABLED'] = 'true'

const BASE = '/base'
const AGENT_URL = 'http://agent.invalid/'
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

type Mode = 'multi-route' | 'single-route'
type Handler = (request: Request) => Promise<Response>

interface RouteInfo extends Readonly<Record<string, string>> {
  readonly method: string
}

/** The exports of a runtime that are used here, of any version. */
interface RuntimeModule {
  readonly CopilotRuntime: new (options: object) => object
  readonly CopilotKitIntelligence?: new (options: object) => object
  readonly TranscriptionService?: new () => object
  /** From 1.57 on. */
  readonly createCopilotRuntimeHandler?: (options: object) => Handler
  /** A Hono application in 1.54. */
  readonly createCopilotEndpoint?: (options: object) => HonoApp
  readonly createCopilotEndpointSingleRoute?: (options: object) => HonoApp
}

interface HonoApp {
  readonly fetch: (request: Request) => Response | Promise<Response>
  readonly routes: readonly { readonly method: string; readonly path: string }[]
}

interface Runtime {
  readonly folder: string
  readonly manifest: Manifest
  readonly module: RuntimeModule
  readonly dictionary: Dictionary
  /** With its own store, and with the managed platform where it knows it. */
  readonly stores: readonly object[]
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, { readonly import?: string | { readonly default: string } }>>
}

/** What the agent was last sent. */
let sentToAgent = new Headers()

function installFetch(): void {
  globalThis.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input)
    if (!url.startsWith(AGENT_URL)) return Response.json({}, { status: 404 })
    sentToAgent = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    const events = ['RUN_STARTED', 'RUN_FINISHED'].map(
      (type) => `data: ${JSON.stringify({ type, threadId: 't', runId: 'r' })}\n\n`,
    )
    return new Response(events.join(''), { headers: { 'content-type': 'text/event-stream' } })
  }
}

async function load(folder: string, manifest: Manifest): Promise<Runtime> {
  const { import: entry } = manifest.exports['./v2'] ?? manifest.exports['.'] ?? {}
  const file = typeof entry === 'string' ? entry : entry?.default
  if (file === undefined) throw new Error(`${folder} exports no module ./v2`)
  const module = (await import(pathToFileURL(join(folder, file)).href)) as RuntimeModule
  const { HttpAgent } = (await import(createRequire(join(folder, 'package.json')).resolve('@ag-ui/client'))) as {
    readonly HttpAgent: new (options: object) => object
  }
  const source = join(folder, 'dist/v2')
  const options = {
    agents: { default: new HttpAgent({ url: AGENT_URL, headers: { authorization: 'agent', 'x-both': 'agent' } }) },
    exposeMemoryRoutes: true,
    a2ui: { enabled: true },
    openGenerativeUI: true,
    ...(module.TranscriptionService === undefined ? {} : { transcriptionService: new module.TranscriptionService() }),
  }
  const own = new module.CopilotRuntime(options)
  const { CopilotKitIntelligence } = module
  const managed =
    CopilotKitIntelligence === undefined
      ? []
      : [
          new module.CopilotRuntime({
            ...options,
            intelligence: new CopilotKitIntelligence({
              apiUrl: 'http://platform.invalid',
              wsUrl: 'ws://platform.invalid',
              apiKey: 'cpk_0123456789abcdef0123456789abcdef',
              organizationId: 'organization',
            }),
            identifyUser: () => ({ id: 'user', name: 'user' }),
            generateThreadNames: false,
          }),
        ]
  return {
    folder,
    manifest,
    module,
    dictionary: readDictionary(existsSync(source) ? source : join(folder, 'dist')),
    stores: [own, ...managed],
  }
}

/** @param hooks of versions that have them */
function handlerOf({ module }: Runtime, runtime: object, mode: Mode, hooks: object = {}): Handler {
  const settings = { runtime, basePath: BASE, mode, hooks }
  const { createCopilotRuntimeHandler, createCopilotEndpoint, createCopilotEndpointSingleRoute } = module
  if (createCopilotRuntimeHandler !== undefined) return createCopilotRuntimeHandler(settings)
  const make = mode === 'multi-route' ? createCopilotEndpoint : createCopilotEndpointSingleRoute
  if (make === undefined) throw new Error('the runtime exports neither createCopilotRuntimeHandler nor createCopilotEndpoint')
  const { fetch } = make(settings)
  return async (request) => fetch(request)
}

/** Tells the route before its handler is called. */
const TELLS_ROUTE = {
  onBeforeHandler: ({ route }: { readonly route: RouteInfo }): never => {
    // oxlint-disable-next-line typescript/only-throw-error -- a response is how a hook answers
    throw new Response(JSON.stringify(route), { status: 299 })
  },
}

const URL_BASE = `http://runtime.invalid${BASE}`

function get(path: string, method: string): Request {
  return new Request(`${URL_BASE}/${path}`, { method })
}

function post(value: unknown, path = ''): Request {
  const body = typeof value === 'string' ? value : JSON.stringify(value)
  return new Request(`${URL_BASE}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
}

async function pathsOf(
  runtime: Runtime,
): Promise<readonly (Omit<RouteFacts, 'isTunnelled' | 'bodyKeys' | 'readsOtherKeys'> & { readonly label: string })[]> {
  const { module, dictionary, stores } = runtime
  if (module.createCopilotRuntimeHandler === undefined) {
    const { routes = [] } = module.createCopilotEndpoint?.({ runtime: stores[0], basePath: BASE }) ?? {}
    const own = routes.filter(({ method, path }) => method !== 'ALL' && path.startsWith(`${BASE}/`))
    return own.map(({ method, path }) => ({ method, path: path.slice(BASE.length + 1), label: '' }))
  }
  const handler = handlerOf(runtime, stores[0] as object, 'multi-route', TELLS_ROUTE)
  const ask = async (path: string, method: string): Promise<RouteInfo | string | null> => {
    const answer = await handler(get(path, method))
    if (answer.status === 299) return (await answer.json()) as RouteInfo
    return answer.status === 405 ? (answer.headers.get('allow') ?? '') : null
  }
  const resolvePath = async (path: string): Promise<Resolved | null> => {
    // A method that no route has had yet: 405 is told sooner than a body is read.
    const first = await ask(path, 'PUT')
    if (first === null) return null
    const methods: string[] = []
    let route: RouteInfo | null = null
    for (const method of METHODS) {
      const told = await ask(path, method)
      if (told === null || typeof told === 'string') continue
      route = told
      methods.push(method)
    }
    if (route === null) return { label: path, ids: {}, methods: ['?'] }
    const { method: label, ...ids } = route
    return { label, ids, methods }
  }
  const found = await findPaths(dictionary, resolvePath)
  return found.flatMap(({ label, path, methods }) => methods.map((method) => ({ method, path, label })))
}

/** Members that handlers may want to be valid before they read more. */
const MEMBERS: Readonly<Record<string, unknown>> = {
  threadId: 'thread',
  runId: 'run',
  messages: [],
  tools: [],
  context: [],
  state: {},
  forwardedProps: {},
  agentId: 'default',
  name: 'name',
  archived: true,
  type: 'type',
  payload: {},
  clientEventId: 'event',
  occurredAt: '2026-01-01T00:00:00Z',
  content: 'content',
  kind: 'topical',
  scope: 'user',
  query: 'query',
  limit: 1,
  audio: 'AAAA',
  mimeType: 'audio/webm',
}

function* bodies(): Generator<Readonly<Record<string, unknown>>> {
  yield {}
  yield MEMBERS
  for (const key of Object.keys(MEMBERS)) {
    const { [key]: value, ...others } = MEMBERS
    yield others
    yield { [key]: value }
  }
}

async function finish(answer: Promise<Response>): Promise<void> {
  const timeout = new Promise<void>((resolve) => setTimeout(resolve, 1000).unref())
  const read = answer.then((response) => response.text()).catch(() => '')
  await Promise.race([read, timeout])
}

async function readsOf(runtime: Runtime, method: string, path: string): Promise<Reads> {
  const reads: Reads = { named: new Set(), readsOthers: false }
  const target = `/${path.replaceAll(':agentId', 'default').replaceAll(/:\w+/g, 'id-a')}`
  for (const store of runtime.stores) {
    const handler = handlerOf(runtime, store, 'multi-route')
    for (const members of bodies()) {
      // Each run needs a thread of its own.
      const own = 'threadId' in members ? { ...members, threadId: crypto.randomUUID() } : members
      await recording(own, reads, (text) => finish(handler(new Request(post(text, target), { method }))))
    }
  }
  return reads
}

const NO_METHOD = 'contract-none'

async function envelopesOf(runtime: Runtime): Promise<readonly string[]> {
  const hooks = runtime.module.createCopilotRuntimeHandler === undefined ? {} : TELLS_ROUTE
  const handler = handlerOf(runtime, runtime.stores[0] as object, 'single-route', hooks)
  const ask = async (method: string): Promise<{ readonly status: number; readonly text: string }> => {
    const params = { agentId: 'default', threadId: 'id-a', path: '/threads', httpMethod: 'GET' }
    const answer = await handler(post({ method, params, body: {} }))
    const text = answer.headers.get('content-type')?.includes('event-stream') === true ? '' : await answer.text()
    return { status: answer.status, text }
  }
  const refused = await ask(NO_METHOD)
  const methods: string[] = []
  for (const method of runtime.dictionary.texts) {
    const { status, text } = await ask(method)
    if (status !== refused.status || text !== refused.text.replaceAll(NO_METHOD, method)) methods.push(method)
  }
  return methods
}

async function isTunnelled(handler: Handler, method: string, path: string): Promise<boolean> {
  const target = `/${path.replaceAll(/:\w+/g, 'id-a')}`
  const answer = await handler(post({ method: 'resource/request', params: { path: target, httpMethod: method }, body: {} }))
  return answer.status === 299
}

async function envelopeKeysOf(runtime: Runtime): Promise<readonly string[]> {
  const reads: Reads = { named: new Set(), readsOthers: false }
  const handler = handlerOf(runtime, runtime.stores[0] as object, 'single-route')
  const members: Readonly<Record<string, unknown>> = {
    method: 'agent/stop',
    params: { agentId: 'default', threadId: 'id-a' },
    body: {},
  }
  for (const left of ['', ...Object.keys(members)]) {
    const own = Object.fromEntries(Object.entries(members).filter(([key]) => key !== left))
    await recording(own, reads, (text) => finish(handler(post(text))))
  }
  return [...reads.named]
}

async function infoOf(runtime: Runtime): Promise<readonly string[]> {
  const fields = new Set<string>()
  for (const store of runtime.stores) {
    const multi = await handlerOf(runtime, store, 'multi-route')(get('info', 'GET'))
    const single = await handlerOf(runtime, store, 'single-route')(post({ method: 'info' }))
    for (const answer of [multi, single]) addFields(fields, '', await answer.json())
  }
  // 1.54 has its types elsewhere, and a newer version may be in a folder above it.
  if (runtime.manifest.dependencies?.['@copilotkit/shared'] === undefined) return [...fields]
  const shared = createRequire(join(runtime.folder, 'package.json')).resolve('@copilotkit/shared')
  for (const name of declaredInfo(shared.slice(0, shared.lastIndexOf('/dist/') + '/dist/'.length))) {
    if (![...fields].some((field) => field === name || field.startsWith(`${name}.`))) fields.add(name)
  }
  return [...fields]
}

/** What the platform and an agent say about themselves is theirs. */
const NOT_FOLLOWED = /^(?:runtimeEntitlements|agents\.\*\.capabilities|a2ui)$/

function addFields(fields: Set<string>, place: string, value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || NOT_FOLLOWED.test(place)) {
    fields.add(place)
    return
  }
  for (const [key, member] of Object.entries(value)) {
    const name = place === 'agents' ? '*' : key
    addFields(fields, place === '' ? name : `${place}.${name}`, member)
  }
}

/** Headers that gateways, proxies and browsers set. */
const HEADER_NAMES = ['authorization', 'cookie', 'accept-language', 'forwarded', 'traceparent', 'x-both', 'x-own', 'x-user-id']
const PROXY_HEADERS = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'x-request-id']

async function headersOf(runtime: Runtime): Promise<HeaderFacts> {
  const handler = handlerOf(runtime, runtime.stores[0] as object, 'multi-route')
  const run = async (headers: Headers): Promise<Headers> => {
    const body = JSON.stringify({ ...MEMBERS, threadId: crypto.randomUUID() })
    await finish(handler(new Request(`${URL_BASE}/agent/default/run`, { method: 'POST', headers, body })))
    return sentToAgent
  }
  const own = await run(new Headers({ 'content-type': 'application/json' }))
  if (own.get('x-both') !== 'agent') throw new Error('the agent was not asked, or did not get its own headers')
  const caller = new Headers({ 'content-type': 'application/json' })
  const words = runtime.dictionary.words.map((word) => word.toLowerCase()).filter((word) => /^[a-z][a-z0-9-]*$/.test(word))
  for (const name of [...HEADER_NAMES, ...PROXY_HEADERS, ...words]) if (!caller.has(name)) caller.set(name, 'caller')
  const sent = await run(caller)
  const arrived = [...sent.keys()].filter((name) => sent.get(name) === 'caller' || (name === 'authorization' && own.has(name)))
  const isPrefixed = (name: string): boolean => name.startsWith('x-')
  const passes = (name: string): boolean => sent.get(name) === 'caller'
  return {
    winner: sent.get('x-both') === 'agent' && sent.get('authorization') === 'agent' ? 'agent' : 'caller',
    forwarded: [...new Set(arrived.map((name) => (isPrefixed(name) ? 'x-*' : name)))].toSorted(),
    withheld: [...caller.keys()]
      .filter((name) => isPrefixed(name) && name !== 'x-both' && !name.endsWith('-') && !passes(name))
      .toSorted(),
  }
}

async function contractOf(folder: string): Promise<RuntimeContract> {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  const core = createRequire(join(folder, 'package.json')).resolve('@ag-ui/core')
  const agUi = JSON.parse(readFileSync(`${core.slice(0, core.lastIndexOf('/dist/'))}/package.json`, 'utf8')) as Manifest
  const runtime = await load(folder, manifest)
  const headers = await headersOf(runtime)
  const found = await pathsOf(runtime)
  const envelopeMethods = await envelopesOf(runtime)
  const canTunnel = envelopeMethods.includes('resource/request')
  const tunnel = canTunnel ? handlerOf(runtime, runtime.stores[0] as object, 'single-route', TELLS_ROUTE) : null
  const infoFields = await infoOf(runtime)
  installRecorder()
  const envelopeKeys = await envelopeKeysOf(runtime)
  const routes: RouteFacts[] = []
  for (const { method, path } of found) {
    const reads = method === 'GET' ? { named: new Set<string>(), readsOthers: false } : await readsOf(runtime, method, path)
    routes.push({
      method,
      path,
      isTunnelled: tunnel !== null && (await isTunnelled(tunnel, method, path)),
      bodyKeys: [...reads.named].toSorted(),
      readsOtherKeys: reads.readsOthers,
    })
  }
  const reached = new Set([...found.map(({ label }) => label), ...envelopeMethods])
  const isLabelled = runtime.module.createCopilotRuntimeHandler !== undefined
  return {
    package: manifest.name,
    version: manifest.version,
    agUi: agUi.version,
    routes: routes.toSorted((one, other) => one.path.localeCompare(other.path) || one.method.localeCompare(other.method)),
    unreached: isLabelled ? runtime.dictionary.labels.filter((label) => !reached.has(label)) : [],
    envelopeMethods: envelopeMethods.toSorted(),
    envelopeKeys: envelopeKeys.toSorted(),
    infoFields: infoFields.toSorted(),
    headers,
  }
}

const folder = process.argv[2] === undefined ? undefined : resolve(process.argv[2])
if (folder === undefined) throw new Error('usage: node probe.ts FOLDER')
const write = process.stdout.write.bind(process.stdout)
// The runtime reports on stdout what is wrong with a request.
process.stdout.write = () => true
for (const name of ['log', 'info', 'warn', 'error', 'debug'] as const) console[name] = () => {}
installFetch()
const contract = await contractOf(folder)
write(`${JSON.stringify(contract)}\n`, () => process.exit(0))
