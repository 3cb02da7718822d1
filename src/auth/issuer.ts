/** Sets up the issuers of a configuration, with their keys. */
import { createHash } from 'node:crypto'
import type { Config, IssuerConfig } from '../config/schema.ts'
import type { Source, Sources } from '../document/sources.ts'
import { checkCertificates } from './certificates.ts'
import { makeFetching, type Fetching } from './fetching.ts'
import { makeIntrospection, type Introspection } from './introspection.ts'
import { isSecretAlgorithm, type Algorithm } from '../jwt/algorithms.ts'
import { keyFromJwk, keyFromPem, type VerificationKey, type VerifierRules } from '../jwt/key.ts'
import { fixedKeys, remoteKeys, type KeySource } from '../jwt/key-source.ts'
import { keyFromSecret } from './secret-key.ts'

export interface Issuer {
  /** The issuer's key in the configuration: part of every user id. */
  readonly key: string
  readonly config: IssuerConfig
  readonly keys: KeySource
  readonly fetching: Fetching
  /** Null where opaque tokens are not accepted. */
  readonly introspection: Introspection | null
  /** How far the issuer's clock may differ from this machine's, in milliseconds. */
  readonly clockTolerance: number
  /** Equal for the same configuration and the same files. */
  readonly fingerprint: string
  /** Equal as long as the keys come from the same place, and are the same where that is a file. */
  readonly keyMaterial: string
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
  /** Existing issuers: an issuer with the same fingerprint is kept, with its keys. */
  readonly known?: readonly Issuer[]
  readonly sources: Sources
}

/**
 * Key files are read now, key sets when they are first needed.
 * @throws IssuerFaults for key files that can't be used
 */
export function makeIssuers(
  authentication: Config['authentication'],
  { known = [], sources, clock, onFetchFailure }: IssuerSurroundings,
): readonly Issuer[] {
  // New issuers must not refer to the known ones, or each configuration would keep all earlier ones in memory.
  const surroundings = { clock, onFetchFailure }
  const issuers: Issuer[] = []
  const faults: IssuerFaults['faults'][number][] = []
  for (const [key, config] of Object.entries(authentication.issuers)) {
    try {
      const clockTolerance = config.clockTolerance ?? authentication.clockTolerance
      const files = readFiles(key, config, sources)
      const keyMaterial = keyMaterialOf(config, files)
      const fingerprint = hashOf([key, config, clockTolerance, keyMaterial, inBase64(files.ca)])
      const kept = known.find((issuer) => issuer.fingerprint === fingerprint)
      if (kept === undefined) checkBearerToken(key, config, sources)
      issuers.push(kept ?? makeIssuer({ key, config, clockTolerance, keyMaterial, fingerprint }, files, surroundings))
    } catch (error) {
      if (!(error instanceof IssuerFaults)) throw error
      for (const fault of error.faults) faults.push(fault)
    }
  }
  if (faults.length > 0) throw new IssuerFaults(faults)
  return issuers
}

function makeIssuer(
  identity: Pick<Issuer, 'key' | 'config' | 'clockTolerance' | 'keyMaterial' | 'fingerprint'>,
  files: Files,
  surroundings: Pick<IssuerSurroundings, 'clock' | 'onFetchFailure'>,
): Issuer {
  const { key, config, clockTolerance } = identity
  const fetching = fetchingFor(key, config, files)
  const keys = keySource(key, config, files, { issuer: config.issuer, clockTolerance }, surroundings, fetching)
  const onFailure = (message: string): void => surroundings.onFetchFailure(key, message)
  const introspection =
    config.introspection === undefined ? null : makeIntrospection(config, fetching, surroundings.clock, onFailure, clockTolerance)
  return { ...identity, fetching, keys, introspection }
}

/** The bearer token is not among them: it is read with each fetch. */
interface Files {
  readonly publicKeyFile: Buffer | undefined
  readonly secretFile: Buffer | undefined
  readonly ca: Buffer | undefined
}

function readFiles(key: string, config: IssuerConfig, sources: Sources): Files {
  const read = (name: keyof Files): Buffer | undefined => {
    const file = config[name]
    return file === undefined ? undefined : bytesOf(key, name, file, sources.read(file))
  }
  return { publicKeyFile: read('publicKeyFile'), secretFile: read('secretFile'), ca: read('ca') }
}

/** Includes the files' contents: a new key under the old path is another key. */
function keyMaterialOf(config: IssuerConfig, { publicKeyFile, secretFile }: Files): string {
  const { issuer, jwksUri, algorithms, tokenTypes, introspection } = config
  const files = [publicKeyFile, secretFile].map(inBase64)
  return hashOf([issuer, jwksUri, algorithms, tokenTypes?.toSorted(), introspection?.url, introspection?.clientId, files])
}

function hashOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

function inBase64(bytes: Buffer | undefined): string | undefined {
  return bytes?.toString('base64')
}

function keySource(
  key: string,
  config: IssuerConfig,
  { publicKeyFile, secretFile }: Files,
  rules: VerifierRules,
  surroundings: Pick<IssuerSurroundings, 'clock' | 'onFetchFailure'>,
  fetching: Fetching,
): KeySource {
  const { algorithms } = config
  // Introspection alone decides.
  if (algorithms === undefined) return fixedKeys([])
  if (publicKeyFile !== undefined) {
    return fixedKeys([parsed(key, config, 'publicKeyFile', () => keyForAll(publicKeyFile.toString('utf8'), algorithms, rules))])
  }
  if (secretFile !== undefined) {
    const secretAlgorithms = algorithms.filter(isSecretAlgorithm)
    return fixedKeys([parsed(key, config, 'secretFile', () => keyFromSecret(secretFile, secretAlgorithms, rules))])
  }
  return remoteKeys({
    at: config.jwksUri === undefined ? { issuer: config.issuer } : { jwksUri: config.jwksUri },
    fetching,
    read: (jwk) => keyFromJwk(jwk, algorithms, rules),
    cacheFor: config.keyCache,
    staleIfError: config.staleIfError,
    clock: surroundings.clock,
    onFailure: (message) => surroundings.onFetchFailure(key, message),
  })
}

/** @throws Error if the key cannot serve each of the algorithms */
function keyForAll(pem: string, algorithms: readonly Algorithm[], rules: VerifierRules): VerificationKey {
  const key = keyFromPem(pem, algorithms, rules)
  const misfits = algorithms.filter((algorithm) => key?.fits(algorithm) !== true)
  if (key === null || misfits.length > 0) throw new Error(`holds a key that cannot serve ${misfits.join(', ')}`)
  return key
}

function checkBearerToken(key: string, { bearerTokenFile }: IssuerConfig, sources: Sources): void {
  if (bearerTokenFile !== undefined) bytesOf(key, 'bearerTokenFile', bearerTokenFile, sources.readRotating(bearerTokenFile))
}

function fetchingFor(key: string, config: IssuerConfig, files: Files): Fetching {
  const home = config.jwksUri ?? (URL.canParse(config.issuer) ? config.issuer : (config.introspection?.url ?? config.issuer))
  const { insecureHttp, bearerTokenFile } = config
  const ca = files.ca?.toString('utf8')
  if (ca !== undefined) parsed(key, config, 'ca', () => checkCertificates(ca))
  return makeFetching(home, { insecureHttp, ca, bearerTokenFile })
}

function bytesOf(issuer: string, name: string, file: string, source: Source): Buffer {
  if ('error' in source) throw fileFault(issuer, name, `${file} cannot be read`)
  return source.bytes
}

function parsed<T>(issuer: string, config: IssuerConfig, name: keyof Files, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw fileFault(issuer, name, `${config[name]} ${error instanceof Error ? error.message : String(error)}`)
  }
}

function fileFault(issuer: string, name: string, message: string): IssuerFaults {
  return new IssuerFaults([{ path: ['authentication', 'issuers', issuer, name], message }])
}
