/**
 * Where the keys come from. Only the configured address is asked, or the one that the metadata of the configured issuer names;
 * never one that a token names (RFC 8725 §3.10). Tokens decide nothing about how often: one fetch at a time, a pause after each.
 */
import { KeysUnavailable } from './errors.ts'
import type { PublicKey } from './key.ts'
import type { Claims } from './user.ts'

/** Keys of one issuer. */
export interface KeySource {
  /**
   * The keys that may have signed a token.
   * @param kid the token's key id, if it has one
   * @throws {KeysUnavailable} where the issuer can't be asked, and what is known names no such key
   */
  find(kid: string | undefined): Promise<readonly PublicKey[]>
}

/** The part of `fetch` that is used. */
export type Fetch = (
  url: string,
  init: { readonly headers: Record<string, string>; readonly redirect: 'error'; readonly signal: AbortSignal },
) => Promise<Response>

/** Where keys are fetched from: the key set, or the issuer whose metadata names it (OpenID Connect Discovery 1.0 §4). */
export type KeyAddress = { readonly jwksUri: string } | { readonly issuer: string }

/** Bounds on what an issuer may send, and on how long it may take. */
const MAX_DOCUMENT_BYTES = 512 * 1024
const MAX_KEYS = 100
const FETCH_TIMEOUT_MS = 5000
/** After a fetch, successful or not, none is made for this long, whatever key ids come along. */
const COOL_DOWN_MS = 5000
/** A key set older than this is fetched anew before it is used: a key that was taken out of it works no longer than that. */
const FRESH_MS = 600_000
/** While that fails, the last good one counts for a day. */
const STALE_MS = 86_400_000

/** Keys that are given. One without an id may have signed any token. */
export function fixedKeys(keys: readonly PublicKey[]): KeySource {
  return { find: async (kid) => keys.filter((key) => kid === undefined || key.kid === undefined || key.kid === kid) }
}

/**
 * Keys that are fetched when they are wanted.
 * @param at the address
 * @param read makes a key of a member of the set, null if it can serve nothing
 * @param fetch fetches
 */
export function remoteKeys(at: KeyAddress, read: (jwk: unknown) => PublicKey | null, fetch: Fetch): KeySource {
  let keys: readonly PublicKey[] = []
  let fetchedAt = -Infinity
  let pauseUntil = -Infinity
  let failure: { readonly cause: unknown } | null = null
  let running: Promise<void> | null = null

  const load = async (): Promise<void> => {
    try {
      keys = await fetchKeys(at, read, fetch)
      fetchedAt = Date.now()
      failure = null
    } catch (cause) {
      failure = { cause }
    } finally {
      pauseUntil = Date.now() + COOL_DOWN_MS
      running = null
    }
  }
  const refresh = (): Promise<void> => {
    if (running === null && Date.now() < pauseUntil) return Promise.resolve()
    running ??= load()
    return running
  }
  const age = (): number => Date.now() - fetchedAt
  const candidates = (kid: string | undefined): readonly PublicKey[] =>
    age() > STALE_MS ? [] : keys.filter((key) => kid === undefined || key.kid === kid)

  return {
    async find(kid) {
      if (age() > FRESH_MS || candidates(kid).length === 0) await refresh()
      const found = candidates(kid)
      // Whether such a key exists is for the issuer to say, and it says nothing.
      if (found.length === 0 && failure !== null) throw new KeysUnavailable(failure.cause)
      return found
    },
  }
}

/** True for https, and for http to this machine (RFC 5735 §3, RFC 4291 §2.5.3, RFC 6761 §6.3). */
export function isFetchable(text: unknown): text is string {
  if (typeof text !== 'string' || !URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'https:' || (protocol === 'http:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname))
}

async function fetchKeys(at: KeyAddress, read: (jwk: unknown) => PublicKey | null, fetch: Fetch): Promise<readonly PublicKey[]> {
  const uri = 'jwksUri' in at ? at.jwksUri : await discover(at.issuer, fetch)
  const members = (await fetchDocument(uri, fetch))['keys']
  if (!Array.isArray(members)) throw new Error(`${uri} is no key set: it has no "keys"`)
  if (members.length > MAX_KEYS) throw new Error(`${uri} holds ${members.length} keys: more than ${MAX_KEYS}`)
  const keys = members.map(read).filter((key) => key !== null)
  if (keys.length === 0) throw new Error(`${uri} holds no key that fits the algorithms`)
  return keys
}

async function discover(issuer: string, fetch: Fetch): Promise<string> {
  const uri = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const metadata = await fetchDocument(uri, fetch)
  // OpenID Connect Discovery 1.0 §4.3: the issuer must be the one that was asked for, to the letter.
  if (metadata['issuer'] !== issuer) throw new Error(`${uri} speaks for another issuer`)
  const jwksUri = metadata['jwks_uri']
  if (!isFetchable(jwksUri)) throw new Error(`${uri} names no jwks_uri with https`)
  return jwksUri
}

async function fetchDocument(uri: string, fetch: Fetch): Promise<Claims> {
  const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS)
  const answer = await fetch(uri, { headers: { accept: 'application/json' }, redirect: 'error', signal })
  if (answer.status !== 200) {
    await answer.body?.cancel()
    throw new Error(`${uri} answered ${answer.status}`)
  }
  const value: unknown = JSON.parse(await textOf(uri, answer))
  if (typeof value !== 'object' || value === null) throw new Error(`${uri} is no JSON object`)
  return value as Claims
}

/** The body, counted after it was unpacked; leaving the loop ends the rest. */
async function textOf(uri: string, { body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > MAX_DOCUMENT_BYTES) throw new Error(`${uri} is larger than ${MAX_DOCUMENT_BYTES} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
