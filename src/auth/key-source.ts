/** Where an issuer's keys come from. Only configured addresses are ever fetched, and never one that a token names. */
import { request } from 'undici'
import { isFetchable } from '../core/addresses.ts'
import type { VerificationKey } from './key.ts'

/** Keys of one issuer. */
export interface KeySource {
  /**
   * The keys that may have signed a token.
   * @param kid the token's key id, if it has one
   * @returns the candidates, `unavailable` while the issuer can't be asked and nothing is known
   */
  find(kid: string | undefined): Promise<readonly VerificationKey[] | 'unavailable'>
  /** True once keys are known. */
  ready(): boolean
}

/** Bounds on what an issuer may send. */
const MAX_DOCUMENT_BYTES = 512 * 1024
const MAX_KEYS = 100
const FETCH_TIMEOUT_MS = 5000
/** After a fetch, successful or not, none is made for this long, whatever key ids come along. */
const COOL_DOWN_MS = 5000
/** Keys that could not be fetched anew for this long are no longer trusted. */
const STALE_MS = 86_400_000
/** Keys older than this are fetched anew in the background. */
const FRESH_MS = 600_000

/** Keys that are in the configuration. */
export function fixedKeys(keys: readonly VerificationKey[]): KeySource {
  return { find: () => Promise.resolve(keys), ready: () => true }
}

/** What a remote key source needs. */
export interface RemoteKeys {
  /** The address of the key set, or the issuer whose metadata names it (OpenID Connect Discovery 1.0 §4). */
  readonly at: { readonly jwksUri: string } | { readonly issuer: string }
  /** Makes a key of a member of the set, null if it can serve nothing. */
  readonly read: (jwk: unknown) => VerificationKey | null
  readonly clock: () => number
  /** Told of every fetch that failed. */
  readonly onFailure: (message: string) => void
}

/** Keys that are fetched: one fetch at a time, a pause after each, and the last good ones stay. */
export function remoteKeys(options: RemoteKeys): KeySource {
  let keys: readonly VerificationKey[] | null = null
  let fetchedAt = -Infinity
  let pauseUntil = -Infinity
  let running: Promise<void> | null = null

  const refresh = (): Promise<void> => {
    if (running !== null) return running
    if (options.clock() < pauseUntil) return Promise.resolve()
    running = fetchKeys(options)
      .then((fetched) => {
        keys = fetched
        fetchedAt = options.clock()
      })
      .catch((error: unknown) => {
        options.onFailure(error instanceof Error ? error.message : String(error))
      })
      .finally(() => {
        pauseUntil = options.clock() + COOL_DOWN_MS
        running = null
      })
    return running
  }
  const candidates = (kid: string | undefined): readonly VerificationKey[] =>
    (keys ?? []).filter((key) => kid === undefined || key.kid === kid)

  return {
    async find(kid) {
      if (keys === null || options.clock() - fetchedAt > STALE_MS) await refresh()
      if (keys === null || options.clock() - fetchedAt > STALE_MS) return 'unavailable'
      if (candidates(kid).length === 0) await refresh()
      else if (options.clock() - fetchedAt > FRESH_MS) void refresh()
      return candidates(kid)
    },
    ready: () => keys !== null,
  }
}

async function fetchKeys(options: RemoteKeys): Promise<readonly VerificationKey[]> {
  const uri = 'jwksUri' in options.at ? options.at.jwksUri : await discover(options.at.issuer)
  const set = await fetchDocument(uri)
  const members = set['keys']
  if (!Array.isArray(members)) throw new Error(`${uri} is no key set: it has no "keys"`)
  if (members.length > MAX_KEYS) throw new Error(`${uri} holds ${members.length} keys: more than ${MAX_KEYS}`)
  const keys = members.map(options.read).filter((key) => key !== null)
  if (keys.length === 0) throw new Error(`${uri} holds no key that fits the configured algorithms`)
  return keys
}

async function discover(issuer: string): Promise<string> {
  const uri = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const metadata = await fetchDocument(uri)
  // OpenID Connect Discovery 1.0 §4.3: the issuer must be the one that was asked for, to the letter.
  if (metadata['issuer'] !== issuer) throw new Error(`${uri} speaks for another issuer: ${String(metadata['issuer'])}`)
  const jwksUri = metadata['jwks_uri']
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) throw new Error(`${uri} names no jwks_uri`)
  if (!isFetchable(jwksUri)) throw new Error(`${uri} names a jwks_uri without https`)
  return jwksUri
}

async function fetchDocument(uri: string): Promise<Readonly<Record<string, unknown>>> {
  // undici follows no redirect unless told to: a 3xx is a failure here.
  const answer = await request(uri, { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) })
  if (answer.statusCode !== 200) {
    await answer.body.dump()
    throw new Error(`${uri} answered ${answer.statusCode}`)
  }
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_DOCUMENT_BYTES) throw new Error(`${uri} is larger than ${MAX_DOCUMENT_BYTES} bytes`)
    chunks.push(chunk)
  }
  const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
  if (typeof value !== 'object' || value === null) throw new Error(`${uri} is no JSON object`)
  return value as Readonly<Record<string, unknown>>
}
