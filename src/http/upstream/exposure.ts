/** Checks whether the upstream can be reached past the gateway (SECURITY.md, "Mistakes that void everything"). */
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isLoopbackHost } from '../../core/wire/addresses.ts'

/** An address that does not answer at all is not open. */
const CONNECT_TIMEOUT_MS = 2000

/** The addresses by which others reach this machine. Link-local addresses need a zone, and are left out. */
export function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !/^fe80:/i.test(address))
    .map(({ address }) => address)
}

/** The addresses, as `host:port`, on which the port of an upstream on loopback is open, too. Another machine gives none. */
export async function openPastLoopback(upstreamUrl: string, addresses: readonly string[]): Promise<readonly string[]> {
  const { hostname, port, protocol } = new URL(upstreamUrl)
  if (!isLoopbackHost(hostname)) return []
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
  const taken = await Promise.all(addresses.map((address) => takesConnection(address, number)))
  return addresses
    .filter((_address, at) => taken[at])
    .map((address) => (address.includes(':') ? `[${address}]:${number}` : `${address}:${number}`))
}

function takesConnection(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: CONNECT_TIMEOUT_MS })
    socket.once('close', () => resolve(false))
    socket.once('timeout', () => socket.destroy())
    socket.once('error', () => socket.destroy())
    socket.once('connect', () => {
      resolve(true)
      socket.destroy()
    })
  })
}
