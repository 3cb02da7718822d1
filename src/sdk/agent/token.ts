/** Reads the one token of a request, and verifies it by rules that are fixed before (RFC 8725), with the gateway's own parser. */
import { includesAudience, type Claims, typeFits } from '../../jwt/claims.ts'
import { readUnverified, tokenIn } from '../../jwt/unverified.ts'
import { verifySigned } from '../../jwt/verify.ts'
import { KeysUnavailable, NotAuthenticated } from './errors.ts'
import type { AgentKeys, KeyRules } from './keys.ts'

/** An explicit type keeps one kind of token from being used as another (RFC 8725 §3.11). */
export const ASSERTION_TYPE = 'threadwarden+jwt'

export interface TokenRules extends KeyRules {
  readonly audiences: readonly string[]
  readonly kind: 'token' | 'assertion'
  /** The accepted `typ`, as tokenTypeName writes it; undefined for the types of access tokens. */
  readonly tokenTypes?: readonly string[] | undefined
  readonly scope?: string | undefined
}

/** @throws {NotAuthenticated} for an invalid token, {KeysUnavailable} if the keys cannot be fetched */
export async function verifyToken(token: string, rules: TokenRules, keys: AgentKeys): Promise<Claims> {
  const unverified = readUnverified(token)
  if (unverified === null) throw invalid('token-malformed')
  const { header } = unverified
  if (!hasType(header['typ'], rules)) throw invalid('token-type')
  if (unverified.claims['iss'] !== rules.issuer) throw invalid('issuer-unknown')
  const result = await verifySigned(token, header, rules.algorithms, keys.source)
  if (result === 'keys-unavailable') throw new KeysUnavailable(keys.lastFailure())
  if (typeof result === 'string') throw invalid(result)
  const { claims, isExpired } = result
  if (!includesAudience(claims['aud'], rules.audiences)) throw invalid('audience-mismatch')
  if (rules.scope !== undefined && claims['scope'] !== rules.scope) throw invalid('scope-mismatch')
  if (isExpired) throw new NotAuthenticated('credential-expired', 'token-expired')
  return claims
}

function hasType(typ: unknown, { kind, tokenTypes }: TokenRules): boolean {
  return kind === 'assertion' ? typ === ASSERTION_TYPE : typeFits(typ, tokenTypes)
}

function invalid(reason: string): NotAuthenticated {
  return new NotAuthenticated('credential-invalid', reason)
}

/** `fetch` headers, or `request.headersDistinct` of node:http: `request.headers` hides a second `Authorization` header. */
export type HeadersLike =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined; readonly get?: string | readonly string[] | undefined }

/** `name` is in lower case. @throws {NotAuthenticated} if the header is missing, repeated or malformed */
export function credentialIn(headers: HeadersLike, name: string): string {
  const [value, ...more] = valuesOf(headers, name)
  if (value === undefined) throw new NotAuthenticated('credential-missing')
  if (more.length > 0) throw new NotAuthenticated('credential-invalid', 'header-repeated')
  const read = tokenIn(value, name === 'authorization' ? 'Bearer ' : '')
  if (typeof read === 'string') throw new NotAuthenticated('credential-invalid', read)
  return read.token
}

function valuesOf(headers: HeadersLike, name: string): readonly string[] {
  // Callers in plain JavaScript may pass anything.
  if (typeof (headers as unknown) !== 'object' || (headers as unknown) === null)
    throw new TypeError('headers: must be those of the request')
  if (typeof headers.get === 'function') {
    const value = headers.get(name)
    return value === null ? [] : [value]
  }
  return Object.entries(headers as Readonly<Record<string, unknown>>)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => value)
    .filter((value) => typeof value === 'string')
}
