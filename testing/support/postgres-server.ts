/** A PostgreSQL server of the tests' own, to which anything may happen. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from './free-port.ts'
import { initialise, RUN, type ServerOptions } from './postgres-data.ts'
import { processesOf, signal } from './postgres-processes.ts'
import { until } from './until.ts'

/** A server. What is said to happen has happened when the promise is kept. */
export interface Server {
  readonly port: number
  /** What it logged so far, over all its starts. */
  readonly log: () => string
  /** kill -9 of all its processes. */
  readonly kill: () => Promise<void>
  /** A shutdown as an operator does it: clients are thrown out, and what is committed is in the data files. */
  readonly stop: () => Promise<void>
  /** Starts it on the same data and port, however it went down; one that runs is stopped before. */
  readonly restart: () => Promise<void>
  /** None of its processes goes on: connections stay open, new ones come about, and nothing answers. */
  readonly pause: () => void
  readonly resume: () => void
  /** Ends it for good and removes its data. A test process that ends, however it does, takes its servers along likewise. */
  readonly remove: () => Promise<void>
}

/**
 * Starts a server on 127.0.0.1 with an empty database `postgres`. It keeps no process alive.
 * @throws an Error with its log if it does not come up
 */
export async function startServer(options: ServerOptions): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'threadwarden-test-postgres-'))
  const name = basename(folder)
  const watcher = startWatcher(name, folder)
  const { program, flags } = initialise(folder, options)
  const fixed = { listen_addresses: '127.0.0.1', unix_socket_directories: '', cluster_name: name }
  const settings = Object.entries({ ...fixed, ...options.settings }).flatMap(([key, value]) => ['-c', `${key}=${value}`])
  let log = ''
  let child: ChildProcess

  const start = async (port: number): Promise<void> => {
    child = spawn(program, [...flags, '-p', String(port), ...settings], { ...RUN, stdio: ['ignore', 'ignore', 'pipe'] })
    await ready(child, (text) => (log += text))
  }
  const gone = (): boolean => (child.exitCode ?? child.signalCode) !== null && processesOf(name).length === 0
  // Nobody else gets it while the server is down.
  const port = await freePort()
  await start(port)

  const resume = (): void => signal(processesOf(name), 'SIGCONT')
  const stop = async (): Promise<void> => {
    resume()
    child.kill('SIGINT')
    await until(gone)
  }
  return {
    port,
    log: () => log,
    kill: () =>
      until(() => {
        signal(processesOf(name), 'SIGKILL')
        return gone()
      }),
    stop,
    restart: async () => {
      await stop()
      await start(port)
    },
    pause: () => {
      // The second time for those that the first of them had just started; once it has stopped it starts no more.
      signal(processesOf(name), 'SIGSTOP')
      signal(processesOf(name), 'SIGSTOP')
    },
    resume,
    remove: async () => {
      watcher.ref()
      watcher.stdin.end()
      await once(watcher, 'exit')
    },
  }
}

/** Starts what ends the server if this process can't. Detached: what a terminal sends to the tests does not reach it. */
function startWatcher(name: string, folder: string) {
  const program = fileURLToPath(new URL('postgres-watcher.ts', import.meta.url))
  const watcher = spawn(process.execPath, [program, name, folder], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  watcher.unref()
  return watcher
}

/** Waits until a server takes connections; hands on what it logs, then and later. */
async function ready(child: ChildProcess, write: (text: string) => void): Promise<void> {
  let text = ''
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    write(chunk)
    text += chunk
    if (text.includes('database system is ready to accept connections')) resolve(undefined)
  })
  child.once('error', reject).once('close', () => reject(new Error(`PostgreSQL does not start:\n${text}`)))
  await promise
  child.unref()
  ;(child.stderr as Socket).unref()
}
