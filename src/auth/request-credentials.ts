/** Authenticates a request by its Authorization header, its credential cookie, or both (docs/how-to/connect/cookie-sessions.md). */
import { takesHeader } from '../config/issuer-schema.ts'
import type { Config, IssuerConfig } from '../config/schema.ts'
import { cookieValues } from '../core/wire/cookies.ts'
import { makeIsFromTrustedPage, type PageRules } from '../core/wire/trusted-pages.ts'
import type { HeaderLines } from '../core/wire/headers.ts'
import { isRefusal, refuse, type Refusal } from '../core/reasons.ts'
import { looksLikeJwt, readUnverified } from '../jwt/unverified.ts'
import type { Authenticate, Authenticated } from './authenticate.ts'

export interface CredentialLines {
  readonly method: string
  readonly lines: HeaderLines
}

/** `connection` saves computing a digest. */
export type AuthenticateRequest = (
  request: CredentialLines,
  connection?: object,
) => Authenticated | Refusal | Promise<Authenticated | Refusal>

type CredentialConfig = Pick<Config, 'authentication' | 'listen' | 'cors'>

interface CookieCredential {
  readonly name: string
  readonly value: string
}

/** Null where no issuer has a credential cookie: the header is the only place then. */
export function makeAuthenticateRequest(authenticate: Authenticate, config: CredentialConfig): AuthenticateRequest | null {
  const names = credentialCookies(config)
  if (config.authentication.mode === 'off' || names.length === 0) return null
  const isFromTrustedPage = makeIsFromTrustedPage(pageRulesOf(config))

  /** The header decides the roles, the end and the revocation of a caller with both. */
  const ofOneUser = async (
    authorization: string | undefined,
    { name, value }: CookieCredential,
    connection: object | undefined,
  ): Promise<Authenticated | Refusal> => {
    const header = authorization === undefined ? null : await authenticate(authorization, connection, 'header')
    if (isRefusal(header)) return header
    const cookie = await authenticate(`Bearer ${value}`, connection, { cookie: name })
    if (isRefusal(cookie)) return cookie
    if (header === null) return { ...cookie, sentIn: 'cookie' }
    return header.principal.id === cookie.principal.id ? header : refuse('credentials-differ')
  }

  return ({ method, lines }, connection) => {
    const authorization = lines.get('authorization')?.[0]
    const cookie = credentialCookieOf(lines, names)
    if (isRefusal(cookie)) return cookie
    if (cookie === null) return authenticate(authorization, connection, 'header')
    // Before anything is verified: the answer must not tell another page whether the user is signed in.
    if (!isFromTrustedPage(method, lines)) return refuse('cookie-cross-site')
    return ofOneUser(authorization, cookie, connection)
  }
}

/** Null without one. Clients send one Cookie line (RFC 6265 §5.4), and proxies join those of HTTP/2 (RFC 9113 §8.2.3). */
function credentialCookieOf(lines: HeaderLines, names: readonly string[]): CookieCredential | null | Refusal {
  if ((lines.get('cookie')?.length ?? 0) > 1) return refuse('cookie-repeated')
  const [first = null, ...more] = names.flatMap((name) =>
    cookieValues(lines.get('cookie'), name).map((value) => ({ name, value })),
  )
  return more.length === 0 ? first : refuse('cookie-repeated')
}

export function credentialCookies({ authentication }: Pick<Config, 'authentication'>): readonly string[] {
  const names = Object.values(authentication.issuers).map(({ credential }) => credential.cookie)
  return [...new Set(names.filter((name) => name !== undefined))]
}

export function pageRulesOf({ listen, cors }: Pick<Config, 'listen' | 'cors'>): PageRules {
  // Without cors.credentials, pages of listed origins may call, but not with cookies.
  return { own: listen.publicOrigins, listed: cors.credentials ? cors.origins : [] }
}

/**
 * Headers with which a tool sends a token, as a caller does: in the Authorization header if its issuer accepts that, or else
 * as a page of a trusted origin sends the cookie.
 */
export function headersWith(token: string, config: CredentialConfig): Readonly<Record<string, string>> {
  const iss = readUnverified(token)?.claims['iss']
  const issuers = Object.values(config.authentication.issuers)
  const issuer = issuers.find((one) => (looksLikeJwt(token) ? one.issuer === iss : one.introspection !== undefined))
  return issuer === undefined ? { authorization: `Bearer ${token}` } : headersOf(token, issuer, config)
}

export function headersOf(
  token: string,
  { credential }: Pick<IssuerConfig, 'credential'>,
  config: Pick<Config, 'listen' | 'cors'>,
): Readonly<Record<string, string>> {
  if (takesHeader(credential) || credential.cookie === undefined) return { authorization: `Bearer ${token}` }
  const cookie = `${credential.cookie}=${token}`
  const { own, listed } = pageRulesOf(config)
  return own[0] === undefined
    ? { cookie, origin: listed[0] ?? '', 'sec-fetch-site': 'same-site' }
    : { cookie, origin: own[0], 'sec-fetch-site': 'same-origin' }
}

/** True if `next` accepts less than `before`: a request that it would refuse may be under way. */
export function acceptsLess(before: CredentialConfig, next: CredentialConfig, issuer: string): boolean {
  const [was, is] = [before.authentication.issuers[issuer]?.credential, next.authentication.issuers[issuer]?.credential]
  if (was === undefined || is === undefined) return was !== is
  if (takesHeader(was) && !takesHeader(is)) return true
  if (was.cookie === undefined) return false
  const [old, now] = [pageRulesOf(before), pageRulesOf(next)]
  const isSubset = (some: readonly string[], all: readonly string[]): boolean => some.every((one) => all.includes(one))
  return was.cookie !== is.cookie || !isSubset(old.own, now.own) || !isSubset(old.listed, [...now.own, ...now.listed])
}
