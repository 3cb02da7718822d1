/** Starts a gateway in this process from a configuration as an operator would write it. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGateway, type Gateway, type Machine } from '../../src/gateway/start.ts'
import { makeLog } from '../../src/observe/log.ts'
import type { Outcome } from '../../src/document/document.ts'
import { prepare, type Prepared } from '../../src/snapshot/load.ts'
import type { Runtime } from '../../examples/runtime.ts'
import { call, type Call, type Reply } from './client.ts'
import { startInProcess } from './in-process.ts'
import { MULTI_ROUTE, type Pair } from './pair.ts'
import { ask, requestBytes, type RawRequest } from './raw.ts'

/** A gateway under test. */
export interface TestGateway extends Gateway {
  /** Its folder: configuration, store. */
  readonly folder: string
  /** Its configuration, as JSON: `reload` reads it again. A policy that was given stands beside it, with `.policy` behind. */
  readonly file: string
  /** Every log line, parsed. */
  readonly lines: Record<string, unknown>[]
  /** Method and target of the requests that were sent with `call` and `ask`, by request id. */
  readonly asked: ReadonlyMap<string, string>
  /** Waits until /readyz says so. */
  ready(): Promise<void>
  /** Sends a request as the client of its pair does (client.ts). */
  readonly call: (url: string, options?: Call) => Promise<Reply>
  /** Sends a request as the client of its pair writes it, and gives the answer (raw.ts). */
  readonly ask: (request: RawRequest) => ReturnType<typeof ask>
  /** A request as the client of its pair writes it. */
  readonly bytes: (request: RawRequest) => Buffer
  close(): Promise<void>
}

/**
 * A configuration as it would stand in a file; what is left out gets test values: ports 0, a store in the folder, and no limit
 * of new threads, requests and grants, because tests make many.
 */
export type ConfigTree = Record<string, unknown>

/** What is kept over a restart of the machine: temporary folders may be in memory, which the doctor would warn of. */
const ON_DISK = '/var/tmp'

/** An empty folder that goes when the test is over. */
export function makeFolder(where: 'anywhere' | 'on disk' = 'anywhere'): { readonly folder: string; readonly remove: () => void } {
  const parent = where === 'on disk' && existsSync(ON_DISK) ? ON_DISK : tmpdir()
  const folder = mkdtempSync(join(parent, 'threadwarden-test-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export interface GatewayOptions {
  /** `MULTI_ROUTE` by default. */
  readonly pair?: Pair | undefined
  /** The text of a policy file; by default the shipped one. */
  readonly policy?: string | undefined
  /** The folder of another gateway, to share its store. */
  readonly shared?: string | undefined
  /** What start looks at, in place of this machine. */
  readonly machine?: Machine | undefined
  /** What hooks stand before; without it they hand on to `upstream.url`, by way of what looks like a runtime. */
  readonly runtime?: Runtime | undefined
}

/**
 * Starts a gateway: a proxy, or hooks for a pair that is in process.
 * @param tree the configuration; `upstream.url` and the issuers must be there
 */
export async function startTestGateway(tree: ConfigTree, options: GatewayOptions = {}): Promise<TestGateway> {
  const { pair = MULTI_ROUTE, policy, shared, machine, runtime } = options
  const { folder, remove } = shared === undefined ? makeFolder() : { folder: shared, remove: () => {} }
  const file = join(folder, `threadwarden-${Math.random().toString(36).slice(2)}.yaml`)
  const { ownership, upstream, limits, ...rest } = tree as { ownership?: object; upstream: object; limits?: object }
  const whole = {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    ...rest,
    upstream: { basePath: '/api/copilotkit', ...upstream },
    ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim', ...ownership },
    limits: { newThreads: 'off', requests: 'off', grants: 'off', ...limits },
  } as Record<string, unknown>
  if (policy !== undefined) {
    whole['policy'] = `${file}.policy`
    writeFileSync(`${file}.policy`, policy)
  }
  writeFileSync(file, JSON.stringify(whole))
  if (pair.place === 'proxy') {
    return startPrepared(() => prepare(file, process.env), { folder, file, remove }, { pair, machine })
  }
  const { lines, log } = hearing()
  const gateway = await startInProcess(file, runtime ?? (upstream as { url: string }).url, log)
  // Where hooks warn of the configuration, a command does for the proxy.
  lines.splice(0, lines.length, ...lines.filter(({ msg }) => msg !== 'configuration'))
  return underTest(gateway, { folder, file, remove }, lines, pair)
}

/** Where a gateway has its files, and what takes them away. */
interface Place {
  readonly folder: string
  readonly file: string
  readonly remove: () => void
}

/** Starts a gateway from a configuration that is read with `read`, and hears its log. */
export async function startPrepared(
  read: () => Outcome<Prepared>,
  place: Place,
  { pair = MULTI_ROUTE, machine }: Pick<GatewayOptions, 'pair' | 'machine'> = {},
): Promise<TestGateway> {
  const prepared = read()
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults, null, 2))
  const { lines, log } = hearing()
  const gateway = await startGateway(prepared.value, makeLog('debug', log), {
    ...(machine === undefined ? {} : { machine }),
    prepare: read,
  })
  return underTest(gateway, place, lines, pair)
}

/** A gateway with what a test wants of it. */
function underTest(
  gateway: Gateway,
  { folder, file, remove }: Place,
  lines: TestGateway['lines'],
  { client: transport }: Pair,
): TestGateway {
  const asked = new Map<string, string>()
  const noted = <Answered extends { readonly headers: Headers }>(method: string, target: string, answer: Answered): Answered => {
    asked.set(answer.headers.get('x-request-id') ?? '', `${method} ${target}`)
    return answer
  }
  return {
    ...gateway,
    folder,
    file,
    lines,
    ready: () => untilReady(gateway.healthUrl),
    asked,
    call: async (url, options) => {
      const reply = await call(url, { transport, ...options })
      return noted(options?.method ?? (options?.body === undefined ? 'GET' : 'POST'), new URL(url).pathname, reply)
    },
    ask: async (request) => {
      const answer = await ask(gateway.url, { transport, ...request })
      return noted(request.method ?? (request.body === undefined ? 'GET' : 'POST'), request.target, answer)
    },
    bytes: (request) => requestBytes({ transport, ...request }),
    async close() {
      await gateway.stop(0)
      remove()
    },
  }
}

/** A log, and what was written to it. */
function hearing(): { readonly lines: Record<string, unknown>[]; readonly log: { write(line: string): void } } {
  const lines: Record<string, unknown>[] = []
  return { lines, log: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) } }
}

async function untilReady(healthUrl: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${healthUrl}/readyz`)
    await answer.text()
    if (answer.status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
