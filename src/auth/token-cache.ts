/** Caches credentials, keyed by the whole one: in fast-jwt CVE-2026-35039, a key of a part gave one user another's claims. */
import { hash } from 'node:crypto'

export interface Lasting {
  /** Milliseconds since the epoch. From then on the entry must not be used. */
  readonly until: number
}

export interface TokenCache<Found extends Lasting> {
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

/** Tokens themselves are not kept. */
export function digestOf(token: string): string {
  return hash('sha256', token, 'base64')
}
