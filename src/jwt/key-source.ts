/** An issuer's keys. They are fetched only from configured addresses, never from one that a token names (RFC 8725 §3.10). */
import type { DocumentSource } from './document.ts'
import type { VerificationKey } from './key.ts'

export interface KeySource {
  find(kid: string | undefined): Promise<readonly VerificationKey[] | 'unavailable'>
  ready(): boolean
  stale(): boolean
  /** Results that were verified with another version must be discarded. Properties, because each request reads them. */
  readonly version: number
  /** Milliseconds since the epoch. The keys are trusted from the first to the second, both included. */
  readonly trustedFrom: number
  readonly trustedUntil: number
  /** For another source of the same keys, which takes the place of this one. Null if nothing was fetched. */
  fetched(): FetchedKeys | null
  /** Fetches keys that are too old. Called about every second, so that no request waits for a fetch. */
  renew(): void
}

export interface FetchedKeys {
  readonly keys: readonly VerificationKey[]
  /** Milliseconds since the epoch. */
  readonly at: number
}

export const MAX_KEYS = 100
/** No fetch starts within this time after another, successful or not, whatever key ids arrive. */
const COOL_DOWN_MS = 5000

/** A key without an id may have signed any token. */
export function fixedKeys(keys: readonly VerificationKey[]): KeySource {
  return {
    find: (kid) => Promise.resolve(keys.filter((key) => kid === undefined || key.kid === undefined || key.kid === kid)),
    ready: () => true,
    stale: () => false,
    version: 0,
    trustedFrom: -Infinity,
    trustedUntil: Infinity,
    fetched: () => null,
    renew: () => {},
  }
}

export interface RemoteKeys {
  /** The key set, or the issuer whose metadata names it (OpenID Connect Discovery 1.0 §4). */
  readonly at: { readonly jwksUri: string } | { readonly issuer: string }
  readonly fetching: DocumentSource
  readonly read: (jwk: unknown) => VerificationKey | null
  /** Milliseconds. A key that was removed from the set is accepted no longer than that. */
  readonly cacheFor: number
  /** Milliseconds. Keys that cannot be fetched for this long are no longer trusted. */
  readonly staleIfError: number
  /** For keys older than `cacheFor`. Without calls of `renew` a request must wait: otherwise a removed key would be accepted. */
  readonly whenOld?: 'use' | 'wait'
  /** What another source fetched from the same place. It is used until the first fetch, which `renew` begins at once. */
  readonly before?: FetchedKeys | null
  readonly clock: () => number
  readonly onFailure: (message: string, cause: unknown) => void
}

export function remoteKeys(options: RemoteKeys): KeySource {
  const { clock } = options
  const { before = null } = options
  let keys: readonly VerificationKey[] | null = before?.keys ?? null
  let hasFetched = false
  let pauseUntil = -Infinity
  let failing = false
  let running: Promise<void> | null = null

  const trustedUntil = (from: number): number => from + Math.max(options.cacheFor, options.staleIfError)
  const refresh = (): Promise<void> => {
    if (running !== null) return running
    // A longer rest than the full pause means that the clock was set back.
    const pause = pauseUntil - clock()
    if (pause > 0 && pause <= COOL_DOWN_MS) return Promise.resolve()
    running = fetchKeys(options)
      .then((fetched) => {
        keys = fetched
        hasFetched = true
        source.version += 1
        source.trustedFrom = clock()
        source.trustedUntil = trustedUntil(source.trustedFrom)
        failing = false
      })
      .catch((error: unknown) => {
        failing = true
        options.onFailure(error instanceof Error ? error.message : String(error), error)
      })
      .finally(() => {
        pauseUntil = clock() + COOL_DOWN_MS
        running = null
      })
    return running
  }
  // Where the clock was set back, the age is unknown.
  const isOld = (): boolean => clock() < source.trustedFrom || clock() - source.trustedFrom > options.cacheFor
  const isTrusted = (): boolean => clock() >= source.trustedFrom && clock() <= source.trustedUntil
  const candidates = (kid: string | undefined): readonly VerificationKey[] =>
    (keys ?? []).filter((key) => kid === undefined || key.kid === kid)

  const source = {
    version: 0,
    trustedFrom: before?.at ?? Infinity,
    trustedUntil: before === null ? -Infinity : trustedUntil(before.at),
    async find(kid: string | undefined) {
      const old = isOld()
      if (!isTrusted() || candidates(kid).length === 0 || (old && options.whenOld === 'wait')) await refresh()
      else if (old) void refresh()
      if (!isTrusted()) return 'unavailable'
      const found = candidates(kid)
      // Only the issuer knows whether such a key exists, and it does not answer.
      return found.length === 0 && failing ? 'unavailable' : found
    },
    ready: () => keys !== null,
    stale: () => failing && keys !== null,
    fetched: (): FetchedKeys | null => (keys === null ? null : { keys, at: source.trustedFrom }),
    renew: () => {
      if (!hasFetched || failing || isOld()) void refresh()
    },
  } satisfies KeySource
  return source
}

async function fetchKeys({ at, fetching, read }: RemoteKeys): Promise<readonly VerificationKey[]> {
  const uri = 'jwksUri' in at ? at.jwksUri : await discover(at.issuer, fetching)
  const members = (await fetching.get(uri))['keys']
  if (!Array.isArray(members)) throw new Error(`${uri} is no key set: it has no "keys"`)
  if (members.length > MAX_KEYS) throw new Error(`${uri} holds ${members.length} keys: more than ${MAX_KEYS}`)
  const keys = members.map(read).filter((key) => key !== null)
  if (keys.length === 0) throw new Error(`${uri} holds no key that fits the configured algorithms`)
  return keys
}

/** OpenID Connect Discovery 1.0 §4.1. */
export function metadataUri(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

async function discover(issuer: string, fetching: DocumentSource): Promise<string> {
  const uri = metadataUri(issuer)
  const metadata = await fetching.get(uri)
  // OpenID Connect Discovery 1.0 §4.3: the metadata must name exactly the issuer that was asked for.
  if (metadata['issuer'] !== issuer)
    throw new Error(`${uri} speaks for another issuer: ${String(metadata['issuer']).slice(0, 200)}`)
  const jwksUri = metadata['jwks_uri']
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) throw new Error(`${uri} names no jwks_uri`)
  if (!fetching.allowed(jwksUri)) throw new Error(`${uri} names a jwks_uri without https`)
  return jwksUri
}
