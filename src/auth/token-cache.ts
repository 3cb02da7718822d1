/**
 * Tokens that were verified, so that a user who asks a hundred times is verified once. An entry is good for one whole token
 * under one set of keys, and never past the token's end (fast-jwt CVE-2026-35039: a cache keyed by a part of the token gave
 * one user's claims to another).
 */
import { createHash } from 'node:crypto'
import type { Verified } from './claim-rules.ts'

/** The cache. */
export interface TokenCache {
  /**
   * @param generation changes whenever what was found before is to be forgotten
   * @param now milliseconds since the epoch
   */
  get(token: string, generation: string, now: number): Verified | null
  /** @param until milliseconds since the epoch, after which it is not to be used */
  put(token: string, generation: string, verified: Verified, until: number): void
}

interface Entry {
  readonly generation: string
  readonly verified: Verified
  readonly until: number
}

/**
 * Makes it.
 * @param most how many tokens are remembered: the one that was used least recently goes first
 */
export function makeTokenCache(most: number): TokenCache {
  const entries = new Map<string, Entry>()
  return {
    get(token, generation, now) {
      const key = digestOf(token)
      const entry = entries.get(key)
      if (entry === undefined) return null
      entries.delete(key)
      if (entry.generation !== generation || now >= entry.until) return null
      entries.set(key, entry)
      return entry.verified
    },
    put(token, generation, verified, until) {
      if (most === 0) return
      const key = digestOf(token)
      entries.delete(key)
      entries.set(key, { generation, verified, until })
      if (entries.size <= most) return
      const oldest = entries.keys().next()
      if (!oldest.done) entries.delete(oldest.value)
    },
  }
}

/** By what a token is known where it is remembered: tokens themselves are not kept. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('base64')
}
