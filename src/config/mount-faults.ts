/** What is wrong with the upstreams of a configuration together. */
import { faultAt, type SourceDocument } from '../document/document.ts'
import type { Fault } from '../document/fault.ts'
import { mountsOf } from './mounts.ts'
import type { Config } from './schema.ts'

/** Faults of upstreams that would be in each other's way, and of agents that are to be asked what they can't know. */
export function mountFaults(document: SourceDocument, config: Config): readonly Fault[] {
  const mounts = mountsOf(config)
  return mounts.flatMap((one, at) => {
    const { place, publicPath, key } = one
    const before = mounts.slice(0, at)
    const inTheWay = before.find((other) => contains(other.publicPath, publicPath) || contains(publicPath, other.publicPath))
    const namesake = before.find((other) => other.key === key)
    return [
      ...(inTheWay === undefined
        ? []
        : [
            faultAt(
              document,
              [...place, 'publicPath'],
              `${shown(publicPath)} and ${shown(inTheWay.publicPath)} of ${inTheWay.place.join('.')} lie within each other`,
              'give each upstream a publicPath of its own',
            ),
          ]),
      ...(namesake === undefined
        ? []
        : [
            faultAt(
              document,
              place,
              `${namesake.place.join('.')} has the same key`,
              'their threads would be the same: rename it',
            ),
          ]),
      ...(one.agentId !== null && one.unknownThread === 'verify'
        ? [
            faultAt(
              document,
              [...place, 'unknownThread'],
              'is verify, by ownership.unknownThread, and an agent has no history to look into',
              'write claim or deny here',
            ),
          ]
        : []),
    ]
  })
}

function contains(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(`${outer}/`)
}

function shown(path: string): string {
  return path === '' ? '/' : path
}
