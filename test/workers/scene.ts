/** A gateway of several processes, as operators run it, before an upstream; and connections that lead to one of its workers. */
import { Agent, request } from 'node:http'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { serving, type Line, type Serving } from '../../testing/support/program.ts'
import { ANSWERS } from '../replicas/callers.ts'
import { call, runInput, type Reply } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { OPERATOR, OWNERS_SHARE } from '../../testing/support/sharing.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { startUpstream, type Answering, type Upstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'

/** An answer, on its way. */
export interface Stream {
  readonly status: number
  /** Everything that came so far. */
  readonly text: () => string
  /** Resolves when it is over, however it ended. */
  readonly over: Promise<unknown>
}

/** One connection to one worker. */
export interface ToWorker {
  readonly ask: (token: string, path: string, body?: unknown, method?: string) => Promise<Reply>
  readonly run: (token: string, threadId: string) => Promise<Reply>
  /** The status of a request that reads a thread. */
  readonly reads: (token: string, threadId: string) => Promise<number>
  /** Opens a stream that does not end by itself, on a connection of its own. */
  readonly connect: (token: string, threadId: string) => Promise<Stream>
}

/** All of it. */
export interface Scene extends Serving {
  readonly url: string
  readonly health: string
  readonly upstream: Upstream
  readonly file: string
  readonly folder: string
  readonly sign: (subject: string) => string
  /** The public key of whoever signs the tokens, as it is configured. */
  readonly keyFile: string
  readonly write: (changes: object) => void
  /** Connections to each of the workers, by number. */
  readonly workers: () => Promise<ReadonlyMap<number, ToWorker>>
  /** The ids of the processes of the workers. */
  readonly processes: () => readonly number[]
  /** The id of the process of a worker, by its number. */
  readonly processOf: (worker: number) => number
  /** Asks the admin API. */
  readonly operate: (path: string, body?: unknown, method?: string) => Promise<Reply>
  readonly ready: () => Promise<Reply>
  readonly figure: (name: string) => Promise<number>
}

/** What differs. */
export interface SceneOptions {
  readonly workers?: number
  readonly config?: object
  readonly answering?: Answering
  readonly environment?: Readonly<Record<string, string>>
}

/** Starts it, and waits until it is ready. */
export async function startScene(
  t: Test,
  { workers = 2, config = {}, answering = ANSWERS, environment = {} }: SceneOptions = {},
): Promise<Scene> {
  const upstream = await startUpstream(answering)
  const { folder, remove } = makeFolder()
  const signer = makeSigner()
  const file = join(folder, 'threadwarden.yaml')
  const tree = {
    version: 1,
    workers,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    admin: { port: 0, credential: OPERATOR },
    upstream: { url: upstream.url, basePath: '/api/copilotkit', transport: 'multi-route' },
    authentication: signer.authentication,
    ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim' },
    limits: { newThreads: 'off', requests: 'off' },
    shutdown: { delay: '0s' },
    policy: './policy.yaml',
  }
  const write = (changes: object): void => writeFileSync(file, JSON.stringify({ ...tree, ...config, ...changes }))
  writeFileSync(join(folder, 'policy.yaml'), OWNERS_SHARE)
  write({})
  t.teardown(async () => {
    await upstream.close()
    signer.remove()
    remove()
  })
  const gateway = await serving(t, file, { environment })
  const [url, health, admin] = ['url', 'health', 'admin'].map((name) => String(gateway.listening[name])) as [
    string,
    string,
    string,
  ]
  const ready = (): Promise<Reply> => call(`${health}/readyz`)
  await until(async () => (await ready()).status === 200)
  return {
    ...gateway,
    url,
    health,
    upstream,
    file,
    folder,
    sign: (subject) => signer.sign(subject),
    keyFile: (signer.authentication.issuers['corp'] as { readonly publicKeyFile: string }).publicKeyFile,
    write,
    processes: () => childrenOf(gateway.pid),
    processOf: (worker) => workerOf(gateway.pid, worker),
    workers: () => connections(t, gateway, url, workers),
    operate: (path, body, method) =>
      call(`${admin}${path}`, {
        token: OPERATOR,
        ...(body === undefined ? {} : { body }),
        ...(method === undefined ? {} : { method }),
      }),
    ready,
    figure: async (name) => {
      const { text } = await call(`${health}/metrics`)
      const lines = text.split('\n').filter((line) => line.startsWith(name))
      if (lines.length !== 1) throw new Error(`${lines.length} figures begin with ${name}`)
      return Number(lines[0]!.split(' ').at(-1))
    },
  }
}

/** Opens connections until there is one to each worker: the line of a request says whose it is. */
async function connections(t: Test, gateway: Serving, url: string, count: number): Promise<ReadonlyMap<number, ToWorker>> {
  const found = new Map<number, ToWorker>()
  while (found.size < count) {
    const { worker, way } = await open(t, gateway, url)
    if (!found.has(worker)) found.set(worker, way)
  }
  return new Map([...found].sort(([a], [b]) => a - b))
}

async function open(t: Test, gateway: Serving, url: string): Promise<{ readonly worker: number; readonly way: ToWorker }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const { worker } = await whose(gateway, await sent(url, agent, 'GET', '', '/api/copilotkit/nobody'))
  const ask: ToWorker['ask'] = async (token, path, body, method = body === undefined ? 'GET' : 'POST') => {
    const answer = await sent(url, agent, method, token, path, body)
    await answer.over
    return { ...answer, text: answer.text(), json: jsonOf(answer.text()) }
  }
  const way: ToWorker = {
    ask: (token, path, body, method) => ask(token, `/api/copilotkit${path}`, body, method),
    run: (token, threadId) => way.ask(token, '/agent/default/run', runInput(threadId)),
    reads: async (token, threadId) => (await way.ask(token, `/threads/${threadId}/messages`)).status,
    async connect(token, threadId) {
      // The next connections go to the workers in turn.
      for (;;) {
        const own = new Agent({ keepAlive: true, maxSockets: 1 })
        t.teardown(() => own.destroy())
        const there = await whose(gateway, await sent(url, own, 'GET', '', '/api/copilotkit/nobody'))
        if (there.worker !== worker) own.destroy()
        else {
          const stream = await sent(url, own, 'POST', token, '/api/copilotkit/agent/default/connect', runInput(threadId))
          if (stream.status === 200) await until(() => stream.text().includes('RUN_STARTED'))
          else await stream.over
          return stream
        }
      }
    },
  }
  return { worker, way }
}

type Sent = Stream & { readonly headers: Headers }

async function sent(url: string, agent: Agent, method: string, token: string, path: string, body?: unknown): Promise<Sent> {
  const { hostname, port } = new URL(url)
  const text = body === undefined ? undefined : JSON.stringify(body)
  const headers = {
    ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
    ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  }
  return new Promise((resolve, reject) => {
    const asked = request({ agent, hostname, port, method, path, headers }, (answer) => {
      let told = ''
      answer.setEncoding('utf8').on('data', (piece: string) => void (told += piece))
      answer.on('error', () => {})
      const over = new Promise((done) => answer.once('close', done))
      resolve({
        status: answer.statusCode ?? 0,
        headers: new Headers(answer.headers as Record<string, string>),
        text: () => told,
        over,
      })
    })
    asked.on('error', reject)
    asked.end(text)
  })
}

/** Which worker has answered. */
async function whose(gateway: Serving, answer: Sent): Promise<{ readonly worker: number; readonly line: Line }> {
  await answer.over
  const line = await gateway.line(({ msg, requestId }) => msg === 'request' && requestId === answer.headers.get('x-request-id'))
  return { worker: Number(line['worker']), line }
}

/**
 * The ids of the processes that one has started. One that is still a copy of it, before it runs a program of its own, is left out:
 * who stops it then stops its parent as well, which waits for that.
 */
export function childrenOf(pid: number): readonly number[] {
  const own = procFile(`${pid}`, 'cmdline')
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const children = ids.filter((id) => Number(/\) . (\d+)/.exec(procFile(id, 'stat'))?.[1]) === pid)
  return children.filter((id) => procFile(id, 'cmdline') !== own).map(Number)
}

/** The id of the process of a worker of one, by its number; 0 where there is none. */
export function workerOf(pid: number, worker: number): number {
  return childrenOf(pid).find((id) => procFile(`${id}`, 'cmdline').startsWith(`threadwarden worker ${worker}`)) ?? 0
}

/** A file of a process, or nothing where it is gone. */
function procFile(id: string, name: string): string {
  try {
    return readFileSync(`/proc/${id}/${name}`, 'utf8')
  } catch {
    return ''
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
