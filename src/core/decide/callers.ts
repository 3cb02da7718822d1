/** Who a limit counts: a signed-in user, or the address of somebody who is not. */
import type { Principal } from './principal.ts'

/**
 * By what a caller is counted. No user id begins with `@`, so an address is never taken for one.
 * @param address the caller's, as far as the trusted proxies tell
 */
export function callerKey(principal: Principal, address: string): string {
  return principal.kind === 'user' ? principal.id : `@${network(address)}`
}

/** An IPv4 address as it is; of IPv6 the first 64 bits, which is what one subscriber gets (RFC 6177 §2). */
function network(written: string): string {
  // Some proxies write a port behind it: every connection would be a caller of its own.
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
