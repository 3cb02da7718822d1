/** Asks an issuer what it signs with. What it answers is not trusted: only checked values leave this file. */
import { isFetchable } from '../../core/wire/addresses.ts'
import { makeFetching, type Fetching } from '../../auth/fetching.ts'
import { PUBLIC_KEY_ALGORITHMS, type PublicKeyAlgorithm } from '../../jwt/algorithms.ts'
import type { Document } from '../../jwt/document.ts'
import { keyFromJwk } from '../../jwt/key.ts'
import { MAX_KEYS, metadataUri } from '../../jwt/key-source.ts'
import { NotFound } from './not-found.ts'

const MAX_URL = 2000
const MAX_SHOWN = 200

export interface IssuerPlace {
  readonly issuer: string
  /** Its key set, instead of the one that its metadata names. */
  readonly jwksUri: string | null
  /** PEM. */
  readonly ca: string | undefined
}

export interface FoundIssuer {
  /** As its metadata spells it. */
  readonly issuer: string
  /** In the order of this program. */
  readonly algorithms: readonly PublicKeyAlgorithm[]
  readonly keys: number
  readonly introspectionEndpoint: string | null
}

/** @throws NotFound */
export async function askIssuer({ issuer, jwksUri, ca }: IssuerPlace): Promise<FoundIssuer> {
  const fetching = makeFetching(issuer, { insecureHttp: false, ca })
  const metadata = jwksUri === null ? await metadataOf(issuer, fetching) : {}
  const named = jwksUri === null ? issuerIn(metadata, issuer) : issuer
  const uri = jwksUri ?? keySetOf(metadata, fetching, issuer)
  const members = (await fetched(uri, fetching))['keys']
  if (!Array.isArray(members) || members.length > MAX_KEYS) {
    throw new NotFound(`${uri} is no key set with at most ${MAX_KEYS} keys`, 'name the address of its keys with --jwks-uri')
  }
  const wanted = signingAlgorithms(metadata)
  const rules = { issuer: named, clockTolerance: 0 }
  const found = members
    .map((jwk) => keyFromJwk(jwk, PUBLIC_KEY_ALGORITHMS, rules))
    .filter((key) => key !== null)
    .map((key) => PUBLIC_KEY_ALGORITHMS.filter((algorithm) => key.fits(algorithm)))
  const algorithms = new Set(found.flatMap((fitting) => usedOf(fitting, wanted)))
  if (algorithms.size === 0) {
    throw new NotFound(
      `${uri} has no key that this gateway can use`,
      `the gateway verifies ${PUBLIC_KEY_ALGORITHMS.join(', ')}; RSA keys have 2048 bits or more`,
    )
  }
  return {
    issuer: named,
    algorithms: PUBLIC_KEY_ALGORITHMS.filter((algorithm) => algorithms.has(algorithm)),
    keys: found.length,
    introspectionEndpoint: endpointIn(metadata, fetching),
  }
}

/** An RSA key without `alg` fits six algorithms: the metadata narrows them, otherwise the usual one is taken. */
function usedOf(fitting: readonly PublicKeyAlgorithm[], wanted: ReadonlySet<unknown>): readonly PublicKeyAlgorithm[] {
  const both = fitting.filter((algorithm) => wanted.has(algorithm))
  return both.length > 0 ? both : fitting.slice(0, 1)
}

/** OpenID Connect Discovery 1.0 §3: for ID tokens. Issuers do not publish the algorithms of access tokens. */
function signingAlgorithms(metadata: Document): ReadonlySet<unknown> {
  const listed = metadata['id_token_signing_alg_values_supported']
  return new Set(Array.isArray(listed) ? listed : [])
}

function metadataOf(issuer: string, fetching: Fetching): Promise<Document> {
  return fetched(metadataUri(issuer), fetching, 'name its keys with --jwks-uri if it has no OpenID Connect discovery')
}

/** A missing slash at the end is the most frequent mistake. Any other difference may be another issuer. */
function issuerIn(metadata: Document, asked: string): string {
  const named = metadata['issuer']
  if (typeof named === 'string' && withoutSlash(named) === withoutSlash(asked)) return named
  const shown = typeof named === 'string' && isPlain(named) ? `: ${named}` : ''
  throw new NotFound(`${metadataUri(asked)} names another issuer${shown}`, 'pass the issuer exactly as in iss of its tokens')
}

/** True for an address that can be shown: without a query, encoded characters, or text for the reader. */
function isPlain(uri: string): boolean {
  return uri.length <= MAX_SHOWN && /^https?:\/\/[A-Za-z0-9.:[\]-]+(?:\/[A-Za-z0-9._~-]+)*\/?$/.test(uri)
}

function withoutSlash(text: string): string {
  return text.replace(/\/$/, '')
}

function keySetOf(metadata: Document, fetching: Fetching, issuer: string): string {
  const uri = metadata['jwks_uri']
  if (typeof uri === 'string' && uri.length <= MAX_URL && fetching.allowed(uri)) return new URL(uri).href
  throw new NotFound(`${metadataUri(issuer)} names no jwks_uri with https`, 'name the address of its keys with --jwks-uri')
}

function endpointIn(metadata: Document, fetching: Fetching): string | null {
  const uri = metadata['introspection_endpoint']
  return typeof uri === 'string' && isPlain(uri) && fetching.allowed(uri) ? uri : null
}

async function fetched(uri: string, fetching: Fetching, missing = 'check the address of its keys'): Promise<Document> {
  if (!isFetchable(uri)) {
    throw new NotFound(`${uri} cannot be used: keys are fetched by https only`, 'use https; http is only for this machine')
  }
  try {
    return await fetching.get(uri)
  } catch (error) {
    throw explainFetch(uri, error, missing)
  }
}

function explainFetch(uri: string, error: unknown, missing: string): NotFound {
  const [message, code] = error instanceof Error ? [error.message, 'code' in error ? String(error.code) : error.name] : ['', '']
  if (message.startsWith(`${uri} `)) return new NotFound(message, `correct --issuer, or ${missing}`)
  const trusted = /CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS/.test(code)
  const remedy = trusted
    ? 'name its private certificate authority with --issuer-ca'
    : 'check the address, DNS, network policy and proxies from this machine'
  return new NotFound(`${uri} gives no answer (${code})`, remedy)
}
