/** The part `event-loop`: for how long one hostile request keeps the gateway from all others. */
import { startDeployment } from '../event-loop/deployment.ts'
import { SHAPES } from '../event-loop/shapes.ts'
import { described, thisMachine, today } from './machine.ts'
import { counted, markdownTable } from './markdown.ts'
import type { Machine } from './machine.ts'
import type { BenchOptions, Part } from './part.ts'

interface HeldBy {
  readonly name: string
  readonly bytes: number
  /** Milliseconds that the main thread computed without a turn for others: the least of the rounds. */
  readonly held: number
}

interface EventLoopResult {
  /** The day, as YYYY-MM-DD. */
  readonly date: string
  readonly machine: Machine
  readonly rounds: number
  readonly measured: readonly HeldBy[]
}

/** Requests before those that count: the heap of a new process grows with them. */
const WARM_UP = 6

/** Of each request. A collection of garbage is not in all of them. */
const ROUNDS = 3

/** Requests that the table shows. */
const SHOWN = 10

/** In milliseconds: the first is the goal for every request. */
const STEPS = [50, 20, 10, 5] as const

export const eventLoop: Part<EventLoopResult> = {
  about: 'how long one request keeps the gateway from all others',
  run,
  table,
}

async function run({ rounds, progress }: BenchOptions): Promise<EventLoopResult> {
  const { gateways, ask, close } = await startDeployment()
  const effort = rounds ?? ROUNDS
  const measured: HeldBy[] = []
  try {
    const largest = SHAPES.find(({ name }) => name === 'one string, routes')
    for (let round = 0; largest !== undefined && round < WARM_UP; round += 1) await ask(largest, largest.body())
    progress.begin('requests', SHAPES.length)
    for (const [at, shape] of SHAPES.entries()) {
      const body = shape.body()
      let held = Number.POSITIVE_INFINITY
      for (let round = 0; round < effort; round += 1)
        held = Math.min(held, await gateways.heldBy(async () => void (await ask(shape, body))))
      measured.push({ name: shape.name, bytes: body.length, held })
      progress.at(at + 1)
    }
    return { date: today(), machine: thisMachine(), rounds: effort, measured }
  } finally {
    progress.end()
    await close()
  }
}

function table({ date, machine, rounds, measured }: EventLoopResult): string {
  const upTo = STEPS.map((most) => `${measured.filter(({ held }) => held <= most).length} at most ${most} ms`).join(', ')
  const lines = measured
    .toSorted((a, b) => b.held - a.held)
    .slice(0, SHOWN)
    .map(({ name, bytes, held }) => [name, (bytes / 2 ** 20).toFixed(1), held.toFixed(1)])
  return [
    `${date}, on ${described(machine)}. The least of ${rounds} rounds. Of ${counted(measured.length)} requests: ${upTo}. The longest:`,
    markdownTable(['Body', 'MiB', 'longest time without a turn for others, ms'], lines),
  ].join('\n\n')
}
