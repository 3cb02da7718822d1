/**
 * Provides an issuer's keys: given ones, or fetched ones. Only the configured address is asked, or the one that the metadata of
 * the configured issuer names; never an address that a token names (RFC 8725 §3.10).
 */
import type { DocumentSource } from './document.ts'
import type { VerificationKey } from './key.ts'

export interface KeySource {
  /**
   * The keys that may have signed a token.
   * @param kid the token's key id, if it has one
   * @returns the candidates; `unavailable` where the issuer can't be asked, and no known key is a candidate
   */
  find(kid: string | undefined): Promise<readonly VerificationKey[] | 'unavailable'>
  ready(): boolean
  stale(): boolean
  trusted(): boolean
  /** Changes with the keys: results of other keys must then be discarded. */
  keySetVersion(): number
  /** Fetches keys that are too old; called every second or so, so that no request has to wait for it. */
  renew(): void
}

const MAX_KEYS = 100
/** Milliseconds after a fetch, successful or not, without another, whatever key ids arrive. */
const COOL_DOWN_MS = 5000

/** A key without an id may have signed any token. */
export function fixedKeys(keys: readonly VerificationKey[]): KeySource {
  return {
    find: (kid) => Promise.resolve(keys.filter((key) => kid === undefined || key.kid === undefined || key.kid === kid)),
    ready: () => true,
    stale: () => false,
    trusted: () => true,
    keySetVersion: () => 0,
    renew: () => {},
  }
}

export interface RemoteKeys {
  /** The address of the key set, or the issuer whose metadata names it (OpenID Connect Discovery 1.0 §4). */
  readonly at: { readonly jwksUri: string } | { readonly issuer: string }
  readonly fetching: DocumentSource
  /** Reads one member of the key set; null if it can serve nothing. */
  readonly read: (jwk: unknown) => VerificationKey | null
  /** Milliseconds for which a fetched key set is used: a key that was removed from it works no longer than that. */
  readonly cacheFor: number
  /** Milliseconds after which keys that could not be fetched again are no longer trusted. */
  readonly staleIfError: number
  /**
   * What a request does that finds keys older than `cacheFor`. It may use them where `renew` is called regularly. Elsewhere it must
   * wait for the fetch: after hours without requests, a removed key would work once more.
   */
  readonly whenOld?: 'use' | 'wait'
  readonly clock: () => number
  readonly onFailure: (message: string, cause: unknown) => void
}

/** One fetch at a time, with a pause after each, whatever tokens arrive. The last good keys stay. */
export function remoteKeys(options: RemoteKeys): KeySource {
  const { clock } = options
  let keys: readonly VerificationKey[] | null = null
  let version = 0
  let fetchedAt = -Infinity
  let pauseUntil = -Infinity
  let failing = false
  let running: Promise<void> | null = null

  const refresh = (): Promise<void> => {
    if (running !== null) return running
    // A longer rest than the full pause means that the clock was set back.
    const pause = pauseUntil - clock()
    if (pause > 0 && pause <= COOL_DOWN_MS) return Promise.resolve()
    running = fetchKeys(options)
      .then((fetched) => {
        keys = fetched
        version += 1
        fetchedAt = clock()
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
  /** The age is unknown where the clock was set back to before the fetch. */
  const age = (): number => (clock() < fetchedAt ? Infinity : clock() - fetchedAt)
  const trusted = (): boolean => keys !== null && age() <= Math.max(options.cacheFor, options.staleIfError)
  const candidates = (kid: string | undefined): readonly VerificationKey[] =>
    (keys ?? []).filter((key) => kid === undefined || key.kid === kid)

  return {
    async find(kid) {
      const isOld = age() > options.cacheFor
      if (!trusted() || candidates(kid).length === 0 || (isOld && options.whenOld === 'wait')) await refresh()
      else if (isOld) void refresh()
      if (!trusted()) return 'unavailable'
      const found = candidates(kid)
      // Only the issuer knows whether such a key exists, and it does not answer.
      return found.length === 0 && failing ? 'unavailable' : found
    },
    ready: () => keys !== null,
    stale: () => failing && keys !== null,
    trusted,
    keySetVersion: () => version,
    renew: () => {
      if (failing || age() > options.cacheFor) void refresh()
    },
  }
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

async function discover(issuer: string, fetching: DocumentSource): Promise<string> {
  const uri = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const metadata = await fetching.get(uri)
  // OpenID Connect Discovery 1.0 §4.3: the metadata must name exactly the issuer that was asked for.
  if (metadata['issuer'] !== issuer)
    throw new Error(`${uri} speaks for another issuer: ${String(metadata['issuer']).slice(0, 200)}`)
  const jwksUri = metadata['jwks_uri']
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) throw new Error(`${uri} names no jwks_uri`)
  if (!fetching.allowed(jwksUri)) throw new Error(`${uri} names a jwks_uri without https`)
  return jwksUri
}
