/** A row of the tables: a proxy, in front of the same upstream as all others. */
import type { Started } from '../processes.ts'
import type { LoadName } from './loads.ts'

/** What a proxy is started with. */
export interface Setting {
  /** An empty folder of its own. */
  readonly folder: string
  readonly upstreamPort: number
  /** The issuer's key, as PEM. */
  readonly publicKeyFile: string
  /** The most connections to the upstream; nothing bounds those of the gateway. */
  readonly connections: number
}

/** It runs. */
export interface Proxy extends Started {
  readonly port: number
}

/** A row. */
export interface Row {
  /** What the command line calls it. */
  readonly name: string
  /** What the tables call it. */
  readonly title: string
  /** The loads that it is measured with; all unless it is said. */
  readonly loads?: readonly LoadName[]
  /** @returns its version, or null where it isn't installed */
  version(): string | null
  start(setting: Setting): Promise<Proxy>
}
