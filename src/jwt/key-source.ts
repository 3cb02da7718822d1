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
  /** For a source of the same keys that takes the place of this one. Null for keys that are not fetched. */
  readonly known: KnownKeys | null
  /** Fetches keys that are too old. Called about every second, so that no request waits for a fetch. */
  renew(): void
}

/** The fetched keys of one place. Sources that succeed each other share them: none trusts a key that another saw withdrawn. */
export interface KnownKeys {
  keys: readonly VerificationKey[] | null
  /** Milliseconds since the epoch. */
  fetchedAt: number
  version: number
  failing: boolean
  /** The number of the last fetch that has begun, and of the last whose keys these are. */
  begun: number
  answered: number
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
    known: null,
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
  /** Of another source of the same place. It is used until the first fetch, which `renew` begins at once. */
  readonly known?: KnownKeys | null
  readonly clock: () => number
  readonly onFailure: (message: string, cause: unknown) => void
}

export function remoteKeys(options: RemoteKeys): KeySource {
  const { clock } = options
  const known = options.known ?? { keys: null, fetchedAt: Infinity, version: 0, failing: false, begun: 0, answered: 0 }
  let hasFetched = false
  let pauseUntil = -Infinity
  let running: Promise<void> | null = null

  const trustedUntil = (): number =>
    known.keys === null ? -Infinity : known.fetchedAt + Math.max(options.cacheFor, options.staleIfError)
  const refresh = (): Promise<void> => {
    if (running !== null) return running
    // A longer rest than the full pause means that the clock was set back.
    const pause = pauseUntil - clock()
    if (pause > 0 && pause <= COOL_DOWN_MS) return Promise.resolve()
    known.begun += 1
    const mine = known.begun
    // Another source may have asked later and have its answer already.
    const isOutdated = (): boolean => mine < known.answered
    running = fetchKeys(options)
      .then((keys) => {
        hasFetched = true
        if (isOutdated()) return
        const version = known.version + 1
        Object.assign(known, { keys, fetchedAt: clock(), version, failing: false, answered: mine } satisfies Partial<KnownKeys>)
      })
      .catch((error: unknown) => {
        if (!isOutdated()) known.failing = true
        options.onFailure(error instanceof Error ? error.message : String(error), error)
      })
      .finally(() => {
        pauseUntil = clock() + COOL_DOWN_MS
        running = null
      })
    return running
  }
  // Where the clock was set back, the age is unknown.
  const isOld = (): boolean => clock() < known.fetchedAt || clock() - known.fetchedAt > options.cacheFor
  const isTrusted = (): boolean => clock() >= known.fetchedAt && clock() <= trustedUntil()
  const candidates = (kid: string | undefined): readonly VerificationKey[] =>
    (known.keys ?? []).filter((key) => kid === undefined || key.kid === kid)

  // A source that begins with keys too old for it has none: /readyz must say so.
  const unusable = isTrusted() ? null : known.keys
  const isReady = (): boolean => known.keys !== null && known.keys !== unusable

  return {
    known,
    get version() {
      return known.version
    },
    get trustedFrom() {
      return known.fetchedAt
    },
    get trustedUntil() {
      return trustedUntil()
    },
    async find(kid: string | undefined) {
      const old = isOld()
      if (!isTrusted() || candidates(kid).length === 0 || (old && options.whenOld === 'wait')) await refresh()
      else if (old) void refresh()
      if (!isTrusted()) return 'unavailable'
      const found = candidates(kid)
      // Only the issuer knows whether such a key exists, and it does not answer.
      return found.length === 0 && known.failing ? 'unavailable' : found
    },
    ready: isReady,
    stale: () => known.failing && isReady(),
    renew: () => {
      if (!hasFetched || known.failing || isOld()) void refresh()
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
