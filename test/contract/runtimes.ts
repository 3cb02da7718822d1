/** The runtimes that the gateway is written for: two versions, as applications mount them, and a table of what they answer. */
import type { Test } from 'tap'
import { startOldRuntime } from '../../examples/runtime-1.54/runtime.ts'
import { startRuntime, type RuntimeRequest } from '../../examples/runtime.ts'
import { call, runInput, type Reply } from '../../testing/support/client.ts'

/** How a version is mounted. */
export const RUNTIMES = ['1.75 node', '1.75 express', '1.54 express', '1.54 hono'] as const

/** How a version is mounted. */
export type RuntimeName = (typeof RUNTIMES)[number]

/** The transport of a runtime. */
export type Mode = 'multi-route' | 'single-route'

/** A runtime of either version. */
export interface AnyRuntime {
  readonly url: string
  readonly basePath: string
  readonly requests: RuntimeRequest[]
  close(): Promise<void>
}

/** Where an agent of another process is, and what the runtime is told to send there. */
export interface RemoteAgent {
  readonly agentUrl?: string
  readonly agentHeaders?: Readonly<Record<string, string>>
}

/** Starts one of them; it is closed when the test is over. */
export async function start(t: Test, name: RuntimeName, mode: Mode, remote: RemoteAgent = {}): Promise<AnyRuntime> {
  const runtime = await starters[name](mode, remote)
  t.teardown(() => runtime.close())
  return runtime
}

const starters: Readonly<Record<RuntimeName, (mode: Mode, remote: RemoteAgent) => Promise<AnyRuntime>>> = {
  '1.75 node': (mode, remote) => startRuntime({ adapter: 'node', mode, ...remote }),
  '1.75 express': (mode, remote) => startRuntime({ adapter: 'express', mode, ...remote }),
  '1.54 express': (mode, remote) => startOldRuntime({ adapter: 'express', mode, ...remote }),
  '1.54 hono': (mode, remote) => startOldRuntime({ adapter: 'hono', mode, ...remote }),
}

/** A request, by its path below the base path. */
export interface Asked {
  readonly method?: string
  readonly path?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

/** What comes back. */
export interface Answer {
  readonly status: number
  /** Its text, what that looks like, or what its JSON has at least; unless given, nobody relies on it. */
  readonly body?: string | RegExp | object
  /** True if the thread has a history afterwards. */
  readonly ran?: true
}

/** Something that the gateway relies on. */
export interface Row {
  readonly relied: string
  /** A request that names a thread that nobody has had before. */
  readonly ask: (thread: string) => Asked
  /** By name or version; the most exact one counts. */
  readonly answers: Readonly<Partial<Record<'all' | '1.75' | '1.54' | RuntimeName, Answer>>>
}

/** Asks all the runtimes for all the rows. */
export function tell(t: Test, mode: Mode, rows: readonly Row[]): void {
  for (const name of RUNTIMES) {
    void t.test(name, async (t) => {
      hush(t)
      const runtime = await start(t, name, mode)
      for (const { relied, ask, answers } of rows) {
        const expected = answers[name] ?? answers[name.startsWith('1.75') ? '1.75' : '1.54'] ?? answers.all
        if (expected === undefined) throw new Error(`nothing is said of ${name}: ${relied}`)
        const thread = crypto.randomUUID()
        const reply = await send(runtime, ask(thread))
        const replay = await send(runtime, connecting(mode, thread))
        t.same([reply.status, replay.status, replay.text !== ''], [expected.status, 200, expected.ran ?? false], relied)
        const { body } = expected
        if (typeof body === 'string') t.equal(reply.text, body, relied)
        else if (body !== undefined) t.match(body instanceof RegExp ? reply.text : reply.json, body, relied)
      }
    })
  }
}

/** Sends a request to a runtime. */
export function send(runtime: AnyRuntime, { path = '', ...asked }: Asked): Promise<Reply> {
  return call(`${runtime.url}${runtime.basePath}${path}`, asked)
}

/** An envelope about the agent `default`. */
export function envelope(method: unknown, body?: unknown, params: Readonly<Record<string, unknown>> = {}): object {
  return { method, params: { agentId: 'default', ...params }, ...(body !== undefined && { body }) }
}

/** A request for the history of a thread. */
export function connecting(mode: Mode, thread: string): Asked {
  const body = runInput(thread)
  return mode === 'multi-route' ? { path: '/agent/default/connect', body } : { body: envelope('agent/connect', body) }
}

/** The runtimes tell the console of everything that is wrong with a request. */
export function hush(t: Test): void {
  t.capture(console, 'error')
  t.capture(console, 'warn')
}
