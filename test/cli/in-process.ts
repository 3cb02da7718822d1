/** The program in the process of the test: for what its commands do, not for how a process starts, reads, writes and ends. */
import { Readable, Writable } from 'node:stream'
import { run as runProgram } from '../../src/cli/run.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import { sayCommandOnFailure, type Asserting, type Ended } from '../../testing/support/decided.ts'

/** What is around the command. */
export interface Surroundings {
  readonly environment?: Readonly<Record<string, string>>
  /** Whether stdout and stderr are terminals. */
  readonly isTTY?: boolean
}

/** A stream that keeps what is written to it. */
class Kept extends Writable {
  text = ''
  readonly isTTY: boolean

  constructor(isTTY: boolean) {
    super({ decodeStrings: false })
    this.isTTY = isTTY
  }

  override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}

/** Runs what has the exit code of a command, with streams of its own. */
export async function ended(
  t: Asserting,
  args: readonly string[],
  work: (args: readonly string[], terminal: Terminal) => Promise<number>,
  { environment = {}, isTTY = false }: Surroundings = {},
): Promise<Ended> {
  const [stdout, stderr] = [new Kept(isTTY), new Kept(isTTY)]
  // A terminal says what it can show.
  const env = isTTY ? { TERM: 'xterm', ...environment } : environment
  const code = await work(args, { stdin: Readable.from([]), stdout, stderr, env })
  const ended = { code, stdout: stdout.text, stderr: stderr.text }
  sayCommandOnFailure(t, args, ended)
  return ended
}

/** Runs a command. A fault of the program rejects. */
export function run(t: Asserting, args: readonly string[], surroundings: Surroundings = {}): Promise<Ended> {
  return ended(t, args, runProgram, surroundings)
}
