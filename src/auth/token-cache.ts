/**
 * What was found of credentials, so that a user who asks a hundred times is verified once. An entry is good for one whole
 * credential, and never past its end (fast-jwt CVE-2026-35039: a cache keyed by a part of the token gave one user's claims to
 * another).
 */
import { hash } from 'node:crypto'

export interface Lasting {
  /** Milliseconds since the epoch, from which on it is not to be used. */
  readonly until: number
}

export interface TokenCache<Found extends Lasting> {
  /** @param now milliseconds since the epoch */
  get(credential: string, now: number): Found | null
  put(credential: string, found: Found): void
}

/**
 * Makes it.
 * @param most how many are remembered: the one that was used least recently goes first
 */
export function makeTokenCache<Found extends Lasting>(most: number): TokenCache<Found> {
  const entries = new Map<string, Found>()
  return {
    get(credential, now) {
      const key = digestOf(credential)
      const found = entries.get(key)
      if (found === undefined) return null
      entries.delete(key)
      if (now >= found.until) return null
      entries.set(key, found)
      return found
    },
    put(credential, found) {
      if (most === 0) return
      const key = digestOf(credential)
      entries.delete(key)
      entries.set(key, found)
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
