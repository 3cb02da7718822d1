/** What peers that are processes of Node have in common: a port of the upstream to be told, and one of their own to tell. */
import type { AddressInfo, Server } from 'node:net'
import type { Ready } from '../../processes.ts'

/** From the command line of a peer. */
export function upstreamOf(argv: readonly string[]): {
  readonly url: string
  readonly port: number
  readonly connections: number
} {
  const [port, connections] = argv.slice(2).map(Number)
  if (port === undefined || connections === undefined) throw new Error('port of the upstream, connections to it')
  return { url: `http://127.0.0.1:${port}`, port, connections }
}

/** Tells the parent that it may begin, and ends with it. */
export function isReady(server: Pick<Server, 'address'>): void {
  process.once('disconnect', () => process.exit())
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies Ready)
}
