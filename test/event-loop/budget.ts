/**
 * No request holds the event loop for long, whatever is in it: while one is read, all other callers wait.
 *
 * The bound is 50 ms on the machine that it was written on. It is no bound in milliseconds here: in the process of the gateway a
 * fixed piece of work is timed in the same run, and the bound is a multiple of that. Both are the time that the main thread
 * computes, so neither another process nor a pause of the machine counts. What makes a turn longer by chance, as a collection of
 * garbage does, is not there each time: of several rounds the shortest counts. Work that is not taken apart is there each time.
 */
import type { Test } from 'tap'
import { startDeployment } from '../../testing/event-loop/deployment.ts'
import type { GatewayProcess } from '../../testing/event-loop/process.ts'

/** 50 ms, where the fixed work takes 20. */
const BOUND = 2.5

/** A shape that was held for too long is tried so often. */
const ROUNDS = 15

export async function startGateways(t: Test) {
  const { close, ...deployment } = await startDeployment()
  t.teardown(close)
  return deployment
}

/** Does something until it holds the loop no longer than it may, and fails if it never does. */
export async function within(t: Test, gateways: GatewayProcess, name: string, work: () => Promise<void>): Promise<void> {
  let shortest = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS && shortest > BOUND; round += 1) {
    const unit = await gateways.calibrate()
    const held = await gateways.heldBy(work)
    if (process.env['SHOW'] !== undefined) t.comment(`${name}: ${held.toFixed(1)} ms, unit ${unit.toFixed(1)} ms`)
    shortest = Math.min(shortest, held / unit)
  }
  t.ok(shortest <= BOUND, `${name}: ${shortest.toFixed(2)} of ${BOUND}`)
}
