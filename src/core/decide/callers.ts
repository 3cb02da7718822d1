/** Names the caller that a limit counts: a signed-in user, or the address of a caller who is not signed in. */
import type { Principal } from './principal.ts'

/** No user id begins with `@`, so an address key never equals a user id. */
export function callerKey(principal: Principal, address: string): string {
  return principal.kind === 'user' ? principal.id : `@${network(address)}`
}

/** Keeps an IPv4 address whole and the first 64 bits of an IPv6 address: a subscriber gets that much (RFC 6177 §2). */
function network(written: string): string {
  // Some proxies append a port. With the port, every connection would count as a separate caller.
  const address = written.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1').replace(/^\[(.+)\](?::\d+)?$/, '$1')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped?.[1] !== undefined) return mapped[1]
  if (!address.includes(':')) return address
  const [head = '', tail] = address.toLowerCase().split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const gap = tail === undefined ? [] : Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
  const groups = [...before, ...gap, ...after].slice(0, 4)
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`
}
