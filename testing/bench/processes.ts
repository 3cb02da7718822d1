/** Processes that a measurement starts. They end with it, however it ends. */
import { fork, spawn, type ChildProcess, type StdioOptions } from 'node:child_process'

/** One of them. */
export interface Started {
  readonly pid: number
  /** Ends it, and waits until it is gone. */
  stop(): Promise<void>
}

/** A script of this repository, with which one can speak: a question at a time. */
export interface Helper extends Started {
  /** The port that it listens on; 0 if it doesn't. */
  readonly port: number
  /**
   * Asks it something.
   * @returns what it says
   * @throws an Error if it ends instead
   */
  ask<Answer>(question: object): Promise<Answer>
}

/** What a helper says first. */
export interface Ready {
  readonly port: number
}

/**
 * A row waits minutes for its turn. V8's memory reducer would then collect the heap of the idle process and discard its optimized
 * code, so that a round measured compilation. Not `--memory-reducer-gc-count=0`, which alone lets the heap grow by 30 % only, and
 * which the gateway sets together with another option (src/gateway/v8-options.ts).
 */
const NO_MEMORY_REDUCER = '--no-memory-reducer'

/** How long something may take to end by itself, in milliseconds. */
const PATIENCE = 10_000

const running = new Set<ChildProcess>()
// A signal ends this process by way of exit: nothing is left behind by somebody who loses patience. One that was killed at once
// could not end its own children.
process.once('exit', () => running.forEach((child) => child.kill('SIGTERM')))

/**
 * Starts a program.
 * @param command it, and its arguments
 * @param cwd where it works
 * @param stdio its streams
 * @param environment besides that of this process
 */
export function startProgram(
  command: readonly [string, ...string[]],
  cwd: string,
  stdio: StdioOptions,
  environment: Readonly<Record<string, string>> = {},
): Started & { gone: Promise<Error> } {
  const [program, ...args] = command
  const child = spawn(program, args, { cwd, stdio, env: { ...process.env, ...environment } })
  return { ...supervised(child, program), gone: goneOf(child, program) }
}

/**
 * Starts a script on the Node that this runs on.
 * @param file its path
 * @returns it, once it has said that it is ready
 */
export async function startHelper(file: string, ...args: readonly string[]): Promise<Helper> {
  // Requests and answers go over as bytes, and not as JSON.
  const child = fork(file, args, { serialization: 'advanced', execArgv: [NO_MEMORY_REDUCER] })
  const gone = goneOf(child, file)
  const ask = async <Answer>(question: object | null): Promise<Answer> => {
    const answer = new Promise<Answer>((resolve) => child.once('message', (message) => resolve(message as Answer)))
    if (question !== null) child.send(question)
    return Promise.race([answer, gone.then((error) => Promise.reject(error))])
  }
  const { port } = await ask<Ready>(null)
  return { ...supervised(child, file), port, ask }
}

function supervised(child: ChildProcess, name: string): Started {
  running.add(child)
  child.once('exit', () => running.delete(child))
  return {
    pid: child.pid ?? Number.NaN,
    async stop() {
      const gone = goneOf(child, name)
      child.kill('SIGTERM')
      const impatience = setTimeout(() => child.kill('SIGKILL'), PATIENCE)
      await gone
      clearTimeout(impatience)
    },
  }
}

/** Comes when it has ended, or could not be started: as the error that this is to whoever did not end it. */
function goneOf(child: ChildProcess, name: string): Promise<Error> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve(new Error(`${name} has ended`))
    child.once('error', resolve)
    child.once('exit', (code, signal) => resolve(new Error(`${name} has ended: ${code ?? signal}`)))
  })
}
