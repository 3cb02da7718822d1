/**
 * The demo: a real issuer, agent, runtime and gateway on loopback, and who gets what from them. Fails if any exchange is not as expected.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath } from 'node:url'
import { generateKeyPair, decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import { parseArgs } from 'node:util'
import { startAgent } from './agent.ts'
import { startGateway, type DemoGateway } from './demo-gateway.ts'
import { runInput, throughGateway, withoutGateway, type Tokens } from './demo-steps.ts'
import { makeExchanges, print, styled } from './demo-exchanges.ts'
import { startIssuer, type Issuer } from './issuer.ts'
import { startPage } from './page.ts'
import { startRuntime, type Runtime } from './runtime.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const USAGE = `Shows what the gateway does, one real HTTP exchange a line.

  npm run demo             installs what is missing, shows it, and stays up until Ctrl-C
  npm run demo -- --once   the same, and exits
  npm run demo -- --page   the same as the first, and a chat page for your browser as the last step: it installs 500 MB of
                           packages the first time. Without it a terminal is asked

Exit codes: 0 all as expected, 1 something was not, 2 wrong usage.
`

interface Parts {
  readonly issuer: Issuer
  readonly runtime: Runtime
  readonly gateway: DemoGateway
}

/** Runs the demo; gives the exit code. */
async function demo(once: boolean, page: boolean): Promise<number> {
  const stop = new AbortController()
  // Never back to the default, which would end the demo and leave the gateway: closing takes seconds at most.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  // Piped into something that stopped reading.
  process.stdout.on('error', () => stop.abort())
  if (process.env['npm_lifecycle_event'] !== undefined) whenOrphaned(() => stop.abort())
  const closers: (() => Promise<void>)[] = []
  try {
    const parts = await start(stop.signal, closers)
    const tokens = await tokensOf(parts.issuer)
    if (!(await play(parts, tokens, stop.signal))) return 1
    return once ? 0 : await stayUp(parts, tokens, page, stop.signal, closers)
  } catch (error) {
    complain(stop.signal.aborted ? 'stopped before the end' : `the demo failed: ${textOf(error)}`)
    return 1
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

/** npm, told to end, ends the shell between it and the demo, and the demo hears nothing: it has to look. */
function whenOrphaned(tell: () => void): void {
  const parent = process.ppid
  setInterval(() => process.ppid === parent || tell(), 500).unref()
}

/** Starts the four, each known to the next; `closers` gets what stops them, also if a later one fails. */
async function start(signal: AbortSignal, closers: (() => Promise<void>)[]): Promise<Parts> {
  const started = <T extends { close(): Promise<void> }>(part: T): T => {
    closers.push(() => part.close())
    return part
  }
  const issuer = started(await startIssuer())
  const agent = started(await startAgent(issuer))
  const runtime = started(await startRuntime({ agentUrl: agent.url }))
  const { url: upstream, basePath } = runtime
  const gateway = started(await startGateway({ upstream, basePath, ...issuer, signal }))
  return { issuer, runtime, gateway }
}

async function tokensOf(issuer: Issuer): Promise<Tokens> {
  const alice = await issuer.signIn('alice')
  const { privateKey } = await generateKeyPair('RS256')
  const forged = await new SignJWT(decodeJwt(alice))
    .setProtectedHeader({ alg: 'RS256', ...decodeProtectedHeader(alice) })
    .sign(privateKey)
  return { alice, bob: await issuer.signIn('bob'), olga: await issuer.signIn('olga'), forged }
}

/** Shows everything; true if all of it was as expected. */
async function play({ runtime, gateway }: Parts, tokens: Tokens, signal: AbortSignal): Promise<boolean> {
  const { basePath, requests } = runtime
  const score = { right: 0, wrong: 0 }
  const direct = makeExchanges(`${runtime.url}${basePath}`, requests, signal, score)
  const guarded = makeExchanges(`${gateway.url}${basePath}`, requests, signal, score)
  print(
    'An agent chat runtime asks nobody who they are. Threadwarden, in front of it, does, and gives every thread an owner.\n' +
      'Each line is one real HTTP exchange: who asks for what, the status, and what that shows.\n',
  )
  direct.note(
    `Everything runs on this machine: issuer, agent, runtime, gateway; only the model is missing. Paths are below ${basePath}.`,
  )
  await withoutGateway(direct, tokens)
  await throughGateway(guarded, tokens, gateway)
  const { right, wrong } = score
  print(
    `\n${wrong === 0 ? `All ${right} exchanges as expected.` : styled('red', `${wrong} of ${right + wrong} exchanges not as expected.`)}\n`,
  )
  return wrong === 0
}

/** Says where everything is, and waits for Ctrl-C. */
async function stayUp(
  parts: Parts,
  { alice }: Tokens,
  page: boolean,
  signal: AbortSignal,
  closers: (() => Promise<void>)[],
): Promise<number> {
  const { issuer, runtime, gateway } = parts
  const chat = JSON.stringify(runInput('my-thread', 'Hello'))
  print(`
${styled('bold', 'Try it')}
gateway  ${gateway.url}${runtime.basePath}
runtime  ${runtime.url}${runtime.basePath} (nothing in front)
issuer   ${issuer.issuer}
health   ${gateway.healthUrl}/readyz and /metrics
config   ${gateway.configFile}, and policy.yaml beside it: changes are taken while it runs
process  ${gateway.pid}
log      ${gateway.logFile}

Chat as alice (the token is good for an hour):

curl -sN ${gateway.url}${runtime.basePath}/agent/remote/run -H 'content-type: application/json' -d '${chat}' -H 'authorization: Bearer ${alice}'

Then try the same thread with bob's token:

npx node examples/issuer.ts token --issuer ${issuer.issuer} --user bob

Ctrl-C stops everything.
`)
  if (page || (await isWanted(signal))) await showPage(parts, closers)
  const stopped = new Promise<'stopped'>((resolve) => {
    if (signal.aborted) resolve('stopped')
    signal.addEventListener('abort', () => resolve('stopped'))
  })
  if ((await Promise.race([stopped, gateway.ended])) === 'stopped') return 0
  complain('the gateway ended by itself')
  return 1
}

/** Asks a person at a terminal. Nobody is asked who is not there. */
async function isWanted(signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  // It keeps Ctrl-C to itself.
  terminal.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  try {
    const answer = await terminal.question('A chat page for your browser? The first time it installs 500 MB. [y/N] ', { signal })
    return /^y/i.test(answer.trim())
  } catch {
    return false
  } finally {
    terminal.close()
  }
}

/** Builds the page, serves it, and lets it in. Without it everything else goes on. */
async function showPage({ issuer, runtime, gateway }: Parts, closers: (() => Promise<void>)[]): Promise<void> {
  print('building the page …\n')
  const [built] = (await once(
    spawn('npm', ['run', 'build:web'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] }),
    'exit',
  )) as [number | null]
  if (built !== 0) return complain('the page could not be built: see above')
  const page = await startPage(() => ({ runtimeUrl: `${gateway.url}${runtime.basePath}`, issuer: issuer.issuer }))
  closers.push(() => page.close())
  await gateway.allow(page.url)
  print(`
${styled('bold', 'In your browser')}
page     ${page.url}: sign in as Alice; and as Bob in a private window, who has other threads, and can't open hers
`)
}

function complain(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** With its cause, since "fetch failed" alone says nothing. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}

/** The options; the message of what is wrong with them, if anything is. */
function read(): { once?: boolean; page?: boolean; help?: boolean } | string {
  try {
    const { values } = parseArgs({
      options: { once: { type: 'boolean' }, page: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
    })
    return values.once === true && values.page === true ? '--once and --page exclude each other' : values
  } catch (error) {
    return textOf(error)
  }
}

const options = read()
if (typeof options === 'string') {
  complain(`${options}\n\n${USAGE}`)
  process.exitCode = 2
} else if (options.help === true) {
  print(USAGE)
} else {
  process.exitCode = await demo(options.once === true, options.page === true)
}
