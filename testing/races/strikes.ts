/** What is killed, and how. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from '../support/postgres-server.ts'
import type { GatewayCrashes, Scene } from './gateway-crashes.ts'
import { ready } from './gateways.ts'
import { outageFaults, type OutageParts } from './outage.ts'
import type { StoreCrashes } from './store-crashes.ts'

/** Of 0 to 1, as Math.random gives them. */
type Random = () => number

/** In every so many rounds all of them, otherwise one. */
const ALL_EVERY = 4

/** The longest time that a server stays away, in milliseconds. */
const AWAY_MS = 300

/** kill -9 of processes that work on a store. */
export function killWorkers(random: Random): StoreCrashes['strike'] {
  return async (workers, round) => {
    const gone = chosen(workers, round, random)
    await Promise.all(gone.map((worker) => worker.kill()))
    return { kills: gone.length, gone }
  }
}

/** kill -9 of gateways. */
export function killGateways(random: Random): GatewayCrashes['strike'] {
  return async ({ gateways }, round) => {
    const gone = chosen(gateways, round, random)
    await Promise.all(gone.map((gateway) => gateway.kill()))
    return { kills: gone.length, gone, wrong: [] }
  }
}

/** kill -9 of the server under processes that work on a store; it comes back, and they go on. */
export function killServerUnderWorkers(server: Pick<Server, 'kill' | 'restart'>, random: Random): StoreCrashes['strike'] {
  return async () => {
    await server.kill()
    await sleep(random() * AWAY_MS)
    await server.restart()
    return { kills: 1, gone: [] }
  }
}

/** kill -9 of the server under gateways, which are asked about everything meanwhile; it comes back, and they go on. */
export function killServerUnderGateways(server: Pick<Server, 'kill' | 'restart'>): GatewayCrashes['strike'] {
  return async (scene) => {
    await server.kill()
    const wrong = await outageFaults({ ...scene, ...ownedThread(scene) }, 'nothing')
    await server.restart()
    // By themselves: nobody starts them anew.
    await Promise.all(scene.gateways.map(ready))
    return { kills: 1, gone: [], wrong }
  }
}

function chosen<T>(all: readonly T[], round: number, random: Random): readonly T[] {
  return round % ALL_EVERY === ALL_EVERY - 1 ? all : [all[Math.floor(random() * all.length)]!]
}

/** A thread with an owner, where there is one by now, and a user whose it is not. */
function ownedThread({ threads, ledger }: Scene): Pick<OutageParts, 'thread' | 'owner' | 'stranger'> {
  const ownerOf = (thread: string): string | undefined =>
    ledger.arrivals(thread).find(({ fate }) => fate !== null && fate !== 'refused')?.user
  const thread = threads.find((one) => ownerOf(one) !== undefined) ?? threads[0]!
  return ownerOf(thread) === 'corp:alice'
    ? { thread, owner: 'alice', stranger: 'bob' }
    : { thread, owner: (ownerOf(thread) ?? 'corp:bob').slice('corp:'.length), stranger: 'alice' }
}
