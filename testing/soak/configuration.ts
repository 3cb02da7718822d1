/** The gateway of a soak: its configuration and policy, and the changes that are made to them while it runs. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ISSUER, ISSUER_KEY } from '../bench/requests/tokens.ts'

/** What the configuration rests on. */
export interface SoakSetting {
  readonly folder: string
  readonly upstreamPort: number
  readonly jwksUri: string
  readonly workers: number
}

const SHIPPED_POLICY = join(import.meta.dirname, '../../policies/default.yaml')

/** A rule that denies wins over all that allow. */
const STOP_IS_REFUSED = `rules:
  - name: nobody-stops
    routes: [agent/stop]
    deny: [signed-in]
`

/**
 * It: the shipped policy, RS256 with a key set that is fetched, owners in SQLite, metrics, log and audit into files. Streams end
 * with their token. Those limits are off that would refuse what forty users send here.
 * @param body the size of a body: any that is large enough; another one makes another configuration
 */
export function configurationOf({ upstreamPort, jwksUri, workers }: SoakSetting, body: string): object {
  return {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    upstream: { url: `http://127.0.0.1:${upstreamPort}`, basePath: '/api/copilotkit', transport: 'multi-route' },
    authentication: { clockTolerance: '1s', issuers: { [ISSUER_KEY]: { ...ISSUER, jwksUri } } },
    ownership: { store: 'sqlite:./ownership.db', unknownThread: 'claim' },
    streams: { tokenExpiry: 'close' },
    limits: { body, newThreads: 'off', requests: 'off', grants: 'off', runs: 'off', streams: 'off' },
    policy: './policy.yaml',
    log: { level: 'info' },
    audit: { to: 'file', file: './audit.jsonl' },
    ...(workers > 1 ? { workers } : {}),
  }
}

/** Writes the policy: the shipped one, with or without a rule that refuses to stop runs. */
export function writePolicy(folder: string, stopIsRefused: boolean): void {
  const shipped = readFileSync(SHIPPED_POLICY, 'utf8')
  writeFileSync(join(folder, 'policy.yaml'), stopIsRefused ? shipped.replace(/^rules:\n/m, STOP_IS_REFUSED) : shipped)
}

/** Writes a policy that nobody can read. */
export function writeBrokenPolicy(folder: string): void {
  writeFileSync(join(folder, 'policy.yaml'), 'version: 1\nrules: [ { name: nothing of a rule } ]\n')
}
