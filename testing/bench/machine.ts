/** What a measurement was made on: nothing that names the machine or where it stands. */
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, platform, totalmem } from 'node:os'

/** A machine, and the program on it. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly system: string
  readonly node: string
  readonly threadwarden: string
}

/** The one that this runs on. */
export function thisMachine(): Machine {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${process.arch}`,
    node: process.versions.node,
    threadwarden: version,
  }
}

/** It in a sentence. */
export function described({ cpu, cores, memoryGiB, system, node, threadwarden }: Machine): string {
  return `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}; Node ${node}, Threadwarden ${threadwarden}`
}

/** The day, as YYYY-MM-DD. */
export function today(): string {
  return new Date().toISOString().slice(0, 10)
}
