/** Everything that has to be right before a gateway may start, checked in one place for `serve` and `validate`. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { IssuerFault, makeIssuers } from './auth/issuer.ts'
import { loadConfig } from './config/load.ts'
import type { Config } from './config/schema.ts'
import type { Outcome } from './document/document.ts'
import type { Fault } from './document/fault.ts'
import { loadPolicy, type Policy } from './policy/compile.ts'

/** The policy that is shipped, used where the configuration names none. */
export const SHIPPED_POLICY = fileURLToPath(new URL('../policies/default.yaml', import.meta.url))

/** A gateway that may be started. */
export interface Prepared {
  readonly config: Config
  readonly policy: Policy
  readonly warnings: readonly Fault[]
}

/**
 * Loads and checks configuration, policy and key files, and collects every fault of all of them.
 * @param file the configuration file
 * @param environment where `${env:NAME}` looks
 */
export function prepare(file: string, environment: NodeJS.ProcessEnv): Outcome<Prepared> {
  const loaded = loadConfig(file, environment)
  if (!loaded.ok) return loaded
  const { config, warnings } = loaded.value
  const policy = loadPolicy(config.policy ?? SHIPPED_POLICY, Object.keys(config.authentication.issuers))
  const faults = [...fileFaults(file, config), ...(policy.ok ? [] : policy.faults)]
  if (!policy.ok || faults.length > 0) return { ok: false, faults }
  return { ok: true, value: { config, policy: policy.value.policy, warnings: [...warnings, ...policy.value.warnings] } }
}

function fileFaults(file: string, config: Config): readonly Fault[] {
  const faults: Fault[] = []
  try {
    makeIssuers(config.authentication, { clock: Date.now, onFetchFailure: () => {} })
  } catch (error) {
    if (!(error instanceof IssuerFault)) throw error
    faults.push({ file, path: error.path.join('.'), message: error.message })
  }
  try {
    if (config.upstream.ca !== undefined) readFileSync(config.upstream.ca)
  } catch {
    faults.push({ file, path: 'upstream.ca', message: `${config.upstream.ca} cannot be read` })
  }
  return faults
}
