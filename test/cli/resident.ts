/** Runs commands of the program one after the other in one process: for tests of what they do, not of how a process ends. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Ended } from './program.ts'

const PROGRAM = fileURLToPath(new URL('resident-program.ts', import.meta.url))

let child: ChildProcess | undefined
let last: Promise<unknown> = Promise.resolve()

/** Runs a command. A fault of the program has the exit code null, and its stack on stderr. */
export function runResident(args: readonly string[]): Promise<Ended> {
  const ended = last.then(async () => {
    const running = (child ??= started())
    const answered = once(running, 'message') as Promise<[Ended]>
    running.channel?.ref()
    running.send(args)
    const [answer] = await answered
    running.channel?.unref()
    return answer
  })
  last = ended
  return ended
}

/** It ends with the test's own process, which does not wait for it. */
function started(): ChildProcess {
  const made = fork(PROGRAM, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env: { PATH: process.env['PATH'] } })
  made.unref()
  return made
}
