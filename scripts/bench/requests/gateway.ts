/** The rows of the gateway: the whole of it, as it is run, `dist/cli.js serve` with everything on that a deployment has on. */
import { spawnSync } from 'node:child_process'
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProgram } from '../processes.ts'
import { ALL_OWNED, TOKEN_CACHE } from './people.ts'
import type { Proxy, Row, Setting } from './row.ts'
import { ISSUER, ISSUER_KEY } from './tokens.ts'

/** Where a built checkout is, and how it is shown. */
export interface Checkout {
  readonly name: string
  readonly title: string
  readonly folder: string
}

/** How often it is looked whether the gateway is there, in milliseconds. */
const LOOK_EVERY = 20

/** The row of a checkout. */
export function gatewayRow({ name, title, folder }: Checkout, audit: boolean): Row {
  const program = join(folder, 'dist/cli.js')
  return {
    name,
    title,
    version: () => (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }).version,
    start: (setting) => start(program, setting, audit),
  }
}

async function start(program: string, setting: Setting, audit: boolean): Promise<Proxy> {
  if (!existsSync(program)) throw new Error(`${program} is not there: run npm run build`)
  const config = join(setting.folder, 'threadwarden.yaml')
  writeFileSync(config, JSON.stringify(configuration(setting, audit)))
  importThreads(program, config, setting.folder)
  const logFile = join(setting.folder, 'gateway.log')
  const log = openSync(logFile, 'w')
  const { gone, ...started } = startProgram([process.execPath, program, 'serve', '--config', config], setting.folder, [
    'ignore',
    log,
    'inherit',
  ])
  let failure: Error | undefined
  void gone.then((error) => (failure = error))
  for (;;) {
    if (failure !== undefined) throw failure
    const addresses = listeningIn(logFile)
    if (addresses !== null && (await isReady(addresses.health))) return { ...started, port: Number(new URL(addresses.url).port) }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY))
  }
}

/**
 * Everything else is as it is without being said: the shipped policy, the metrics, the sizes. Of the limits those are off that
 * would refuse what one caller sends here in a minute.
 */
function configuration({ upstreamPort, publicKeyFile }: Setting, audit: boolean): object {
  return {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    upstream: { url: `http://127.0.0.1:${upstreamPort}`, basePath: '/api/copilotkit', transport: 'multi-route' },
    authentication: { tokenCache: TOKEN_CACHE, issuers: { [ISSUER_KEY]: { ...ISSUER, publicKeyFile } } },
    ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim' },
    limits: { newThreads: 'off', requests: 'off', runs: 'off', streams: 'off' },
    log: { level: 'info' },
    ...(audit ? { audit: { to: 'file', file: './audit.jsonl' } } : {}),
  }
}

function importThreads(program: string, config: string, folder: string): void {
  const file = join(folder, 'threads.csv')
  const lines = ALL_OWNED.map(({ threadId, subject }) => `${threadId},${ISSUER_KEY}:${subject},default`)
  writeFileSync(file, ['thread,user,agent', ...lines, ''].join('\n'))
  const { status, stderr } = spawnSync(process.execPath, [program, 'threads', 'import', '--config', config, '--quiet', file], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`the threads could not be imported: ${stderr}`)
}

function listeningIn(logFile: string): { readonly url: string; readonly health: string } | null {
  // What is behind the last end of line is still being written.
  const lines = readFileSync(logFile, 'utf8').split('\n').slice(0, -1)
  const line = lines.find((text) => text.includes('"msg":"listening"'))
  return line === undefined ? null : (JSON.parse(line) as { url: string; health: string })
}

async function isReady(health: string): Promise<boolean> {
  return (await fetch(`${health}/readyz`)).ok
}
