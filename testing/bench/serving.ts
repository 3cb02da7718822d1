/** Starts a built gateway as the image and the systemd unit run it: `dist/cli.js serve`, with room for new objects. Its log is a file. */
import { spawnSync } from 'node:child_process'
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ENOUGH_ROOM } from '../../src/gateway/memory-budgets.ts'
import { startProgram, type Started } from './processes.ts'
import type { Owned } from './requests/people.ts'
import { ISSUER_KEY } from './requests/tokens.ts'

/** What it is started with. */
export interface Serving {
  /** The program, `dist/cli.js` of a checkout. */
  readonly program: string
  /** Its own, in which it finds and makes its files. */
  readonly folder: string
  readonly configuration: object
  /** Who owns what when it starts: users of the issuer `ISSUER_KEY`. */
  readonly owned: readonly Owned[]
  /** More arguments of Node's own. */
  readonly node?: readonly string[]
  /** Besides that of this process. */
  readonly environment?: Readonly<Record<string, string>>
}

/** It serves. */
export interface Served extends Started {
  readonly port: number
  /** The address of its health listener. */
  readonly health: string
  /** The file of its configuration, and that of its log. */
  readonly config: string
  readonly logFile: string
}

/** How often it is looked whether it is there, in milliseconds. */
const LOOK_EVERY = 20

/**
 * Starts it.
 * @returns it, once it is ready
 * @throws an Error if it isn't built, takes no threads, or ends
 */
export async function startServing({
  program,
  folder,
  configuration,
  owned,
  node = [],
  environment = {},
}: Serving): Promise<Served> {
  if (!existsSync(program)) throw new Error(`${program} is not there: run npm run build`)
  const config = join(folder, 'threadwarden.yaml')
  writeFileSync(config, JSON.stringify(configuration))
  importThreads(program, config, folder, owned)
  const logFile = join(folder, 'gateway.log')
  const log = openSync(logFile, 'w')
  const command = [process.execPath, ENOUGH_ROOM, ...node, program, 'serve', '--config', config] as const
  const { gone, ...started } = startProgram(command, folder, ['ignore', log, 'inherit'], environment)
  let failure: Error | undefined
  void gone.then((error) => (failure = error))
  for (;;) {
    if (failure !== undefined) throw failure
    const addresses = listeningIn(logFile)
    if (addresses !== null && (await isReady(addresses.health))) {
      return { ...started, port: Number(new URL(addresses.url).port), health: addresses.health, config, logFile }
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY))
  }
}

function importThreads(program: string, config: string, folder: string, owned: readonly Owned[]): void {
  const file = join(folder, 'threads.csv')
  const lines = owned.map(({ threadId, subject }) => `${threadId},${ISSUER_KEY}:${subject},default`)
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
