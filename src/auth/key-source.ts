/** Where an issuer's keys come from. */
import type { Fetching } from './fetching.ts'
import type { VerificationKey } from './key.ts'

/** Keys of one issuer. */
export interface KeySource {
  /**
   * The keys that may have signed a token.
   * @param kid the token's key id, if it has one
   * @returns the candidates; `unavailable` where the issuer can't be asked, and what is known names none that is good
   */
  find(kid: string | undefined): Promise<readonly VerificationKey[] | 'unavailable'>
  /** True once keys are known. */
  ready(): boolean
  /** True while the issuer fails, and keys of before are used. */
  stale(): boolean
  /** True while the keys that are known may be used. */
  trusted(): boolean
  /** Changes with the keys: what was found with others is to be forgotten. */
  generation(): number
  /** Fetches keys that are older than they may be; told every second or so, so that no request has to wait for it. */
  renew(): void
}

/** Bounds on what an issuer may send. */
const MAX_KEYS = 100
/** After a fetch, successful or not, none is made for this long, whatever key ids come along. */
const COOL_DOWN_MS = 5000

/** Keys that are in the configuration. */
export function fixedKeys(keys: readonly VerificationKey[]): KeySource {
  return {
    find: () => Promise.resolve(keys),
    ready: () => true,
    stale: () => false,
    trusted: () => true,
    generation: () => 0,
    renew: () => {},
  }
}

export interface RemoteKeys {
  /** The address of the key set, or the issuer whose metadata names it (OpenID Connect Discovery 1.0 §4). */
  readonly at: { readonly jwksUri: string } | { readonly issuer: string }
  readonly fetching: Fetching
  /** Makes a key of a member of the set, null if it can serve nothing. */
  readonly read: (jwk: unknown) => VerificationKey | null
  /** Milliseconds for which a key set is taken as it was fetched: a key that was removed from it works no longer than that. */
  readonly cacheFor: number
  /** Milliseconds after which keys that could not be fetched anew are no longer trusted. */
  readonly staleIfError: number
  readonly clock: () => number
  /** Told of every fetch that failed. */
  readonly onFailure: (message: string) => void
}

/**
 * Keys that are fetched: one fetch at a time, a pause after each, and the last good ones stay. A request whose key is known
 * never waits for a fetch; those whose key is not known wait for the same one.
 */
export function remoteKeys(options: RemoteKeys): KeySource {
  const { clock } = options
  let keys: readonly VerificationKey[] | null = null
  let generation = 0
  let fetchedAt = -Infinity
  let pauseUntil = -Infinity
  let failing = false
  let running: Promise<void> | null = null

  const refresh = (): Promise<void> => {
    if (running !== null) return running
    // A pause that is longer than a pause is one of a clock that was set back.
    const pause = pauseUntil - clock()
    if (pause > 0 && pause <= COOL_DOWN_MS) return Promise.resolve()
    running = fetchKeys(options)
      .then((fetched) => {
        keys = fetched
        generation += 1
        fetchedAt = clock()
        failing = false
      })
      .catch((error: unknown) => {
        failing = true
        options.onFailure(error instanceof Error ? error.message : String(error))
      })
      .finally(() => {
        pauseUntil = clock() + COOL_DOWN_MS
        running = null
      })
    return running
  }
  /** Of keys from a time that is still to come, by a clock that was set back, nobody knows the age. */
  const age = (): number => (clock() < fetchedAt ? Infinity : clock() - fetchedAt)
  const trusted = (): boolean => keys !== null && age() <= Math.max(options.cacheFor, options.staleIfError)
  const candidates = (kid: string | undefined): readonly VerificationKey[] =>
    (keys ?? []).filter((key) => kid === undefined || key.kid === kid)

  return {
    async find(kid) {
      if (!trusted()) await refresh()
      if (!trusted()) return 'unavailable'
      if (candidates(kid).length === 0) await refresh()
      else if (age() > options.cacheFor) void refresh()
      const found = candidates(kid)
      // Whether such a key exists is for the issuer to say, and it says nothing.
      return found.length === 0 && failing ? 'unavailable' : found
    },
    ready: () => keys !== null,
    stale: () => failing && keys !== null,
    trusted,
    generation: () => generation,
    renew: () => {
      if (failing || age() > options.cacheFor) void refresh()
    },
  }
}

async function fetchKeys(options: RemoteKeys): Promise<readonly VerificationKey[]> {
  const { at, fetching } = options
  const uri = 'jwksUri' in at ? at.jwksUri : await discover(at.issuer, fetching)
  const set = await fetching.get(uri)
  const members = set['keys']
  if (!Array.isArray(members)) throw new Error(`${uri} is no key set: it has no "keys"`)
  if (members.length > MAX_KEYS) throw new Error(`${uri} holds ${members.length} keys: more than ${MAX_KEYS}`)
  const keys = members.map(options.read).filter((key) => key !== null)
  if (keys.length === 0) throw new Error(`${uri} holds no key that fits the configured algorithms`)
  return keys
}

async function discover(issuer: string, fetching: Fetching): Promise<string> {
  const uri = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const metadata = await fetching.get(uri)
  // OpenID Connect Discovery 1.0 §4.3: the issuer must be the one that was asked for, to the letter.
  if (metadata['issuer'] !== issuer)
    throw new Error(`${uri} speaks for another issuer: ${String(metadata['issuer']).slice(0, 200)}`)
  const jwksUri = metadata['jwks_uri']
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) throw new Error(`${uri} names no jwks_uri`)
  if (!fetching.allowed(jwksUri)) throw new Error(`${uri} names a jwks_uri without https`)
  return jwksUri
}
