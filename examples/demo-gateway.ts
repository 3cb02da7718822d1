/** Starts the gateway of the demo from its sources, in a process of its own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** The web application that browsers may call from. */
export const ORIGIN = 'http://localhost:3000'

/** The header that only the gateway sets. In production its value is a secret. */
export const SERVICE_HEADER = { name: 'x-service-token', value: 'set-by-the-gateway' } as const

const PROGRAM = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const SHIPPED_POLICY = fileURLToPath(new URL('../policies/default.yaml', import.meta.url))
/** The shipped policy names it for editors. */
const POLICY_SCHEMA = fileURLToPath(new URL('../policies/policy.schema.json', import.meta.url))
const START_MS = 20_000
const STOP_MS = 10_000
/** The gateway reserves 5 s of its grace period for closing, so open streams get one second after Ctrl-C. */
const GRACE_S = '6'

export interface GatewayOptions {
  /** The origin of the runtime. */
  readonly upstream: string
  /** The path of its routes, at the runtime and at the gateway. */
  readonly basePath: string
  readonly issuer: string
  readonly audience: string
  /** Aborts the start. */
  readonly signal: AbortSignal
}

export interface DemoGateway {
  /** Its origin; routes are below the base path. */
  readonly url: string
  /** The origin of /readyz and /metrics. */
  readonly healthUrl: string
  /** The process id of `serve`. */
  readonly pid: number
  readonly configFile: string
  readonly policyFile: string
  readonly logFile: string
  /** Resolves when the process has ended, to its exit code or signal. */
  readonly ended: Promise<string>
  endOfLog(): Promise<string>
  /**
   * Rewrites the policy, and waits until the gateway has applied or rejected it.
   * @param change the change of the shipped policy's text
   */
  changePolicy(change: (shipped: string) => string): Promise<void>
  /** Allows an origin to call from browsers, and waits until the gateway has applied it. */
  allow(origin: string): Promise<void>
  /** Stops it and removes its folder. */
  close(): Promise<void>
}

/**
 * Starts the gateway and waits until it is ready.
 * @throws with the end of its log if it does not become ready
 */
export async function startGateway(options: GatewayOptions): Promise<DemoGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'threadwarden-demo-'))
  const configFile = join(folder, 'threadwarden.json')
  const logFile = join(folder, 'gateway.log')
  const policyFile = join(folder, 'policy.yaml')
  let child: ChildProcess | undefined
  const close = async (): Promise<void> => {
    if (child !== undefined) await end(child)
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await writeFile(join(folder, 'service-token'), `${SERVICE_HEADER.value}\n`, { mode: 0o600 })
    await copyFile(SHIPPED_POLICY, policyFile)
    await copyFile(POLICY_SCHEMA, join(folder, 'policy.schema.json'))
    await writeFile(configFile, `${JSON.stringify(configuration(options), null, 2)}\n`)
    child = await launch(configFile, logFile)
    const ended = whenEnded(child)
    const { url, health } = await untilReady(child, logFile, options.signal)
    const change = async (file: string, text: string): Promise<void> => {
      const before = changes(await readFile(logFile, 'utf8'))
      // Renamed into place, so that the gateway never reads half of it.
      await writeFile(`${file}.new`, text)
      await rename(`${file}.new`, file)
      while (changes(await readFile(logFile, 'utf8')) === before) await pause(50, undefined, { signal: options.signal })
    }
    return {
      url,
      healthUrl: health,
      pid: child.pid ?? 0,
      configFile,
      policyFile,
      logFile,
      ended,
      endOfLog: () => endOf(logFile),
      changePolicy: async (edit) => change(policyFile, edit(await readFile(SHIPPED_POLICY, 'utf8'))),
      allow: (origin) => change(configFile, `${JSON.stringify(configuration(options, [ORIGIN, origin]), null, 2)}\n`),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** The configuration. Port 0 is any free port; relative paths start at the file's folder. */
function configuration({ upstream, basePath, issuer, audience }: GatewayOptions, origins = [ORIGIN]): object {
  return {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    upstream: { url: upstream, basePath, headers: { [SERVICE_HEADER.name]: '${file:service-token}' } },
    cors: { origins },
    authentication: { issuers: { demo: { issuer, audiences: [audience], algorithms: ['RS256'] } } },
    ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim' },
    shutdown: { delay: '0s' },
    policy: './policy.yaml',
  }
}

async function launch(configFile: string, logFile: string): Promise<ChildProcess> {
  const log = await open(logFile, 'a')
  try {
    const child = spawn(process.execPath, [PROGRAM, 'serve', '--config', configFile], {
      stdio: ['ignore', log.fd, log.fd],
      env: { ...process.env, TERMINATION_GRACE_PERIOD_SECONDS: GRACE_S },
      // Not in the terminal's process group: Ctrl-C stops the demo, which then stops the gateway once.
      detached: true,
    })
    // A detached process would outlive a demo that crashes.
    const kill = (): void => void child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    await once(child, 'spawn')
    return child
  } finally {
    await log.close()
  }
}

async function untilReady(child: ChildProcess, logFile: string, signal: AbortSignal): Promise<{ url: string; health: string }> {
  const deadline = Date.now() + START_MS
  let addresses: { url: string; health: string } | undefined
  while (!hasEnded(child) && Date.now() < deadline) {
    addresses ??= listening(await readFile(logFile, 'utf8'))
    if (addresses !== undefined && (await fetch(`${addresses.health}/readyz`, { signal })).ok) return addresses
    await pause(50, undefined, { signal })
  }
  const what = hasEnded(child) ? 'ended at start' : 'is not ready'
  throw new Error(`the gateway ${what}; the end of its log:\n${await endOf(logFile)}`)
}

async function endOf(logFile: string): Promise<string> {
  return (await readFile(logFile, 'utf8')).trimEnd().split('\n').slice(-10).join('\n')
}

async function whenEnded(child: ChildProcess): Promise<string> {
  if (!hasEnded(child)) await once(child, 'exit')
  return child.signalCode ?? `exit code ${child.exitCode}`
}

/** How many reloads the gateway has logged, applied or rejected. */
function changes(log: string): number {
  return log.split('"msg":"the new configuration is').length
}

/** The addresses in the log line of the start, once it is there. */
function listening(log: string): { url: string; health: string } | undefined {
  const line = log.split('\n').find((text) => text.startsWith('{') && text.endsWith('"msg":"listening"}'))
  return line === undefined ? undefined : (JSON.parse(line) as { url: string; health: string })
}

async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await ended
  clearTimeout(late)
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
