/**
 * The LangGraph JS dev server with the graph of `langgraph/`, in a process of its own. It does not authenticate callers unless
 * it gets a handler for that. It runs in a temporary folder, because it keeps its state in the current one. Its packages are
 * those of `langgraph/`.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { command, noWords, untilStopped, UsageError } from './command.ts'

/** The id of its graph. */
export const GRAPH_ID = 'notes'

const SOURCE = fileURLToPath(new URL('langgraph', import.meta.url))
const PARENT_WATCH = new URL('langgraph-parent-watch.ts', import.meta.url).href
const COMMAND = 'dev --host 127.0.0.1 --port 0 --no-browser --no-reload --n-jobs-per-worker 20'
const FILES = ['graph.ts', 'langgraph.json', 'package.json'] as const
const START_MS = 60_000

/** The handlers in `langgraph/`: for the users' own tokens, and for a service's token with the gateway's word. */
const HANDLERS = ['auth.ts', 'service-auth.ts'] as const

export interface LangGraphOptions {
  /** The handler that asks who is there; there is none by default. */
  readonly handler?: (typeof HANDLERS)[number]
  /** Lets the server's Studio in without the handler, as servers do by default. */
  readonly studio?: boolean
  /** What the handler finds in its environment, besides the caller's. */
  readonly environment?: Readonly<Record<string, string>>
}

export interface LangGraph {
  /** Its origin. */
  readonly url: string
  /** Its last words, some 10,000 characters of them. */
  log(): string
  /** Ends it and removes its folder. */
  close(): Promise<void>
}

interface Started {
  readonly child: ChildProcess
  /** Resolves when the server and its processes have ended. */
  readonly gone: Promise<unknown>
  readonly log: () => string
}

/**
 * Starts the server and waits until it answers.
 * @throws with the end of its log, if it doesn't get there
 */
export async function startLangGraph({ handler, studio = false, environment = {} }: LangGraphOptions = {}): Promise<LangGraph> {
  const packages = join(SOURCE, 'node_modules')
  const program = join(packages, '@langchain/langgraph-cli/dist/cli/cli.mjs')
  if (!existsSync(program)) throw new Error('the packages of examples/langgraph are not installed: run npm run setup')
  const folder = await mkdtemp(join(tmpdir(), 'threadwarden-langgraph-'))
  let started: Started | undefined
  const close = async (): Promise<void> => {
    if (started !== undefined) await end(started)
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await Promise.all(FILES.map((name) => copyFile(join(SOURCE, name), join(folder, name))))
    if (handler !== undefined) await authenticate(folder, handler, studio)
    await symlink(packages, join(folder, 'node_modules'))
    started = await launch(program, folder, environment)
    return { url: await untilReady(started), log: started.log, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Names the handler in the server's settings. It stays where it is: beside the packages and the sources that it needs. */
async function authenticate(folder: string, handler: string, studio: boolean): Promise<void> {
  const settings = JSON.parse(await readFile(join(folder, 'langgraph.json'), 'utf8')) as object
  const auth = { path: `${join(SOURCE, handler)}:auth`, disable_studio_auth: !studio }
  await writeFile(join(folder, 'langgraph.json'), JSON.stringify({ ...settings, auth }))
}

async function launch(program: string, folder: string, more: Readonly<Record<string, string>>): Promise<Started> {
  const child = spawn(process.execPath, ['--import', PARENT_WATCH, program, ...COMMAND.split(' ')], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...inherited(), ...more },
    // The server has processes of its own: as the leader of a group it can be ended with them.
    detached: true,
  })
  let words = ''
  const hear = (data: Buffer): void => void (words = (words + data.toString('utf8')).slice(-10_000))
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  // Its pipes are closed when the last process of the group is gone.
  const gone = once(child, 'close')
  await once(child, 'spawn')
  return { child, gone, log: () => words }
}

/** The caller's environment without variables that enable telemetry or load more code. */
function inherited(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(?:LANG(?:SMITH|CHAIN|GRAPH)_|NODE_OPTIONS$)/.test(name))
  return {
    ...Object.fromEntries(kept),
    LANGGRAPH_CLI_NO_ANALYTICS: '1',
    LANGSMITH_TRACING: 'false',
    NO_COLOR: '1',
  }
}

async function untilReady({ child, log }: Started): Promise<string> {
  const deadline = Date.now() + START_MS
  while (!hasEnded(child) && Date.now() < deadline) {
    const url = address(log())
    // A handler refuses this request, too; a refusal shows that the server is up.
    if (url !== undefined && [200, 401].includes((await fetch(`${url}/ok`)).status)) return url
    await pause(20)
  }
  const what = hasEnded(child) ? 'ended at start' : 'is not ready'
  throw new Error(`the LangGraph server ${what}; its last words:\n${log().slice(-2000)}`)
}

/** The origin, as soon as the log tells on which port it listens. */
function address(log: string): string | undefined {
  const found = /Server running at (127\.0\.0\.1:\d+)/.exec(log)
  return found === null ? undefined : `http://${found[1]}`
}

/** Nothing is worth saving, so the server isn't asked. */
async function end({ child: { pid }, gone }: Started): Promise<void> {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch (error) {
    // Whoever has ended by himself needs no help.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
  await gone
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

const USAGE = `The LangGraph JS dev server with a graph that tells what it was given, with nothing in front of it.

  node langgraph.ts [--handler FILE]   start it; prints its URL

  --handler  the authentication handler (default: none): ${HANDLERS.join(' or ')} in langgraph/,
             which say what they want in the environment
`

if (import.meta.main) {
  await command(USAGE, ['handler'], async (words, values) => {
    noWords(words)
    const handler = HANDLERS.find((known) => known === values['handler'])
    if (handler === undefined && values['handler'] !== undefined) throw new UsageError(`--handler is ${HANDLERS.join(' or ')}`)
    const langGraph = await startLangGraph(handler === undefined ? {} : { handler })
    process.stdout.write(`${langGraph.url}\n`)
    await untilStopped(langGraph)
  })
}
