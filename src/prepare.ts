/** Everything that has to be right before a gateway may start, checked in one place for `serve` and `validate`. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { IssuerFaults, makeIssuers } from './auth/issuer.ts'
import { loadConfig, policyNamedBy } from './config/load.ts'
import type { Config } from './config/schema.ts'
import type { Outcome } from './document/document.ts'
import type { Fault } from './document/fault.ts'
import { makeAdminCredentials } from './http/admin-credentials.ts'
import { checkAssertionKey } from './http/identity.ts'
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
  const named = policyNamedBy(file, environment)
  if (named === null) return { ok: false, faults: loaded.ok ? [] : loaded.faults }
  const policy = loadPolicy(named.path ?? SHIPPED_POLICY, named.issuers)
  const faults = [...(loaded.ok ? fileFaults(file, loaded.value.config) : loaded.faults), ...(policy.ok ? [] : policy.faults)]
  if (!loaded.ok || !policy.ok || faults.length > 0) return { ok: false, faults }
  const { config, warnings } = loaded.value
  return { ok: true, value: { config, policy: policy.value.policy, warnings: [...warnings, ...policy.value.warnings] } }
}

function fileFaults(file: string, config: Config): readonly Fault[] {
  const faults: Fault[] = []
  try {
    makeIssuers(config.authentication, { clock: Date.now, onFetchFailure: () => {} })
  } catch (error) {
    if (!(error instanceof IssuerFaults)) throw error
    faults.push(...error.faults.map(({ path, message }) => ({ file, path: path.join('.'), message })))
  }
  try {
    if (config.admin !== undefined) makeAdminCredentials(config.admin, () => {})
  } catch (error) {
    faults.push({ file, path: 'admin', message: error instanceof Error ? error.message : String(error) })
  }
  for (const [at, keyFile] of (config.identity.assertion?.keyFiles ?? []).entries()) {
    try {
      checkAssertionKey(readFileSync(keyFile, 'utf8'), at === 0)
    } catch (error) {
      const message = `${keyFile} ${error instanceof Error && !('code' in error) ? error.message : 'cannot be read'}`
      faults.push({ file, path: `identity.assertion.keyFiles.${at}`, message })
    }
  }
  try {
    if (config.upstream.ca !== undefined) readFileSync(config.upstream.ca)
  } catch {
    faults.push({ file, path: 'upstream.ca', message: `${config.upstream.ca} cannot be read` })
  }
  return faults
}
