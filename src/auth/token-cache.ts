/**
 * What was found of credentials, so that a user who asks a hundred times is verified once. An entry is good for one whole
 * credential, and never past its end (fast-jwt CVE-2026-35039: a cache keyed by a part of the token gave one user's claims to
 * another).
 */
import { hash } from 'node:crypto'

/** The cache. */
export interface TokenCache<Found> {
  /** @param now milliseconds since the epoch */
  get(credential: string, now: number): Found | null
  /** @param until milliseconds since the epoch, after which it is not to be used */
  put(credential: string, found: Found, until: number): void
}

/**
 * Makes it.
 * @param most how many are remembered: the one that was used least recently goes first
 */
export function makeTokenCache<Found>(most: number): TokenCache<Found> {
  const entries = new Map<string, { readonly found: Found; readonly until: number }>()
  return {
    get(credential, now) {
      const key = digestOf(credential)
      const entry = entries.get(key)
      if (entry === undefined) return null
      entries.delete(key)
      if (now >= entry.until) return null
      entries.set(key, entry)
      return entry.found
    },
    put(credential, found, until) {
      if (most === 0) return
      const key = digestOf(credential)
      entries.delete(key)
      entries.set(key, { found, until })
      if (entries.size <= most) return
      const oldest = entries.keys().next()
      if (!oldest.done) entries.delete(oldest.value)
    },
  }
}

/** By what a token is known where it is remembered: tokens themselves are not kept. */
export function digestOf(token: string): string {
  return hash('sha256', token, 'base64')
}
