/** The processes of a PostgreSQL server, found by the name that it was given: those that lost their parent are found too. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/**
 * The ids of the server's processes that have not ended.
 * @param name its `cluster_name`: stands in the command line of the first process and in the title of the others
 */
export function processesOf(name: string): number[] {
  const list = process.platform === 'linux' ? fromProc() : fromPs()
  return list.filter(({ command }) => command.includes(name) && /^\S*postgres:? /.test(command)).map(({ pid }) => pid)
}

/** Sends a signal to processes; to those that are gone by now there is nothing to send. */
export function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

interface Process {
  readonly pid: number
  readonly command: string
}

/** Linux says it without a program that a small image lacks. */
function fromProc(): Process[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map((entry) => {
      try {
        return { pid: Number(entry), command: readFileSync(`/proc/${entry}/cmdline`, 'latin1').replaceAll('\0', ' ') }
      } catch {
        return { pid: Number(entry), command: '' }
      }
    })
}

function fromPs(): Process[] {
  return execFileSync('ps', ['-A', '-o', 'pid=,command='], { encoding: 'latin1', maxBuffer: 2 ** 26 })
    .split('\n')
    .map((line) => ({ pid: Number.parseInt(line, 10), command: line.replace(/^\s*\d+ /, '') }))
}
