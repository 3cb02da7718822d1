/**
 * Caches verified credentials, so that each is verified once. An entry is valid for one whole credential, and never past its end.
 * In fast-jwt CVE-2026-35039, a cache keyed by a part of the token gave one user's claims to another.
 */
import { hash } from 'node:crypto'

export interface Lasting {
  /** Milliseconds since the epoch; from then on the entry must not be used. */
  readonly until: number
}

export interface TokenCache<Found extends Lasting> {
  /** @param now milliseconds since the epoch */
  get(credential: string, now: number): Found | null
  put(credential: string, found: Found): void
}

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

/** The cache key of a token: tokens themselves are not kept. */
export function digestOf(token: string): string {
  return hash('sha256', token, 'base64')
}
