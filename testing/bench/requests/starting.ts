/** Starts rows, and what stands before and behind them. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { startHelper, type Helper, type Started } from '../processes.ts'
import type { Proxy, Setting } from './row.ts'
import { makeIssuer, type MakeToken } from './tokens.ts'

/** A row, and more of what it starts than every proxy has. */
export interface Startable<Running extends Proxy> {
  readonly name: string
  start(setting: Setting): Promise<Running>
}

/** Starts them. */
export interface Starter {
  /** @param file a script of this folder's parent */
  helper(file: string): Promise<Helper>
  row<Running extends Proxy>(
    row: Startable<Running>,
    upstream: Helper,
  ): Promise<{ readonly name: string; readonly proxy: Running }>
  readonly token: MakeToken
  /** Ends all that was started so far. */
  stop(): Promise<void>
}

/**
 * Makes it.
 * @param folder where every row has a folder of its own
 * @param connections to the upstream, the most that a peer may have
 */
export function makeStarter(folder: string, connections: number): Starter {
  const publicKeyFile = join(folder, 'issuer.pem')
  const token = makeIssuer(publicKeyFile)
  const started: Started[] = []
  return {
    token,
    async helper(file) {
      const helper = await startHelper(join(import.meta.dirname, '..', file))
      started.push(helper)
      return helper
    },
    async row(row, upstream) {
      // Some are started more than once.
      const own = mkdtempSync(join(folder, `${row.name}-`))
      const proxy = await row.start({ folder: own, publicKeyFile, upstreamPort: upstream.port, connections })
      started.push(proxy)
      return { name: row.name, proxy }
    },
    async stop() {
      await Promise.all(started.splice(0).map((one) => one.stop()))
    },
  }
}
