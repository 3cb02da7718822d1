/** The demo: a real issuer, agent, runtime and gateway on loopback. It fails if any exchange has an unexpected result. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startAgent } from './agent.ts'
import { startGateway, type DemoGateway } from './demo-gateway.ts'
import { throughGateway, withoutGateway, type Tokens } from './demo-steps.ts'
import { makeExchanges, print, styled } from './demo-exchanges.ts'
import { forgedToken } from './forged-token.ts'
import { startIssuer, type Issuer } from './issuer.ts'
import { startPage } from './page.ts'
import { startRuntime, type Runtime } from './runtime.ts'

/** The body of a run: AG-UI's RunAgentInput, short enough to paste. */
const TRIAL_RUN = {
  threadId: 'my-thread',
  runId: 'run-1',
  messages: [{ id: 'message-1', role: 'user', content: 'Hello' }],
  tools: [],
  context: [],
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const USAGE = `Shows what the gateway does, one real HTTP exchange a line.

  npm run demo             installs missing packages, shows the exchanges, and runs until Ctrl-C
  npm run demo -- --once   the same, but ends after the last exchange
  npm run demo -- --page   also serves a chat page for your browser. The first time, this installs 500 MB more.
                           Without this option, the demo asks if it runs in a terminal

Exit codes: 0 all results expected, 1 an unexpected result or a failure, 2 wrong usage.
`

interface Parts {
  readonly issuer: Issuer
  readonly runtime: Runtime
  readonly gateway: DemoGateway
}

/** Runs the demo and returns the exit code. */
async function demo(once: boolean, page: boolean): Promise<number> {
  const stop = new AbortController()
  // Not once(): a second signal would end the demo and leave the gateway running. Closing takes a few seconds at most.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  // The reader of a pipe has ended.
  process.stdout.on('error', () => stop.abort())
  if (process.env['npm_lifecycle_event'] !== undefined) whenOrphaned(() => stop.abort())
  const closers: (() => Promise<void>)[] = []
  try {
    introduce()
    const parts = await start(stop.signal, closers)
    const tokens = await tokensOf(parts.issuer)
    if (!(await play(parts, tokens, stop.signal))) return 1
    return once ? 0 : await stayUp(parts, page, stop.signal, closers)
  } catch (error) {
    complain(stop.signal.aborted ? 'stopped before the last exchange' : `the demo failed: ${textOf(error)}`)
    return 1
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

/** When npm is stopped, it ends the shell between it and the demo without a signal to the demo. So the demo polls. */
function whenOrphaned(tell: () => void): void {
  const parent = process.ppid
  setInterval(() => process.ppid === parent || tell(), 500).unref()
}

function introduce(): void {
  print(
    `Agent chat runtimes do not authenticate callers. Threadwarden proxies a runtime and gives every thread an owner.

This demo runs an OpenID provider, an agent, a CopilotKit runtime and the gateway on this machine.
There is no language model: the agents answer without one. Starting …
`,
  )
}

/** Starts the four parts; `closers` gets the functions that stop them, also if a later part fails. */
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
  return { alice, bob: await issuer.signIn('bob'), olga: await issuer.signIn('olga'), forged: await forgedToken(alice) }
}

/** Shows all exchanges; true if every result was the expected one. */
async function play({ runtime, gateway }: Parts, tokens: Tokens, signal: AbortSignal): Promise<boolean> {
  const { basePath, requests } = runtime
  const score = { right: 0, wrong: 0 }
  const direct = makeExchanges(`${runtime.url}${basePath}`, requests, signal, score)
  const guarded = makeExchanges(`${gateway.url}${basePath}`, requests, signal, score)
  print(`
Each line is a real HTTP exchange. Paths are below ${basePath}. A ¦ separates the parts of a streamed answer.

  caller   method  path                         status
`)
  await withoutGateway(direct, tokens)
  await throughGateway(guarded, tokens, gateway)
  const { right, wrong } = score
  print(
    `\n${wrong === 0 ? `All ${right} exchanges had the expected result.` : styled('red', `${wrong} of ${right + wrong} exchanges had an unexpected result.`)}\n`,
  )
  return wrong === 0
}

/** Prints addresses and commands, and waits for Ctrl-C. */
async function stayUp(parts: Parts, page: boolean, signal: AbortSignal, closers: (() => Promise<void>)[]): Promise<number> {
  const { issuer, runtime, gateway } = parts
  const pageUrl = page || (await isPageWanted(signal)) ? await servePage(parts, closers) : undefined
  if (signal.aborted) return 0
  print(`
${styled('bold', 'Everything is still running. Try it yourself.')}

Open another terminal in this folder, and paste:

GATEWAY=${gateway.url}${runtime.basePath}
RUNTIME=${runtime.url}${runtime.basePath}
ISSUER=${issuer.issuer}
ALICE=$(npx node examples/issuer.ts token --issuer $ISSUER --user alice)
BOB=$(npx node examples/issuer.ts token --issuer $ISSUER --user bob)

Alice starts a thread, Bob asks the gateway for it (403), and a caller without a token asks the runtime (200):

curl -N $GATEWAY/agent/default/run -H "Authorization: Bearer $ALICE" -H 'Content-Type: application/json' \\
  -d '${JSON.stringify(TRIAL_RUN)}'
curl -i $GATEWAY/threads/${TRIAL_RUN.threadId}/messages -H "Authorization: Bearer $BOB"
curl -i $RUNTIME/threads/${TRIAL_RUN.threadId}/messages

metrics          ${gateway.healthUrl}/metrics
configuration    ${gateway.configFile}
policy           ${gateway.policyFile}: the gateway applies your changes within two seconds
gateway log      ${gateway.logFile}
gateway process  ${gateway.pid}
${pageUrl === undefined ? '' : `chat page        ${pageUrl}: sign in as Alice, and as Bob in a private window\n`}
${styled('bold', 'Press Ctrl-C to stop everything.')} The tokens are valid for an hour.
`)
  const stopped = new Promise<'stopped'>((resolve) => {
    if (signal.aborted) resolve('stopped')
    signal.addEventListener('abort', () => resolve('stopped'))
  })
  const end = await Promise.race([stopped, gateway.ended])
  if (end === 'stopped') return 0
  // Read now: the demo removes the folder of the log.
  complain(`the gateway process ended unexpectedly (${end}). The end of its log:\n${await gateway.endOfLog()}`)
  return 1
}

/** Asks whether to serve the chat page, if there is a terminal. */
async function isPageWanted(signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  // readline does not pass Ctrl-C on.
  terminal.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  try {
    const answer = await terminal.question(
      '\nServe a chat page for your browser, too? The first time, this installs 500 MB more. [y/N] ',
      { signal },
    )
    return /^y/i.test(answer.trim())
  } catch {
    return false
  } finally {
    terminal.close()
  }
}

/** Builds and serves the page, and allows its origin. Returns its URL; undefined if the build failed. */
async function servePage({ issuer, runtime, gateway }: Parts, closers: (() => Promise<void>)[]): Promise<string | undefined> {
  print('Building the chat page …\n')
  const [built] = (await once(
    spawn('npm', ['run', 'build:web'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] }),
    'exit',
  )) as [number | null]
  if (built !== 0) {
    complain('the chat page could not be built: see above. The demo goes on without it.')
    return undefined
  }
  const page = await startPage(() => ({ runtimeUrl: `${gateway.url}${runtime.basePath}`, issuer: issuer.issuer }))
  closers.push(() => page.close())
  await gateway.allow(page.url)
  return page.url
}

function complain(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** The message with its cause, because "fetch failed" alone explains nothing. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}

/** The options, or an error message. */
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
