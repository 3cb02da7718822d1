/** Parses the upstream's list again and again, in a process of its own: what whoever reads it has to spend at least. */
import type { Ready } from '../processes.ts'
import { MANY_BODY } from '../requests/thread-lists.ts'

/** For how long. */
export interface ParseOrder {
  readonly milliseconds: number
}

/** What that took. */
export interface Parsed {
  readonly count: number
  /** Of the process, with collecting what it leaves behind, in microseconds. */
  readonly cpu: number
}

process.on('message', ({ milliseconds }: ParseOrder) => {
  const before = process.cpuUsage()
  const until = performance.now() + milliseconds
  let count = 0
  do {
    JSON.parse(MANY_BODY.toString())
    count += 1
  } while (performance.now() < until)
  const { user, system } = process.cpuUsage(before)
  process.send?.({ count, cpu: user + system } satisfies Parsed)
})
process.once('disconnect', () => process.exit())
process.send?.({ port: 0 } satisfies Ready)
