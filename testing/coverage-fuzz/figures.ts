/** What a run of the coverage-guided fuzz came to, and what libFuzzer writes of it on the way. */
import type { TargetName } from '../fuzz/targets.ts'

/** What came of one target. */
export interface TargetFigures {
  readonly target: TargetName
  /** Seconds of the processor. */
  readonly cpu: number
  readonly executions: number
  /** Branches that were reached, and all there are in the instrumented files that the target loads. */
  readonly reached: number
  readonly branches: number
  /** Inputs of the corpus that it began with, and those that reached something new. */
  readonly begun: number
  readonly found: number
  /** What was found, as the oracle says it; null if nothing was. */
  readonly finding: string | null
}

/** The figures of a process, as far as it has got. */
export interface Progress {
  readonly cpu: number
  readonly executions: number
  readonly reached: number
  readonly branches: number
  readonly inputs: number
}

export const NO_PROGRESS: Progress = { cpu: 0, executions: 0, reached: 0, branches: 0, inputs: 0 }

/** Counters that Jazzer.js has for modules of the older kind, of which there are none here. */
const UNUSED = 512

/** Reads a line that the process wrote. */
export function progressOf(line: string, before: Progress): Progress {
  const cpu = /^CPU ([\d.]+) s/.exec(line)?.[1]
  if (cpu !== undefined) return { ...before, cpu: Number(cpu) }
  const counters = /^INFO: Loaded \d+ modules +\((\d+) inline/.exec(line)?.[1]
  if (counters !== undefined) return { ...before, branches: Number(counters) - UNUSED }
  const [, executions, reached, inputs] = /^#(\d+)\s.*\bcov: (\d+) .*\bcorp: (\d+)\//.exec(line) ?? []
  if (executions === undefined) return before
  return { ...before, executions: Number(executions), reached: Number(reached), inputs: Number(inputs) }
}

/** What the oracle said, in what the process wrote; null if it said nothing. */
export function findingIn(lines: readonly string[]): string | null {
  const from = lines.findIndex((line) => /^==\d+== /.test(line))
  if (from === -1) return null
  const rest = lines.slice(from)
  const to = rest.findIndex((line) => /^MS: /.test(line))
  return (to === -1 ? rest : rest.slice(0, to)).join('\n').trim()
}
