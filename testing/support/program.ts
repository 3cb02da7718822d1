/** The program as a process of its own, run from its source. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { configuration, type Changes } from './configuration.ts'
import { sayCommandOnFailure, sayOnFailure, type Asserting, type Ended } from './decided.ts'
import { makeFolder } from './gateway.ts'
import { until } from './until.ts'

const PROGRAM = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

/** What ends what was started in it, when it is over: a test, or whatever else has an end. */
export type Scope = Pick<Test, 'teardown'> & Asserting

/** What is around the process. */
export interface Surroundings {
  readonly environment?: Readonly<Record<string, string>>
  /** Options of Node itself. */
  readonly node?: readonly string[]
  /** Where it runs; by default here. */
  readonly folder?: string
  /** What it reads on stdin; by default nothing is written there. */
  readonly stdin?: string
  /** The id of the user that it runs as; by default that of this process. */
  readonly user?: number
}

function spawned(
  args: readonly string[],
  { environment = {}, node = [], folder, user }: Surroundings,
): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [...node, PROGRAM, ...args], {
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...environment },
    cwd: folder,
    ...(user === undefined ? {} : { uid: user, gid: user }),
  })
}

/** Runs the program to its end. */
export async function run(t: Asserting, args: readonly string[], surroundings: Surroundings = {}): Promise<Ended> {
  const child = spawned(args, surroundings)
  if (surroundings.stdin !== undefined) child.stdin.end(surroundings.stdin)
  const closed = once(child, 'close') as Promise<[number | null]>
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed])
  sayCommandOnFailure(t, args, { code, stdout, stderr })
  return { code, stdout, stderr }
}

/** The program on its way. */
export interface Background {
  readonly stdin: Writable
  /** What it has written there so far. */
  readonly stderr: () => string
  readonly signal: (signal: NodeJS.Signals) => void
  readonly ended: Promise<Ended>
}

/** Runs the program, and lets the test go on meanwhile. */
export function background(t: Test, args: readonly string[], surroundings: Surroundings = {}): Background {
  const child = spawned(args, surroundings)
  const closed = once(child, 'close') as Promise<[number | null]>
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (piece: string) => void (stderr += piece))
  // A process that ends does not read to the end.
  child.stdin.on('error', () => {})
  const stdout = text(child.stdout)
  return {
    stdin: child.stdin,
    stderr: () => stderr,
    signal: (signal) => void child.kill(signal),
    ended: closed.then(async ([code]) => {
      const ended = { code, stdout: await stdout, stderr }
      sayCommandOnFailure(t, args, ended)
      return ended
    }),
  }
}

/** A configuration file in a folder that goes with the test; ports 0, a store in the folder, keys in a file. */
export function configFile(t: Test, changes: Changes = {}): { readonly file: string; readonly folder: string } {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const file = join(folder, 'threadwarden.yaml')
  writeFileSync(join(folder, 'secret'), 'x'.repeat(64))
  const tree = configuration({
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    'upstream.url': 'http://127.0.0.1:1',
    'authentication.issuers.corp': { issuer: 'corp', audiences: ['chat'], algorithms: ['HS256'], secretFile: 'secret' },
    'ownership.store': 'sqlite:./ownership.db',
    'shutdown.delay': '0s',
    ...changes,
  })
  writeFileSync(file, JSON.stringify(tree, null, 2))
  return { file, folder }
}

/** A log line. */
export type Line = Readonly<Record<string, unknown>>

/** A gateway in a process of its own that is listening. */
export interface Serving {
  /** The id of the process. */
  readonly pid: number
  readonly listening: Line
  /** Every log line so far. */
  readonly lines: readonly Line[]
  /** Sends a signal. */
  readonly signal: (signal: NodeJS.Signals) => void
  /** Waits for a line that the program logs. */
  readonly line: (fits: (line: Line) => boolean) => Promise<Line>
  /** Goes on to read what it writes, or waits: then it can't write any more once the pipe is full. */
  readonly hear: (isHearing: boolean) => void
  /** Sends a signal and waits for the end. */
  readonly end: (signal: NodeJS.Signals) => Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

/** Runs `serve` until it says that it listens. */
export async function serving(t: Scope, file: string, surroundings: Surroundings = {}): Promise<Serving> {
  const child = spawned(['serve', '--config', file], surroundings)
  const closed = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
  })
  const stderr = text(child.stderr)
  const lines: Line[] = []
  sayOnFailure(t, { lines })
  const listening = new Promise<Line>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const read = JSON.parse(line) as Line
      lines.push(read)
      if (read['msg'] === 'listening') resolve(read)
    })
  })
  const gone = closed.then(async () => {
    throw new Error(`serve ended: ${await stderr}`)
  })
  return {
    pid: child.pid ?? 0,
    listening: await Promise.race([listening, gone]),
    lines,
    signal: (signal) => void child.kill(signal),
    hear: (isHearing) => {
      if (isHearing) child.stdout.resume()
      else child.stdout.pause()
    },
    line: async (fits) => {
      await until(() => lines.some(fits))
      return lines.find(fits)!
    },
    async end(signal) {
      child.kill(signal)
      const [code, killedBy] = (await closed) as [number | null, NodeJS.Signals | null]
      return { code, signal: killedBy }
    },
  }
}
