/**
 * The managed platform as it is deployed: the real runtime in its mode for it, the real OpenID provider, the gateway from its
 * ready configuration, and a stand-in in the place of the platform's closed API.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { parse } from 'yaml'
import { startIssuer } from '../../examples/issuer.ts'
import {
  startPlatformStandIn,
  type PlatformRequest,
  type PlatformStandIn,
  type PlatformStandInOptions,
} from '../../examples/platform-stand-in.ts'
import { startRuntime, type Runtime } from '../../examples/runtime.ts'
import { classify, type RouteDescriptor } from '../../src/core/route/classify.ts'
import { makeIdentity } from '../../src/http/pipeline/identity.ts'
import { call, runInput, type Call, type Reply } from '../../testing/support/client.ts'
import { sayOnFailure } from '../../testing/support/decided.ts'
import { deploymentFile, startDeployment } from '../../testing/support/deployment.ts'
import { makeFolder, startTestGateway, type ConfigTree, type TestGateway } from '../../testing/support/gateway.ts'
import { until } from '../../testing/support/until.ts'

const NAME = 'managed-platform'
const PUBLIC_URL = 'https://chat.example.com'
const AUDIENCE = 'copilot-runtime'
const BASE_PATH = '/api/copilotkit'

/** Where the list is; the runtime wants to know of which agent. */
export const LIST = '/threads?agentId=default'

/** The body of what changes a thread. */
export const AGENT = { agentId: 'default' }

/** What a socket opens with, as the stand-in writes it. */
export const SECRET = /join-(?:token|code)/

/** Who asks, by the name at the issuer. */
export type Person = 'alice' | 'bob'

export interface ManagedScene {
  readonly platform: PlatformStandIn
  readonly runtime: Runtime
  readonly gateway: TestGateway
  /** The public base of the gateway's routes. */
  readonly base: string
  readonly tokens: Readonly<Record<Person, string>>
  /** Asks a gateway as somebody; the one from the ready configuration unless another's base is named. */
  ask(who: Person, path: string, options?: Call, base?: string): Promise<Reply>
  /** Asks the runtime past the gateway. */
  direct(path: string, options?: Call): Promise<Reply>
  /** A run through the gateway, until its last event is at the platform. */
  run(who: Person, threadId: string, more?: Record<string, unknown>): Promise<Reply>
  /** The assertion that the gateway would make for somebody's request about a thread; or one with another's key. */
  assertion(who: string, threadId: string, key?: string): Record<string, string>
  /** A gateway beside the first, on its store, whose configuration is otherwise than the ready one. */
  beside(change: (ready: ConfigTree) => ConfigTree): Promise<{ readonly base: string }>
  /** Everything that gateways wrote: log, audit, metrics. The first gateway is stopped. */
  written(): Promise<string>
}

/** Starts everything; it ends with the test, and then no gateway may have written down what opens a socket. */
export async function startManaged(t: Test, options: PlatformStandInOptions = {}): Promise<ManagedScene> {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const key = newKey()
  const keyFile = join(folder, 'assertion.pem')
  writeFileSync(keyFile, key)
  const platform = await startPlatformStandIn(options)
  t.teardown(() => platform.close())
  const keys = [createPublicKey(createPrivateKey(key)).export({ format: 'jwk' })]
  const { apiUrl, wsUrl, apiKey } = platform
  const runtime = await startRuntime({
    exposeMemoryRoutes: true,
    platform: { apiUrl, wsUrl, apiKey, assertion: { issuer: PUBLIC_URL, audience: AUDIENCE, keys } },
  })
  t.teardown(() => runtime.close())
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  const [alice, bob] = await Promise.all([issuer.signIn('alice'), issuer.signIn('bob')])
  const tokens = { alice, bob }
  const environment = {
    RUNTIME_URL: runtime.url,
    ISSUER_URL: issuer.issuer,
    PUBLIC_URL,
    ASSERTION_KEY_FILE: keyFile,
    THREADWARDEN_DATA: folder,
  }
  const gateway = await startDeployment(NAME, environment)
  sayOnFailure(t, gateway)
  t.teardown(() => gateway.close())
  await gateway.ready()
  const base = `${gateway.url}${BASE_PATH}`
  const gateways = [gateway]

  const ask: ManagedScene['ask'] = (who, path, request, at = base) => call(`${at}${path}`, { token: tokens[who], ...request })
  const written = async (): Promise<string> => {
    const metrics = await call(`${gateway.healthUrl}/metrics`)
    await gateway.stop(0)
    const audit = readdirSync(folder).filter((name) => name.startsWith('audit'))
    const log = gateways.map(({ lines }) => JSON.stringify(lines)).join('\n')
    return [log, metrics.text, ...audit.map((name) => readFileSync(join(folder, name), 'utf8'))].join('\n')
  }
  return {
    platform,
    runtime,
    gateway,
    base,
    tokens,
    ask,
    written,
    direct: (path, request) => call(`${runtime.url}${BASE_PATH}${path}`, request),
    async run(who, threadId, more = {}) {
      const reply = await ask(who, '/agent/default/run', { body: runInput(threadId, 'hello', more) })
      await until(() => platform.threads.running(threadId) === null)
      return reply
    },
    assertion(who, threadId, signing = key) {
      const rules = {
        keys: [signing],
        issuer: PUBLIC_URL,
        audience: AUDIENCE,
        lifetime: 60_000,
        header: 'x-threadwarden-assertion',
        replaceAuthorization: false,
      }
      const descriptor = classify('GET', ['threads', threadId, 'events'], new Map()) as RouteDescriptor
      const principal = { kind: 'user', id: `corp:${who}`, issuer: 'corp', name: who, roles: [], permissions: [], groups: [] }
      return { ...makeIdentity({}, rules, Date.now).headersTo()(principal as never, descriptor) }
    },
    async beside(change) {
      const ready = readFileSync(deploymentFile(NAME), 'utf8')
      const whole = ready.replaceAll(/\$\{env:(\w+)\}/g, (_whole, name: keyof typeof environment) => environment[name])
      const { upstream, authentication, identity, ownership, policy } = parse(whole) as Record<string, string & ConfigTree>
      const rules = readFileSync(join(deploymentFile(NAME), '..', policy!), 'utf8')
      const store = { unknownThread: ownership!['unknownThread'] }
      const tree = change({ upstream, authentication, identity, ownership: store })
      const other = await startTestGateway(tree, { policy: rules, shared: gateway.folder })
      sayOnFailure(t, other)
      t.teardown(() => other.close())
      gateways.push(other)
      await other.ready()
      return { base: `${other.url}${BASE_PATH}` }
    },
  }
}

/** A key that signs assertions, in PEM. */
export function newKey(): string {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

/** An id as browsers make them up. */
export function newThread(): string {
  return crypto.randomUUID()
}

/** The body of a connect. */
export function page(threadId: string): Record<string, unknown> {
  return runInput(threadId, '', { messages: [] })
}

/** What the platform is asked meanwhile. */
export async function asked({ platform }: ManagedScene, act: () => Promise<unknown>): Promise<readonly PlatformRequest[]> {
  const before = platform.requests.length
  await act()
  return platform.requests.slice(before)
}
