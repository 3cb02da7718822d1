/** Checks everything that has to be right before a gateway may start, in one place for `serve` and `validate`. */
import { createHash } from 'node:crypto'
import { IssuerFaults, makeIssuers } from '../auth/issuer.ts'
import { loadConfig } from '../config/load.ts'
import type { PolicyFile } from '../config/policy-file.ts'
import { storeOf } from '../config/store-place.ts'
import type { Config } from '../config/schema.ts'
import { withoutSecrets } from '../config/secrets.ts'
import type { Outcome, Place } from '../document/document.ts'
import { inOrder, type Fault } from '../document/fault.ts'
import { Sources, unreadable, type FileHashes, type FileStates } from '../document/sources.ts'
import { makeAdminCredentials } from '../http/admin/credentials.ts'
import { checkPublishedKey, checkSigningKey } from '../http/pipeline/identity.ts'
import { auditFileFault } from '../audit/file.ts'
import { loadPolicy, type Policy } from '../policy/compile.ts'
import { certificatesIn } from '../tls/certificates.ts'
import { certificateWarnings, presentedCertificates, tlsFaults, type PresentedCertificate } from '../tls/checks.ts'

/** The hashes tell a worker whether keys and certificates are still the checked ones. */
export interface Checked {
  readonly config: Config
  /** True if the configuration names the store: otherwise THREADWARDEN_DATA does. */
  readonly isStorePlaced: boolean
  readonly policy: Policy
  readonly shadow: Policy | null
  readonly warnings: readonly Fault[]
  readonly certificates: readonly PresentedCertificate[]
  readonly hashes: FileHashes
  /** Of the configuration and its policies as written: two gateways with the same digest are configured alike. It tells no secret. */
  readonly digest: string
  /** The configuration as written, with references instead of their values, without secrets and the addresses of listeners. */
  readonly written: unknown
}

export interface Prepared extends Checked {
  /** Keys and certificates, which activation reads from here. */
  readonly sources: Sources
}

const ATTEMPTS = 5

/** Collects every error. The result is of one moment: if a file changes while others are read, all are read again. */
export function prepare(file: string, environment: NodeJS.ProcessEnv): Outcome<Prepared> & { readonly states: FileStates } {
  let states: FileStates = new Map()
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const sources = new Sources()
    const outcome = load(file, environment, sources)
    states = sources.states
    if (sources.isCurrent()) return { ...outcome, states }
  }
  const fault = { file, path: '', message: 'changed while it was read', hint: 'replace files by renaming' }
  return { ok: false, faults: [fault], states }
}

function load(file: string, environment: NodeJS.ProcessEnv, sources: Sources): Outcome<Prepared> {
  const loaded = loadConfig(file, environment, sources)
  if (loaded.named === null) return loaded
  const { policy: named, shadowPolicy, places, surroundings, secrets } = loaded.named
  const read = (one: PolicyFile, place: Place) =>
    loadPolicy(one.isBuiltin ? new Sources() : sources, one.path, surroundings, one.isBuiltin ? undefined : place)
  const policy = read(named, places.policy)
  const shadow = shadowPolicy === null ? null : read(shadowPolicy, places.shadowPolicy)
  const faults = [
    ...(loaded.ok ? fileFaults(file, loaded.value.config, sources) : loaded.faults),
    ...(policy.ok ? [] : policy.faults),
    ...(shadow === null || shadow.ok ? [] : shadow.faults),
  ]
  // An error message may quote a secret, by a reference in a wrong place.
  if (!loaded.ok || !policy.ok || shadow?.ok === false || faults.length > 0) {
    return { ok: false, faults: inOrder(withoutSecrets(faults, secrets)) }
  }
  const { config, isStorePlaced, warnings, written } = loaded.value
  const certificates = presentedCertificates(config, sources)
  const ofCertificates = certificateWarnings(certificates, Date.now()).map((one) => ({ file, ...one }))
  return {
    ok: true,
    value: {
      config,
      isStorePlaced,
      policy: policy.value.policy,
      shadow: shadow?.value.policy ?? null,
      warnings: withoutSecrets(
        [...warnings, ...ofCertificates, ...policy.value.warnings, ...(shadow?.value.warnings ?? [])],
        secrets,
      ),
      certificates,
      hashes: sources.hashes,
      written,
      digest: digestOf([written, policy.value.policy.hash, shadow?.value.policy.hash ?? null]),
      sources,
    },
  }
}

function fileFaults(file: string, config: Config, sources: Sources): readonly Fault[] {
  const faults: Fault[] = []
  const check = (path: string, named: string | null | undefined, checkText: (text: string) => void): void => {
    if (typeof named !== 'string') return
    const source = sources.read(named)
    try {
      if ('error' in source) throw new Error(unreadable(source.error).message)
      checkText(source.bytes.toString('utf8'))
    } catch (error) {
      faults.push({ file, path, message: `${named} ${messageOf(error)}` })
    }
  }
  try {
    makeIssuers(config.authentication, { sources, clock: Date.now, onFetchFailure: () => {} })
  } catch (error) {
    if (!(error instanceof IssuerFaults)) throw error
    for (const { path, message } of error.faults) faults.push({ file, path: path.join('.'), message })
  }
  try {
    if (config.admin !== undefined) makeAdminCredentials(config.admin, sources, () => {})
  } catch (error) {
    faults.push({ file, path: 'admin', message: messageOf(error) })
  }
  for (const [at, keyFile] of (config.identity.assertion?.keyFiles ?? []).entries()) {
    check(`identity.assertion.keyFiles.${at}`, keyFile, at === 0 ? checkSigningKey : checkPublishedKey)
  }
  const audit = config.audit.to === 'file' ? auditFileFault(config.audit.file) : null
  if (audit !== null) faults.push({ file, path: 'audit.file', ...audit })
  for (const fault of tlsFaults(config, sources)) faults.push({ file, ...fault })
  const store = storeOf(config.ownership)
  if (store.kind === 'postgres') check('ownership.postgres.ca', store.settings.ca, certificatesIn)
  return faults
}

function digestOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
