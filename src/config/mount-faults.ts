/** Finds errors of listeners and upstreams that only show when they are compared. */
import { isLoopbackHost } from '../core/wire/addresses.ts'
import type { Report } from '../document/document.ts'
import { mountsOf, scopeName, UPSTREAM, type Mount } from './mounts.ts'
import type { Config } from './schema.ts'

export function checkMounts(config: Config, report: Report): void {
  const mounts = mountsOf(config)
  for (const [at, one] of mounts.entries()) {
    const { place, publicPath, key } = one
    const before = mounts.slice(0, at)
    const inTheWay = before.find((other) => contains(other.publicPath, publicPath) || contains(publicPath, other.publicPath))
    if (inTheWay !== undefined) {
      report(
        [...place, 'publicPath'],
        `${shown(publicPath)} and ${shown(inTheWay.publicPath)} of ${inTheWay.place.join('.')} lie within each other`,
        'give each upstream a publicPath of its own',
      )
    }
    const namesake = before.find((other) => other.key === key)
    if (namesake !== undefined) {
      report(place, `${namesake.place.join('.')} has the same key`, 'their threads would be the same: rename it')
    }
    const twin = before.find((other) => other.scope !== one.scope && backendOf(other) === backendOf(one))
    if (twin !== undefined) {
      report(
        place,
        `is the same place as ${twin.place.join('.')}, but in another scope: the owner of a thread at one could read and write it at the other`,
        `remove one of them, or write scope: ${scopeName(twin.scope)} so that both have the same owners`,
      )
    }
    checkScope(one, mounts, report)
    // A caller could claim at one upstream a thread that the other holds, and then read it there.
    const claimed = before.find(
      ({ scope, unknownThread }) =>
        scope === one.scope && unknownThread !== one.unknownThread && [unknownThread, one.unknownThread].includes('claim'),
    )
    if (claimed !== undefined) {
      report(
        [...place, 'unknownThread'],
        `is ${one.unknownThread}, and ${claimed.place.join('.')} in the same scope is ${claimed.unknownThread}: a thread that is claimed at one is open at the other`,
        'write deny in place of claim, so that threads begin at the other upstream only, or claim for both',
      )
    }
    if (one.agentId !== null && one.unknownThread === 'verify') {
      report(
        [...place, 'unknownThread'],
        'is verify, by ownership.unknownThread, and an agent has no history to look into',
        'write claim or deny here',
      )
    }
  }
}

function checkScope({ key, place, scope }: Mount, mounts: readonly Mount[], report: Report): void {
  const origin = mounts.find((other) => other.key === scope)
  if (scope !== key && origin === undefined) {
    report(
      [...place, 'scope'],
      `${scopeName(scope)} is no upstream of this configuration`,
      `write ${mounts.map((other) => scopeName(other.key)).join(', ')}, or leave it out`,
    )
  }
  // One level only: a chain would be two scopes, and two upstreams that name each other would swap theirs.
  if (scope !== key && origin !== undefined && origin.scope !== origin.key) {
    report(
      [...place, 'scope'],
      `${scopeName(scope)} has the scope of another upstream itself, ${scopeName(origin.scope)}`,
      `write scope: ${scopeName(origin.scope === key ? scope : origin.scope)} at all but one of them`,
    )
  }
  if (key === UPSTREAM && mounts.some((other) => other.key === '')) {
    report(
      place,
      'has the name that scope uses for the upstream without a key',
      'rename it: threads --scope and scope: would not tell the two apart',
    )
  }
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

const ALL = ['0.0.0.0', '::', '[::]']

/** Reports two listeners on one port of one address. Port 0 is a free port each time. */
export function checkListeners({ listen, health, admin }: Config, report: Report): void {
  const listeners = [
    ...(listen.fd === undefined ? [{ name: 'listen', ...listen }] : []),
    { name: 'health', ...health },
    ...(admin === undefined ? [] : [{ name: 'admin', ...admin }]),
  ]
  for (const [at, { name, host, port }] of listeners.entries()) {
    for (const other of listeners.slice(0, at)) {
      const isSameHost = host === other.host || [host, other.host].some((one) => ALL.includes(one))
      if (port === 0 || port !== other.port || !isSameHost) continue
      report([name, 'port'], `is that of ${other.name}, too`, 'each listener has a port of its own')
    }
  }
}
