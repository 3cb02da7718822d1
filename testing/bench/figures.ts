/** What a process takes, children included. Linux alone tells it of other processes: everywhere else it is null (proc(5)). */
import { readdirSync, readFileSync } from 'node:fs'
import { platform } from 'node:os'

/** Whether it can be told here. */
export const IS_TOLD = platform() === 'linux'

/** Clock ticks are 10 ms on every architecture that Node runs on (USER_HZ). */
const TICK = 10_000

/** Microseconds of CPU so far, in the program and in the kernel for it. */
export function cpuOf(pid: number): number | null {
  return IS_TOLD ? TICK * sumOf(pid, (one) => ticksIn(told(`${one}/stat`))) : null
}

/** Bytes of memory that are resident. */
export function memoryOf(pid: number): number | null {
  return IS_TOLD ? 1024 * sumOf(pid, (one) => Number(/^VmRSS:\s+(\d+)/m.exec(told(`${one}/status`))?.[1] ?? 0)) : null
}

/** How many files a process may have open at once; null where it isn't told. */
export function openFilesOf(pid: number): number | null {
  if (!IS_TOLD) return null
  const soft = /^Max open files\s+(\S+)/m.exec(told(`${pid}/limits`))?.[1]
  return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
}

function ticksIn(stat: string): number {
  // The second field is the program's name in parentheses, which may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
}

function sumOf(pid: number, figure: (pid: number) => number): number {
  return [pid, ...childrenOf(pid)].reduce((sum, one) => sum + figure(one), 0)
}

function childrenOf(pid: number): readonly number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap(
    (thread) => told(`${pid}/task/${thread}/children`).match(/\d+/g) ?? [],
  )
  return children.map(Number).flatMap((child) => [child, ...childrenOf(child)])
}

/** @returns nothing of a thread or process that has just ended */
function told(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, 'latin1')
  } catch {
    return ''
  }
}
