/** Says how a refused token differs from the configuration. For an operator's terminal only: it never has the token or its signature. */
import type { Config, IssuerConfig } from '../config/schema.ts'
import { valueAt } from '../core/json/pointer.ts'
import type { Reason } from '../core/reasons.ts'
import { timeIn, USUAL_TYPES, type Claims } from '../jwt/claims.ts'
import { looksLikeJwt, MAX_LENGTH, readUnverified } from '../jwt/unverified.ts'
import { audienceFits, lackedClaims } from './claim-rules.ts'

type Authentication = Config['authentication']

/** Refusals before any claim of the token is read, or by the issuer's answer. */
const NOT_BY_CLAIMS: ReadonlySet<Reason> = new Set(['scheme-not-bearer', 'keys-unavailable', 'identity-failed'])

/** One line for each claim or header parameter that `reason` depends on, beside the value in the configuration. */
export function tokenDifferences(token: string, reason: Reason, authentication: Authentication, now: number): readonly string[] {
  if (NOT_BY_CLAIMS.has(reason)) return []
  if (reason === 'token-too-long')
    return [`the token has ${token.length} characters, the limit is ${MAX_LENGTH - 'Bearer '.length}`]
  if (!looksLikeJwt(token)) {
    return [reason === 'token-malformed' ? 'the token is not a JWT, and no issuer has introspection' : 'the token is not a JWT']
  }
  const unverified = readUnverified(token)
  if (unverified === null) return ['the token cannot be decoded: it is encrypted, cut off or changed']
  const { header, claims } = unverified
  const issuers = issuersFor(claims, authentication)
  return [
    beside(
      'token',
      'iss',
      claims['iss'],
      issuers.map(({ issuer }) => issuer),
    ),
    ...audiencesBeside('token', claims, issuers),
    ...headerBeside(header, reason, issuers),
    ...othersBeside(claims, reason, issuers, now),
  ]
}

/** What a token with these claims has to change to be accepted, as far as the claims have it at all. */
export function claimDifferences(
  claims: Claims,
  issuer: IssuerConfig | undefined,
  authentication: Authentication,
): readonly string[] {
  const issuers = issuer === undefined ? Object.values(authentication.issuers) : [issuer]
  const { iss } = claims
  const isOther = iss !== undefined && issuers.every((one) => one.issuer !== iss)
  return [
    ...(isOther
      ? [
          beside(
            'claims',
            'iss',
            iss,
            issuers.map((one) => one.issuer),
          ),
        ]
      : []),
    ...issuers
      .filter((one) => issuer !== undefined && valueAt(claims, one.audienceClaim) !== undefined && !audienceFits(one, claims))
      .flatMap((one) => audiencesBeside('claims', claims, [one])),
  ]
}

/** `the claims have no "iss", "aud" or "exp"`, or null. */
export function missingClaims(what: 'claims have' | 'token has', claims: Claims, issuer: IssuerConfig): string | null {
  const names = lackedClaims(claims, issuer).map((pointer) => `"${nameOf(pointer)}"`)
  const last = names.pop()
  return last === undefined ? null : `the ${what} no ${names.length === 0 ? last : `${names.join(', ')} or ${last}`}`
}

/** The issuer of the token, or all of them. */
function issuersFor({ iss }: Claims, { issuers }: Authentication): readonly IssuerConfig[] {
  const all = Object.values(issuers)
  const own = all.filter(({ issuer }) => issuer === iss)
  return own.length === 0 ? all : own
}

function audiencesBeside(what: string, claims: Claims, issuers: readonly IssuerConfig[]): readonly string[] {
  const pointers = new Set(issuers.map(({ audienceClaim }) => audienceClaim))
  return Array.from(pointers, (pointer) => {
    const accepted = issuers.filter(({ audienceClaim }) => audienceClaim === pointer).flatMap(({ audiences }) => audiences)
    return beside(what, nameOf(pointer), valueAt(claims, pointer), accepted)
  })
}

function headerBeside(header: Claims, reason: Reason, issuers: readonly IssuerConfig[]): readonly string[] {
  const algorithm = beside(
    'token',
    'alg',
    header['alg'],
    issuers.flatMap(({ algorithms }) => algorithms ?? []),
  )
  switch (reason) {
    case 'token-type':
      return [
        beside(
          'token',
          'typ',
          header['typ'],
          issuers.flatMap(({ tokenTypes }) => tokenTypes ?? USUAL_TYPES),
        ),
      ]
    case 'algorithm-not-allowed':
      return [algorithm]
    case 'key-unknown':
    case 'signature-invalid':
      return [algorithm, `token kid ${shown(header['kid'])}`]
    default:
      return []
  }
}

function othersBeside(claims: Claims, reason: Reason, issuers: readonly IssuerConfig[], now: number): readonly string[] {
  const times = (...names: readonly string[]): readonly string[] =>
    names
      .filter((name) => claims[name] !== undefined)
      .map((name) => `token ${name} ${timeShown(claims[name])}, now: ${new Date(now).toISOString()}`)
  const [issuer] = issuers
  switch (reason) {
    case 'token-expired':
      return times('exp')
    case 'token-not-yet-valid':
      return times('nbf', 'iat')
    case 'token-too-old':
      return times('iat')
    case 'claim-missing':
    case 'user-id-invalid':
      return issuer === undefined ? [] : [missingClaims('token has', claims, issuer) ?? otherValues(reason, issuer)]
    default:
      return []
  }
}

function otherValues(reason: Reason, { claims, requiredClaims }: IssuerConfig): string {
  return reason === 'user-id-invalid'
    ? `token ${nameOf(claims.id)} is not a valid user id (claims.id)`
    : `a claim has another value or type than requiredClaims: ${Object.keys(requiredClaims).map(nameOf).join(', ')}`
}

/** Both values in quotes, as `iss` differs most often only in a trailing slash. */
function beside(what: string, name: string, value: unknown, configured: readonly string[]): string {
  return `${what} ${name} ${shown(value)}, configured: ${shown([...new Set(configured)])}`
}

const MOST_NAMES = 8
const MOST_LENGTH = 120

/** JSON.stringify escapes line ends; the terminal escapes what else a token may have. */
function shown(value: unknown): string {
  if (value === undefined) return 'missing'
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (values.length === 0) return 'none'
  if (!values.every((one) => typeof one === 'string')) return 'of another type'
  const quoted = values
    .slice(0, MOST_NAMES)
    .map((one) => JSON.stringify(one.length > MOST_LENGTH ? `${one.slice(0, MOST_LENGTH)}…` : one))
  return [...quoted, ...(values.length > MOST_NAMES ? [`${values.length - MOST_NAMES} more`] : [])].join(', ')
}

function timeShown(value: unknown): string {
  const time = timeIn(value)
  return time === undefined ? 'of another type' : new Date(time).toISOString()
}

function nameOf(pointer: string): string {
  return /^\/[^/~]+$/.test(pointer) ? pointer.slice(1) : pointer
}
