/**
 * Whether the time of a 404 tells a foreign thread from a missing one. Starts a gateway before an upstream that records, gives
 * one user many threads, and lets another ask for those and for missing ones, in random order over a kept connection. Besides, the
 * same is measured for two kinds of missing ids, which can't differ: what that comparison shows is the noise.
 */
import { randomInt, randomUUID } from 'node:crypto'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import Database from 'better-sqlite3'
import { readFileSync } from 'node:fs'
import { DEFAULT_POLICY } from '../src/config/policy-file.ts'
import { makeFolder } from '../testing/support/gateway.ts'
import { requestBytes } from '../testing/support/raw.ts'
import { makeSigner, type Signer } from '../testing/support/tokens.ts'
import { startUpstream } from '../testing/support/upstream.ts'

const USAGE = `Measures whether the time of a 404 tells a foreign thread from a missing one.

  npm run measure:denials -- [--rounds N] [--threads N]

  --rounds   requests of each kind and route (default: 20000)
  --threads  threads that are somebody else's (default: 20000)

P(X>Y) is the chance that a request of the first kind takes longer than one of the second: 0.5 is no difference at all.
z is its distance from 0.5 in standard errors; compare it with that of the noise, which is of two kinds that can't differ.
`

/** How often the progress is told, in milliseconds: often to a person, seldom to a file. */
const TELL_EVERY = process.stderr.isTTY ? 500 : 15_000

/** Requests before the measurement, while the process is still compiling what it runs often. */
const WARM_UP = 2000

class UsageError extends Error {}

function read(): { readonly rounds: number; readonly threads: number } | null {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '20000' },
      threads: { type: 'string', default: '20000' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return null
  return { rounds: count('rounds', values.rounds), threads: count('threads', values.threads) }
}

function count(name: string, text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new UsageError(`--${name} is a whole number above zero`)
  return Number(text)
}

/** The shipped policy, but for messages, which it hides too. */
function hidingMessages(): string {
  const shipped = readFileSync(DEFAULT_POLICY.path, 'utf8')
  return shipped
    .replace('[agent/stop, threads/messages,', '[agent/stop,')
    .replace('[threads/events, threads/state]', '[threads/events, threads/state, threads/messages]')
}

/** Threads of somebody else's, written past the gateway: as many claims would take minutes. */
function seed(folder: string, ids: readonly string[]): void {
  const database = new Database(join(folder, 'ownership.db'))
  try {
    const insert = database.prepare(
      `INSERT INTO threads (scope, thread_id, user_id, agent_id, created_at, last_used_at) VALUES ('', ?, 'corp:bob', 'default', 0, 0)`,
    )
    database.transaction(() => {
      for (const id of ids) insert.run(id)
    })()
  } finally {
    database.close()
  }
}

/** The real program, in a process of its own. */
async function serve(signer: Signer, upstreamUrl: string): Promise<{ url: string; folder: string; close(): Promise<void> }> {
  const { folder, remove } = makeFolder()
  const file = join(folder, 'threadwarden.yaml')
  writeFileSync(join(folder, 'policy.yaml'), hidingMessages())
  const config = {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    upstream: { url: upstreamUrl, basePath: '/api/copilotkit', transport: 'multi-route' },
    authentication: signer.authentication,
    ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim' },
    shutdown: { delay: '0s' },
    policy: 'policy.yaml',
  }
  writeFileSync(file, JSON.stringify(config))
  const program = spawn(process.execPath, [join(import.meta.dirname, '../src/cli.ts'), 'serve', '--config', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>((resolve, reject) => {
    program.once('exit', () => reject(new Error('the gateway did not start')))
    createInterface({ input: program.stdout }).on('line', (line) => {
      const said = JSON.parse(line) as { msg?: string; url?: string }
      if (said.msg === 'listening' && said.url !== undefined) resolve(said.url)
    })
  })
  return {
    url,
    folder,
    close: async () => {
      const gone = new Promise((resolve) => program.once('exit', resolve))
      program.kill('SIGTERM')
      await gone
      remove()
    },
  }
}

/** Sends one request after the other on a connection, and gives the nanoseconds until each answer was there whole. */
function makeClock(socket: Socket): (bytes: Buffer) => Promise<number> {
  let answered: (() => void) | undefined
  let failed: ((error: Error) => void) | undefined
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    if (!/"code":"[a-z-]+"\}$/.test(text)) return
    if (text.endsWith('"code":"not-found"}')) answered?.()
    else failed?.(new Error(`an answer that is no 404: ${text}`))
    text = ''
  })
  socket.on('error', (error) => failed?.(error))
  socket.on('close', () => failed?.(new Error(`the gateway closed the connection: ${text}`)))
  return async (bytes) => {
    const began = process.hrtime.bigint()
    await new Promise<void>((resolve, reject) => {
      answered = resolve
      failed = reject
      socket.write(bytes)
    })
    return Number(process.hrtime.bigint() - began)
  }
}

/** The rank sum test of Mann and Whitney, with a correction for ties. */
function compare(first: readonly number[], second: readonly number[]): { readonly chance: number; readonly z: number } {
  const all = [...first.map((value) => ({ value, mine: true })), ...second.map((value) => ({ value, mine: false }))]
  all.sort((one, other) => one.value - other.value)
  let ranks = 0
  let ties = 0
  for (let from = 0; from < all.length;) {
    let to = from
    while (to < all.length && all[to]?.value === all[from]?.value) to += 1
    // Equal values share the mean of their ranks, which begin at 1.
    const rank = (from + 1 + to) / 2
    for (let at = from; at < to; at += 1) if (all[at]?.mine === true) ranks += rank
    ties += (to - from) ** 3 - (to - from)
    from = to
  }
  const [m, n] = [first.length, second.length]
  const total = m + n
  const wins = ranks - (m * (m + 1)) / 2
  const deviation = Math.sqrt(((m * n) / 12) * (total + 1 - ties / (total * (total - 1))))
  return { chance: wins / (m * n), z: (wins - (m * n) / 2) / deviation }
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

function microseconds(nanoseconds: number): string {
  return (nanoseconds / 1000).toFixed(1).padStart(8)
}

const KINDS = ['foreign', 'missing', 'missing too'] as const
type Kind = (typeof KINDS)[number]

/** A random order of so many of each kind. */
function shuffled(rounds: number): Kind[] {
  const order = KINDS.flatMap((kind) => Array.from({ length: rounds }, () => kind))
  for (let at = order.length - 1; at > 0; at -= 1) {
    const other = randomInt(at + 1)
    ;[order[at], order[other]] = [order[other] as Kind, order[at] as Kind]
  }
  return order
}

async function main(): Promise<void> {
  const options = read()
  if (options === null) {
    process.stdout.write(USAGE)
    return
  }
  const { rounds, threads } = options
  const upstream = await startUpstream()
  const signer = makeSigner()
  const gateway = await serve(signer, upstream.url)
  const ids = Array.from({ length: threads }, () => randomUUID())
  seed(gateway.folder, ids)
  const token = signer.sign('alice')
  const { hostname, port } = new URL(gateway.url)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  const time = makeClock(socket)
  try {
    for (const route of ['events', 'messages']) {
      const ask = (kind: Kind): Promise<number> => {
        const id = kind === 'foreign' ? (ids[randomInt(ids.length)] ?? '') : randomUUID()
        return time(requestBytes({ target: `/api/copilotkit/threads/${id}/${route}`, token, keepAlive: true }))
      }
      for (const kind of shuffled(Math.ceil(WARM_UP / KINDS.length))) await ask(kind)
      const took: Record<Kind, number[]> = { foreign: [], missing: [], 'missing too': [] }
      const order = shuffled(rounds)
      let told = performance.now()
      for (const [at, kind] of order.entries()) {
        took[kind].push(await ask(kind))
        if (performance.now() - told < TELL_EVERY) continue
        told = performance.now()
        process.stderr.write(`${route}: ${at + 1} of ${order.length}${process.stderr.isTTY ? '\r' : '\n'}`)
      }
      report(route, took)
    }
    if (upstream.beginnings() > 0) throw new Error('a denied request reached the upstream')
  } finally {
    socket.removeAllListeners('close').destroy()
    await gateway.close()
    await upstream.close()
    signer.remove()
  }
}

function report(route: string, took: Readonly<Record<Kind, readonly number[]>>): void {
  const lines = KINDS.map((kind) => {
    const sorted = [...took[kind]].sort((one, other) => one - other)
    const parts = [0.25, 0.5, 0.75].map((part) => microseconds(quantile(sorted, part)))
    return `  ${kind.padEnd(12)}${parts.join('')}\n`
  })
  const said = (name: string, first: Kind, second: Kind): string => {
    const { chance, z } = compare(took[first], took[second])
    return `  ${name.padEnd(32)}P(X>Y) ${chance.toFixed(4)}  z ${z.toFixed(2)}\n`
  }
  process.stdout.write(
    `GET threads/:threadId/${route}, ${took.foreign.length} requests of each kind, in microseconds\n` +
      `  ${''.padEnd(12)}     25%  median     75%\n${lines.join('')}` +
      said('foreign against missing', 'foreign', 'missing') +
      said('noise: missing against missing', 'missing', 'missing too'),
  )
}

try {
  await main()
} catch (error) {
  const usage = error instanceof UsageError || (error instanceof TypeError && 'code' in error)
  process.stderr.write(
    usage ? `${error.message}\n\n${USAGE}` : `${error instanceof Error ? (error.stack ?? '') : String(error)}\n`,
  )
  process.exitCode = usage ? 2 : 1
}
