/** Finds errors of a configuration's upstreams that only show when they are compared. */
import { isLoopbackHost } from '../core/wire/addresses.ts'
import { faultAt, type SourceDocument } from '../document/document.ts'
import type { Fault } from '../document/fault.ts'
import { mountsOf, scopeName, UPSTREAM, type Mount } from './mounts.ts'
import type { Config } from './schema.ts'

export function mountFaults(document: SourceDocument, config: Config): readonly Fault[] {
  const mounts = mountsOf(config)
  return mounts.flatMap((one, at) => {
    const { place, publicPath, key } = one
    const before = mounts.slice(0, at)
    const inTheWay = before.find((other) => contains(other.publicPath, publicPath) || contains(publicPath, other.publicPath))
    const namesake = before.find((other) => other.key === key)
    const twin = before.find((other) => other.scope !== one.scope && backendOf(other) === backendOf(one))
    const isOwnScope = one.scope === key
    const origin = isOwnScope ? one : mounts.find((other) => other.key === one.scope)
    // Claiming at one upstream what another upstream in the scope holds would open it there.
    const claimed = before.find(
      ({ scope, unknownThread }) =>
        scope === one.scope && unknownThread !== one.unknownThread && [unknownThread, one.unknownThread].includes('claim'),
    )
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
      ...(twin === undefined
        ? []
        : [
            faultAt(
              document,
              place,
              `is the same place as ${twin.place.join('.')}, and its threads are others: whoever owns a thread at one could read and write it at the other`,
              `remove one of them, or write scope: ${scopeName(twin.scope)} so that both have the same owners`,
            ),
          ]),
      ...(origin === undefined
        ? [
            faultAt(
              document,
              [...place, 'scope'],
              `${scopeName(one.scope)} is no upstream of this configuration`,
              `write ${mounts.map((other) => scopeName(other.key)).join(', ')}, or leave it out`,
            ),
          ]
        : []),
      // One level only: a chain would be two scopes, and two upstreams that name each other would swap theirs.
      ...(origin !== undefined && origin.scope !== origin.key
        ? [
            faultAt(
              document,
              [...place, 'scope'],
              `${scopeName(one.scope)} has the scope of another upstream itself, ${scopeName(origin.scope)}`,
              `write scope: ${scopeName(origin.scope === key ? one.scope : origin.scope)} at all but one of them`,
            ),
          ]
        : []),
      ...(key === UPSTREAM && mounts.some((other) => other.key === '')
        ? [
            faultAt(
              document,
              place,
              'has the name that scope uses for the upstream without a key',
              'rename it: threads --scope and scope: would not tell the two apart',
            ),
          ]
        : []),
      ...(claimed === undefined
        ? []
        : [
            faultAt(
              document,
              [...place, 'unknownThread'],
              `is ${one.unknownThread}, and ${claimed.place.join('.')} in the same scope is ${claimed.unknownThread}: a thread that is claimed at one is open at the other`,
              'write deny in place of claim, so that threads begin at the other upstream only, or claim for both',
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

/** Pairs of upstreams on one host and port with different scopes, where the configuration does not state that intention. */
export function besideEachOther(mounts: readonly Mount[]): readonly (readonly [one: Mount, other: Mount])[] {
  return mounts.flatMap((one, at) => {
    if (one.saysScope) return []
    const other = mounts
      .slice(0, at)
      .find(
        (before) =>
          before.scope !== one.scope && authorityOf(before.url) === authorityOf(one.url) && backendOf(before) !== backendOf(one),
      )
    return other === undefined ? [] : [[one, other] as const]
  })
}

/** An upstream's place in one spelling; two different results may still be the same place, by another name or address. */
function backendOf({ url, basePath }: Mount): string {
  return `${authorityOf(url)}${basePath.replace(/\/+$/, '')}`
}

/** Host and port. All names of this machine are equal, and a trailing dot of a name is ignored. */
function authorityOf(text: string): string {
  const { hostname, port, protocol } = new URL(text)
  const name = unmapped(hostname.replace(/\.$/, ''))
  // Every name below `localhost` means this machine (RFC 6761 §6.3).
  const isHere = isLoopbackHost(name) || name.endsWith('.localhost') || name === '0.0.0.0' || name === '[::]'
  const host = isHere ? 'localhost' : name
  return `${host}:${port === '' ? (protocol === 'https:' ? '443' : '80') : port}`
}

/** Converts an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) to IPv4; other hosts stay as URL gives them. */
function unmapped(host: string): string {
  const [, high = '', low = ''] = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(host) ?? []
  if (high === '') return host
  return [high, low].flatMap((word) => [parseInt(word, 16) >> 8, parseInt(word, 16) & 255]).join('.')
}

function contains(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(`${outer}/`)
}

function shown(path: string): string {
  return path === '' ? '/' : path
}
