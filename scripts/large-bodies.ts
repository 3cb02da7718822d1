/**
 * What a large body costs: how long the gateway's event loop stands still for it, beside one parse and one serialisation
 * of the same body, and how much memory it takes. The caller and the upstream are in a thread of their own.
 */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { runInput } from '../testing/support/client.ts'
import { startTestGateway } from '../testing/support/gateway.ts'
import { makeSigner } from '../testing/support/tokens.ts'

const USAGE = `What a large body costs the gateway.

  npm run measure:bodies -- [--megabytes N] [--rounds N]

  --megabytes  size of the attachment, in base64 (default: 27)
  --rounds     requests of each kind (default: 20)
`

/** What the other thread is told: send this body. */
interface Order {
  readonly url: string
  readonly token: string
  readonly body: Uint8Array
}

/** What it tells: the status and how long it took, in milliseconds. */
interface Outcome {
  readonly status: number
  readonly ms: number
}

function runOtherSide(): void {
  const upstream = createServer((message, response) => {
    if (message.url?.endsWith('/info') === true) {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"version":"1","agents":{}}')
      return
    }
    message.resume()
    message.on('end', () => response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: 1\n\n'))
  })
  upstream.listen(0, '127.0.0.1', () => parentPort?.postMessage((upstream.address() as AddressInfo).port))
  parentPort?.on('message', ({ url, token, body }: Order) => {
    const began = performance.now()
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': body.length }
    const call = request(url, { method: 'POST', headers }, (answer) => {
      answer.resume()
      answer.on('end', () => parentPort?.postMessage({ status: answer.statusCode, ms: performance.now() - began }))
    })
    call.end(body)
  })
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
const mib = (bytes: number): string => (bytes / 1024 ** 2).toFixed(1)

/** One parse and one serialisation of a body, from bytes to bytes, in milliseconds. */
function parseAndSerialise(bytes: Buffer): number {
  const began = performance.now()
  Buffer.from(JSON.stringify(JSON.parse(bytes.toString('utf8'))))
  return performance.now() - began
}

function bodies(megabytes: number): Readonly<Record<string, Buffer>> {
  const data = 'QUJD'.repeat((megabytes * 1024 ** 2) / 4)
  const withContent = (content: unknown): Buffer =>
    Buffer.from(JSON.stringify({ ...runInput('t1'), messages: [{ id: 'm1', role: 'user', content }] }))
  const history = Array.from({ length: Math.min(40_000, megabytes * 1600) }, (_, at) => ({
    id: `m${at}`,
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: 'a line of a long conversation. '.repeat(20),
  }))
  return {
    'one attachment': withContent([{ type: 'binary', mimeType: 'image/png', data }]),
    'one attachment, a word beyond Latin-1': withContent([
      { type: 'text', text: '漢字' },
      { type: 'binary', mimeType: 'image/png', data },
    ]),
    'a long history': Buffer.from(JSON.stringify({ ...runInput('t1'), messages: history })),
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      megabytes: { type: 'string', default: '27' },
      rounds: { type: 'string', default: '20' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) {
    process.stdout.write(USAGE)
    return
  }
  const other = new Worker(new URL(import.meta.url))
  const told = <T>(): Promise<T> => new Promise((resolve) => other.once('message', resolve))
  const port = await told<number>()
  const signer = makeSigner()
  const gateway = await startTestGateway({
    authentication: signer.authentication,
    upstream: { url: `http://127.0.0.1:${port}`, transport: 'multi-route' },
  })
  const url = `${gateway.url}/api/copilotkit/agent/default/run`
  const token = signer.sign('alice')
  const send = async (body: Buffer): Promise<Outcome> => {
    const outcome = told<Outcome>()
    other.postMessage({ url, token, body } satisfies Order)
    return outcome
  }
  await send(Buffer.from(JSON.stringify(runInput('t1'))))
  for (const [name, body] of Object.entries(bodies(Number(values.megabytes)))) {
    const stands: number[] = []
    const takes: number[] = []
    const baselines: number[] = []
    const before = process.resourceUsage().maxRSS
    let grown = 0
    for (let round = 0; round < Number(values.rounds); round += 1) {
      if (process.stderr.isTTY) process.stderr.write(`${name}: ${round + 1} of ${values.rounds}   \r`)
      const delay = monitorEventLoopDelay({ resolution: 1 })
      delay.enable()
      const { status, ms } = await send(body)
      delay.disable()
      if (status !== 200) throw new Error(`answered ${status}`)
      if (round === 0) grown = (process.resourceUsage().maxRSS - before) * 1024
      stands.push(delay.max / 1e6)
      takes.push(ms)
      baselines.push(parseAndSerialise(body))
    }
    const [stand, baseline] = [median(stands), median(baselines)]
    process.stdout.write(
      `${name}, ${mib(body.length)} MiB: the loop stands still for ${stand.toFixed(0)} ms at most (median of ${values.rounds}), ` +
        `one parse and one serialisation take ${baseline.toFixed(0)} ms: ratio ${(stand / baseline).toFixed(2)}; ` +
        `the request takes ${median(takes).toFixed(0)} ms; the first one grew memory by ${mib(grown)} MiB\n`,
    )
  }
  await gateway.close()
  signer.remove()
  await other.terminate()
}

if (isMainThread) await main()
else runOtherSide()
