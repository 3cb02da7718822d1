/** The rows, in the order of the tables. */
import { resolve } from 'node:path'
import type { Bar } from '../plot.ts'
import { gatewayRow, ROOT } from './gateway.ts'
import { INSTALLED_PEERS } from './installed-peers.ts'
import { HTTP_PROXY, NODE_PEERS } from './node-peers.ts'
import type { Row } from './row.ts'

/** Another built checkout, to be measured beside this one. */
export interface Other {
  readonly name: string
  readonly folder: string
}

/** Those of this checkout. */
const GATEWAYS: readonly Row[] = [
  gatewayRow({ name: 'gateway', title: 'Threadwarden', folder: ROOT }),
  gatewayRow({ name: 'gateway-audit', title: 'Threadwarden, audit to a file', folder: ROOT }, { audit: true }),
  // With one worker it is the first row.
  {
    ...gatewayRow({ name: 'gateway-2-workers', title: 'Threadwarden, two workers', folder: ROOT }, { workers: 2 }),
    loads: ['get', 'run', 'mix'],
  },
]

const PEERS: readonly Row[] = [...NODE_PEERS, ...INSTALLED_PEERS]

/** What the command line may name. */
export const ROW_NAMES = [...GATEWAYS, ...PEERS].map(({ name }) => name)

/** All but the one of several workers: what is measured where nothing is to be learned from that one. */
export const SINGLE_ROWS = [...GATEWAYS, ...PEERS].filter(({ loads }) => loads === undefined).map(({ name }) => name)

/** Those whose version is that of this checkout. */
export const OWN_ROWS = GATEWAYS.map(({ name }) => name)

/** What the ratios are of. */
export const REFERENCE = HTTP_PROXY.name

/** What a row is in a picture: whatever is no peer is a gateway, of this checkout or of another one. */
export function kindOf(name: string): Bar['kind'] {
  if (name === REFERENCE) return 'reference'
  return PEERS.some((peer) => peer.name === name) ? 'other' : 'ours'
}

/**
 * Chooses.
 * @param also further checkouts: they are named, so they are wanted
 * @param only the names of the rows of this checkout that are wanted; null for all
 */
export function rowsOf(also: readonly Other[], only: readonly string[] | null): readonly Row[] {
  const others = also.map(({ name, folder }) => gatewayRow({ name, title: name, folder: resolve(folder) }))
  const isWanted = ({ name }: Row): boolean => only?.includes(name) ?? true
  return [...GATEWAYS.filter(isWanted), ...others, ...PEERS.filter(isWanted)]
}
