/** Sets up the issuers of a configuration, with their keys. */
import { createHash } from 'node:crypto'
import type { Config, IssuerConfig } from '../config/schema.ts'
import { unreadable, type Source, type Sources } from '../document/sources.ts'
import { certificatesIn } from '../tls/certificates.ts'
import { makeFetching, type Fetching } from './fetching.ts'
import { makeIntrospection, type Introspection } from './introspection.ts'
import { isSecretAlgorithm, type Algorithm } from '../jwt/algorithms.ts'
import { keyFromJwk, keyFromPem, type VerificationKey, type VerifierRules } from '../jwt/key.ts'
import { fixedKeys, remoteKeys, type KeySource, type KnownKeys, type RemoteKeys } from '../jwt/key-source.ts'
import { keyFromSecret } from './secret-key.ts'

export interface Issuer {
  /** The issuer's key in the configuration, part of every user id. */
  readonly key: string
  readonly config: IssuerConfig
  readonly keys: KeySource
  readonly fetching: Fetching
  readonly introspection: Introspection | null
  /** Milliseconds by which the issuer's clock may differ. */
  readonly clockTolerance: number
  /** Equal for the same configuration and the same files. */
  readonly fingerprint: string
  /** Equal while the keys come from the same place and, for a file, are the same. */
  readonly keyMaterial: string
  /** Equal while, in addition, they are fetched and used in the same way. */
  readonly keyUse: string
}

export class IssuerFaults extends Error {
  override readonly name = 'IssuerFaults'
  readonly faults: readonly { readonly path: readonly string[]; readonly message: string }[]
  constructor(faults: IssuerFaults['faults']) {
    super(faults.map((fault) => `${fault.path.join('.')}: ${fault.message}`).join('; '))
    this.faults = faults
  }
}

export interface IssuerSurroundings {
  readonly clock: () => number
  readonly onFetchFailure: (issuer: string, message: string) => void
  /** An issuer with the same fingerprint is kept. One that only fetches at other times gets the keys of the earlier one. */
  readonly known?: readonly Issuer[]
  readonly sources: Sources
}

/** Reads key files now, key sets when they are first needed. @throws IssuerFaults for unusable key files */
export function makeIssuers(
  authentication: Config['authentication'],
  { known = [], sources, clock, onFetchFailure }: IssuerSurroundings,
): readonly Issuer[] {
  // New issuers must not refer to the known ones: each configuration would keep all earlier ones in memory.
  const surroundings = { clock, onFetchFailure }
  const issuers: Issuer[] = []
  const faults: IssuerFaults['faults'][number][] = []
  for (const [key, config] of Object.entries(authentication.issuers)) {
    try {
      const clockTolerance = config.clockTolerance ?? authentication.clockTolerance
      const keyMaterial = keyMaterialOf(key, config, sources)
      const ca = contentOf(key, config, 'ca', sources)
      const fingerprint = hashOf([key, config, clockTolerance, keyMaterial, ca])
      const { insecureHttp, bearerTokenFile } = config
      const keyUse = hashOf([key, clockTolerance, keyMaterial, ca, insecureHttp, bearerTokenFile])
      const kept = known.find((issuer) => issuer.fingerprint === fingerprint)
      // An operator who raises staleIfError while the issuer is down must not lose the keys by it.
      const before = known.find((issuer) => issuer.keyUse === keyUse)?.keys.known ?? null
      const identity = { key, config, clockTolerance, keyMaterial, keyUse, fingerprint }
      issuers.push(kept ?? makeIssuer(identity, before, sources, surroundings))
    } catch (error) {
      if (!(error instanceof IssuerFaults)) throw error
      for (const fault of error.faults) faults.push(fault)
    }
  }
  if (faults.length > 0) throw new IssuerFaults(faults)
  return issuers
}

function makeIssuer(
  identity: Pick<Issuer, 'key' | 'config' | 'clockTolerance' | 'keyMaterial' | 'keyUse' | 'fingerprint'>,
  before: KnownKeys | null,
  sources: Sources,
  { clock, onFetchFailure }: Pick<IssuerSurroundings, 'clock' | 'onFetchFailure'>,
): Issuer {
  const { key, config, clockTolerance } = identity
  const fetching = fetchingFor(key, config, sources)
  const onFailure = (message: string): void => onFetchFailure(key, message)
  const rules = { issuer: config.issuer, clockTolerance }
  const keys = fileKeys(key, config, rules, sources) ?? fetchedKeys(config, rules, { known: before, fetching, clock, onFailure })
  const introspection =
    config.introspection === undefined ? null : makeIntrospection(config, fetching, clock, onFailure, clockTolerance)
  return { ...identity, fetching, keys, introspection }
}

/** Includes the files' contents: a new key under the old path is another key. */
function keyMaterialOf(key: string, config: IssuerConfig, sources: Sources): string {
  const { issuer, jwksUri, algorithms, tokenTypes, introspection } = config
  const files = (['publicKeyFile', 'secretFile'] as const).map((name) => contentOf(key, config, name, sources))
  return hashOf([issuer, jwksUri, algorithms, tokenTypes?.toSorted(), introspection?.url, introspection?.clientId, files])
}

function hashOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

function contentOf(key: string, config: IssuerConfig, name: 'publicKeyFile' | 'secretFile' | 'ca', sources: Sources): string {
  const file = config[name]
  return file === undefined ? '' : fromFile(key, name, file, sources.read(file), (bytes) => bytes.toString('base64'))
}

/** Null for an issuer whose keys are fetched. */
function fileKeys(key: string, config: IssuerConfig, rules: VerifierRules, sources: Sources): KeySource | null {
  const { publicKeyFile, secretFile, algorithms } = config
  // Introspection alone decides.
  if (algorithms === undefined) return fixedKeys([])
  const read = (name: string, file: string, parse: (bytes: Buffer) => VerificationKey): KeySource =>
    fixedKeys([fromFile(key, name, file, sources.read(file), parse)])
  if (publicKeyFile !== undefined) {
    return read('publicKeyFile', publicKeyFile, (bytes) => keyForAll(bytes.toString('utf8'), algorithms, rules))
  }
  if (secretFile === undefined) return null
  return read('secretFile', secretFile, (bytes) => keyFromSecret(bytes, algorithms.filter(isSecretAlgorithm), rules))
}

function fetchedKeys(
  config: IssuerConfig,
  rules: VerifierRules,
  parts: Pick<RemoteKeys, 'known' | 'fetching' | 'clock' | 'onFailure'>,
): KeySource {
  return remoteKeys({
    at: config.jwksUri === undefined ? { issuer: config.issuer } : { jwksUri: config.jwksUri },
    read: (jwk) => keyFromJwk(jwk, config.algorithms ?? [], rules),
    cacheFor: config.keyCache,
    staleIfError: config.staleIfError,
    ...parts,
  })
}

/** @throws Error if the key cannot serve each of the algorithms */
function keyForAll(pem: string, algorithms: readonly Algorithm[], rules: VerifierRules): VerificationKey {
  const key = keyFromPem(pem, algorithms, rules)
  const misfits = algorithms.filter((algorithm) => key?.fits(algorithm) !== true)
  if (key === null || misfits.length > 0) throw new Error(`holds a key that cannot serve ${misfits.join(', ')}`)
  return key
}

function fetchingFor(key: string, config: IssuerConfig, sources: Sources): Fetching {
  const home = config.jwksUri ?? (URL.canParse(config.issuer) ? config.issuer : (config.introspection?.url ?? config.issuer))
  const { insecureHttp, bearerTokenFile, ca: file } = config
  // The content is not used: it is read again for each fetch.
  if (bearerTokenFile !== undefined)
    fromFile(key, 'bearerTokenFile', bearerTokenFile, sources.readRotating(bearerTokenFile), () => null)
  const ca = file === undefined ? undefined : fromFile(key, 'ca', file, sources.read(file), pemWithCertificates)
  return makeFetching(home, { insecureHttp, ca, bearerTokenFile })
}

function pemWithCertificates(bytes: Buffer): string {
  const pem = bytes.toString('utf8')
  certificatesIn(pem)
  return pem
}

function fromFile<T>(issuer: string, name: string, file: string, source: Source, parse: (bytes: Buffer) => T): T {
  try {
    if ('error' in source) throw new Error(unreadable(source.error).message)
    return parse(source.bytes)
  } catch (error) {
    const message = `${file} ${error instanceof Error ? error.message : String(error)}`
    throw new IssuerFaults([{ path: ['authentication', 'issuers', issuer, name], message }])
  }
}
