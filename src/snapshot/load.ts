/** Checks everything that has to be right before a gateway may start, in one place for `serve` and `validate`. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { checkCertificates } from '../auth/certificates.ts'
import { IssuerFaults, makeIssuers } from '../auth/issuer.ts'
import { loadConfig, namedBy, type LoadedConfig, type Named } from '../config/load.ts'
import { mountsOf } from '../config/mounts.ts'
import { storeOf } from '../config/store-place.ts'
import type { Config } from '../config/schema.ts'
import { withoutSecrets } from '../config/secrets.ts'
import type { Outcome } from '../document/document.ts'
import type { Fault } from '../document/fault.ts'
import { makeAdminCredentials } from '../http/admin/credentials.ts'
import { checkAssertionKey } from '../http/pipeline/identity.ts'
import { digestOf, type KeyFileDigests } from './key-file-digests.ts'
import { auditFileFault } from '../audit/file.ts'
import { loadPolicy } from '../policy/compile.ts'
import type { Policy } from '../policy/policy.ts'

export const SHIPPED_POLICY = fileURLToPath(new URL('../../policies/default.yaml', import.meta.url))

export interface Prepared {
  readonly config: Config
  readonly policy: Policy
  readonly shadow: Policy | null
  readonly warnings: readonly Fault[]
  /** Equal for the same configuration, policies, secrets, keys and certificates. */
  readonly fingerprint: string
  /** Keys and certificates among these files. Activation reads them again. */
  readonly materials: KeyFileDigests
}

const ATTEMPTS = 5

/**
 * Loads and checks configuration, policies and key files, and collects every error. The result is of one moment: files that
 * change while they are read are read again.
 * @param file the configuration file
 * @param environment where `${env:NAME}` is looked up
 */
export function prepare(file: string, environment: NodeJS.ProcessEnv): Outcome<Prepared> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const fingerprint = fingerprintOf(file, environment)
    const outcome = prepareOnce(file, environment, fingerprint)
    if (fingerprintOf(file, environment) === fingerprint) return outcome
  }
  return { ok: false, faults: [{ file, path: '', message: 'changes while it is read', hint: 'replace files by renaming' }] }
}

function prepareOnce(file: string, environment: NodeJS.ProcessEnv, fingerprint: string): Outcome<Prepared> {
  const loaded = loadConfig(file, environment)
  const named = namedBy(file, environment)
  if (named === null) return { ok: false, faults: loaded.ok ? [] : loaded.faults }
  const outcome = check(file, loaded, named, fingerprint)
  const { secrets } = named
  // An error message may quote a secret, by a reference in a wrong place.
  if (!outcome.ok) return { ok: false, faults: withoutSecrets(outcome.faults, secrets) }
  return { ok: true, value: { ...outcome.value, warnings: withoutSecrets(outcome.value.warnings, secrets) } }
}

function check(file: string, loaded: Outcome<LoadedConfig>, named: Named, fingerprint: string): Outcome<Prepared> {
  const { surroundings, places } = named
  const policy =
    named.policy === undefined ? loadPolicy(SHIPPED_POLICY, surroundings) : loadPolicy(named.policy, surroundings, places.policy)
  const shadow = named.shadowPolicy === undefined ? null : loadPolicy(named.shadowPolicy, surroundings, places.shadowPolicy)
  const faults = [
    ...(loaded.ok ? fileFaults(file, loaded.value.config) : loaded.faults),
    ...(policy.ok ? [] : policy.faults),
    ...(shadow === null || shadow.ok ? [] : shadow.faults),
  ]
  if (!loaded.ok || !policy.ok || shadow?.ok === false || faults.length > 0) return { ok: false, faults }
  const { config, warnings } = loaded.value
  return {
    ok: true,
    value: {
      config,
      policy: policy.value.policy,
      shadow: shadow?.value.policy ?? null,
      warnings: [...warnings, ...policy.value.warnings, ...(shadow?.value.warnings ?? [])],
      fingerprint,
      materials: { files: named.materials, digest: digestOf(named.materials) },
    },
  }
}

function fingerprintOf(file: string, environment: NodeJS.ProcessEnv): string {
  return digestOf(namedBy(file, environment)?.files ?? [file])
}

function fileFaults(file: string, config: Config): readonly Fault[] {
  const faults: Fault[] = []
  try {
    makeIssuers(config.authentication, { clock: Date.now, onFetchFailure: () => {} })
  } catch (error) {
    if (!(error instanceof IssuerFaults)) throw error
    for (const { path, message } of error.faults) faults.push({ file, path: path.join('.'), message })
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
  const audit = config.audit.to === 'file' ? auditFileFault(config.audit.file) : null
  if (audit !== null) faults.push({ file, path: 'audit.file', ...audit })
  const store = storeOf(config.ownership)
  for (const [path, ca] of [
    ...mountsOf(config).map(({ place, ca }) => [`${place.join('.')}.ca`, ca ?? null] as const),
    ['ownership.postgres.ca', store.kind === 'postgres' ? store.settings.ca : null],
  ] as const) {
    try {
      if (ca !== null) checkCertificates(readFileSync(ca, 'utf8'))
    } catch (error) {
      const message = error instanceof Error && !('code' in error) ? error.message : 'cannot be read'
      faults.push({ file, path, message: `${ca} ${message}` })
    }
  }
  return faults
}
