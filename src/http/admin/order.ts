/** Reads the body of `POST /revocations`: one token, or a user's tokens. */
import { makeJsonReader, type Json } from '../../core/json/read.ts'
import { isRefusal, refuse, type Refusal } from '../../core/reasons.ts'
import type { Revoked } from '../../store/port.ts'
import { isTokenId, timeOf, userFault } from '../../operator/revocation-form.ts'

export interface Order {
  readonly what: Revoked
  /** For a user: tokens issued before this time, in milliseconds since the epoch; null for all. */
  readonly before: number | null
}

/** A refusal whose text tells an operator what to write; it quotes nothing of the body. */
export type OrderRefusal = Refusal & { readonly text: string }

const FORM = 'Write {"tokenId": "…"}, or {"user": "issuer:subject"} with or without "before": "2026-01-31T12:00:00Z".'

/**
 * Reads a body strictly: an operator may rely on an unknown key.
 * @param body undefined if there was none
 * @param issuers the issuer keys of the configuration
 */
export function readOrder(body: Buffer | undefined, issuers: readonly string[]): Order | OrderRefusal {
  const reader = makeJsonReader()
  const reading = reader.push(body ?? new Uint8Array()) ?? reader.end()
  if (isRefusal(reading)) return { ...reading, text: FORM }
  const { tokenId, user, before, ...others } = reading.value
  if (Object.keys(others).length > 0 || (tokenId === undefined) === (user === undefined)) return wrong(FORM)
  if (user === undefined) return tokenOrder(tokenId, before)
  return userOrder(user, before, issuers)
}

function tokenOrder(tokenId: Json | undefined, before: Json | undefined): Order | OrderRefusal {
  if (before !== undefined) return wrong(FORM)
  if (typeof tokenId !== 'string' || !isTokenId(tokenId)) return wrong('tokenId is the jti of a token: 1 to 1024 characters.')
  return { what: { tokenId }, before: null }
}

function userOrder(user: Json, before: Json | undefined, issuers: readonly string[]): Order | OrderRefusal {
  const fault = typeof user === 'string' ? userFault(user, issuers) : 'form'
  if (typeof user !== 'string' || fault === 'form') return wrong('user is a user id: issuer:subject.')
  if (fault !== null) return wrong(`The configuration has no issuer of this key. It has: ${issuers.join(', ')}.`)
  if (before === undefined) return { what: { userId: user }, before: null }
  const time = typeof before === 'string' ? timeOf(before) : null
  return time === null ? wrong('before is a time with its zone: 2026-01-31T12:00:00Z.') : { what: { userId: user }, before: time }
}

function wrong(text: string): OrderRefusal {
  return { ...refuse('body-unexpected'), text }
}
