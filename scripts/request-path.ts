/**
 * Lists the source files and functions that serve one warm `POST /agent/:id/run`: a known thread, on SQLite, with the shipped
 * policy. V8 counts the calls in a gateway of this process.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request, type IncomingMessage } from 'node:http'
import type { Profiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startGateway } from '../src/gateway/start.ts'
import { makeLog } from '../src/observe/log.ts'
import { prepare } from '../src/snapshot/load.ts'
import { ISSUER, ISSUER_KEY, makeIssuer } from '../testing/bench/requests/tokens.ts'
import { runCommand } from '../testing/command.ts'

/** What a change may not exceed. To be lowered with each change that makes the way shorter. */
const MOST_FILES = 40
const MOST_FUNCTIONS = 180

const USAGE = `The source files and functions that serve one warm run.

  npm run path -- [--check] [--functions]

  --check      exit code 1 for more than ${MOST_FILES} files or ${MOST_FUNCTIONS} functions
  --functions  list the functions of each file, with their calls
`

const WARM_UP = 200
const ROUNDS = 5

type Coverage = Profiler.TakePreciseCoverageReturnType

interface Path {
  /** The functions of each file below src/, with the calls of each. */
  readonly files: ReadonlyMap<string, readonly { readonly name: string; readonly calls: number }[]>
}

async function measure(): Promise<Path> {
  const folder = mkdtempSync(join(tmpdir(), 'threadwarden-path-'))
  const upstream = createServer((message, response) => {
    message.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end('data: {"type":"RUN_FINISHED","threadId":"t1","runId":"r1"}\n\n')
    })
  })
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const publicKeyFile = join(folder, 'issuer.pem')
  const token = makeIssuer(publicKeyFile)('alice')
  const file = join(folder, 'threadwarden.yaml')
  const loopback = { host: '127.0.0.1', port: 0 }
  const configuration = {
    version: 1,
    listen: loopback,
    health: loopback,
    upstream: {
      url: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
      basePath: '/api/copilotkit',
      transport: 'multi-route',
    },
    authentication: { issuers: { [ISSUER_KEY]: { ...ISSUER, publicKeyFile } } },
    ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim' },
    limits: { requests: 'off', runs: 'off', streams: 'off' },
  }
  writeFileSync(file, JSON.stringify(configuration))
  const prepared = prepare(file, process.env)
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults))
  const gateway = await startGateway(prepared.value, makeLog('silent'))
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const run = async (): Promise<void> => {
    const body = JSON.stringify({ threadId: 't1', runId: 'r1', messages: [], tools: [], context: [], state: {} })
    const asking = request(`${gateway.url}/api/copilotkit/agent/default/run`, {
      agent,
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': body.length },
    })
    asking.end(body)
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    if (answer.statusCode !== 200) throw new Error(`the run was answered with ${answer.statusCode}`)
    await once(answer.resume(), 'end')
  }
  const session = new Session()
  session.connect()
  try {
    for (let round = 0; round < WARM_UP; round += 1) await run()
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    const { result } = await shortest(session, run)
    const source = new URL('../src/', import.meta.url).href
    const files = result
      .filter(({ url }) => url.startsWith(source))
      .map(({ url, functions }) => {
        const called = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
        return [
          url.slice(source.length),
          called.map(({ functionName, ranges }) => ({ name: functionName || '(anonymous)', calls: ranges[0]?.count ?? 0 })),
        ] as const
      })
      .filter(([, functions]) => functions.length > 0)
    return { files: new Map(files.sort(([a], [b]) => a.localeCompare(b))) }
  } finally {
    session.disconnect()
    agent.destroy()
    await gateway.stop(0)
    upstream.close()
    rmSync(folder, { recursive: true })
  }
}

/** The one of several runs with the fewest calls: timers of the gateway fire during the others. */
async function shortest(session: Session, run: () => Promise<void>): Promise<Coverage> {
  const taken: { readonly coverage: Coverage; readonly functions: number }[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    await sleep(200)
    // What is due after a pause, such as looking whether the file of the store is the same, is done by this one.
    await run()
    await session.post('Profiler.takePreciseCoverage')
    await run()
    const coverage = await session.post('Profiler.takePreciseCoverage')
    const functions = coverage.result
      .filter(({ url }) => url.startsWith('file:'))
      .flatMap((script) => script.functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)).length
    taken.push({ coverage, functions })
  }
  return taken.reduce((least, one) => (one.functions < least.functions ? one : least)).coverage
}

await runCommand(async () => {
  const { values } = parseArgs({ options: { check: { type: 'boolean' }, functions: { type: 'boolean' } } })
  const { files } = await measure()
  const all = [...files.values()].flat()
  for (const [file, functions] of files) {
    process.stdout.write(`${String(functions.length).padStart(4)}  ${file}\n`)
    if (values.functions === true) {
      for (const { name, calls } of functions) process.stdout.write(`          ${name}${calls === 1 ? '' : ` × ${calls}`}\n`)
    }
  }
  const calls = all.reduce((sum, one) => sum + one.calls, 0)
  process.stdout.write(`${files.size} files, ${all.length} functions, ${calls} calls\n`)
  return values.check === true && (files.size > MOST_FILES || all.length > MOST_FUNCTIONS) ? 1 : 0
}, USAGE)
