/** The caller of a simulated request: by a token that is verified as in the gateway, by claims that are trusted, or anonymous. */
import { makeAuthenticate } from '../../auth/authenticate.ts'
import { userOf } from '../../auth/claim-rules.ts'
import { makeIssuers } from '../../auth/issuer.ts'
import { claimDifferences, missingClaims, tokenDifferences } from '../../auth/refused-token.ts'
import type { Config, IssuerConfig } from '../../config/schema.ts'
import type { JsonObject } from '../../core/json/read.ts'
import { ANONYMOUS, EVERYBODY, userFromClaims, type Principal } from '../../core/decide/principal.ts'
import { isRefusal, refuse, type Reason, type Refusal } from '../../core/reasons.ts'
import { Sources } from '../../document/sources.ts'
import { timeIn } from '../../jwt/claims.ts'

export type Presented =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'token'; readonly token: string }
  /** Claims of the issuer with this key, or of the issuer that their `iss` names. */
  | { readonly kind: 'claims'; readonly claims: JsonObject; readonly issuer: string | undefined }

export interface Caller {
  readonly principal: Principal | Refusal
  readonly notes: readonly string[]
}

/** Verifies a token in full, with the issuer's keys or introspection, but checks no revocations. */
export async function callerOf(presented: Presented, { authentication }: Config, clock: () => number): Promise<Caller> {
  const { mode } = authentication
  if (mode === 'off') {
    const unread =
      presented.kind === 'nothing' ? [] : ['authentication.mode is off: no credential is read, all callers are one user']
    return { principal: EVERYBODY, notes: unread }
  }
  switch (presented.kind) {
    case 'nothing':
      return { principal: mode === 'optional' ? ANONYMOUS : refuse('credential-missing'), notes: [] }
    case 'token':
      return verified(presented.token, authentication, clock)
    case 'claims':
      return asGiven(presented.claims, presented.issuer, authentication, clock())
  }
}

async function verified(token: string, authentication: Config['authentication'], clock: () => number): Promise<Caller> {
  const notes: string[] = []
  const issuers = makeIssuers(authentication, {
    sources: new Sources(),
    clock,
    onFetchFailure: (issuer, message) => void notes.push(`the request to the issuer ${issuer} failed: ${message}`),
  })
  const authenticate = makeAuthenticate({
    mode: authentication.mode,
    issuers,
    tokenCache: 0,
    clock,
    onClientToken: (userId) => void notes.push(`the token belongs to the client ${userId}: no user signed in`),
  })
  const answer = await Promise.resolve(authenticate(`Bearer ${token}`)).catch(() => refuse('identity-failed'))
  if (!isRefusal(answer)) return { principal: answer.principal, notes }
  return { principal: answer, notes: [...notes, ...tokenDifferences(token, answer.reason, authentication, clock())] }
}

function asGiven(claims: JsonObject, named: string | undefined, authentication: Config['authentication'], now: number): Caller {
  const found = issuerOfClaims({ claims, issuer: named }, authentication)
  if (found === undefined) {
    return { principal: refuse('issuer-unknown'), notes: claimDifferences(claims, undefined, authentication) }
  }
  const [key, issuer] = found
  const principal = userFromClaims(key, claims, issuer.claims)
  const fault = isRefusal(principal)
    ? null
    : faultOf(key, issuer, claims, now, issuer.clockTolerance ?? authentication.clockTolerance)
  const missing = missingClaims('claims have', claims, issuer)
  const notes = [
    'the claims are used as given and not verified',
    ...(missing === null ? [] : [missing]),
    ...claimDifferences(claims, issuer, authentication),
  ]
  if (fault !== null) notes.push(`a token with only these claims is refused: ${fault}`)
  return { principal, notes }
}

export function issuerOfClaims(
  { claims, issuer: named }: Pick<Extract<Presented, { kind: 'claims' }>, 'claims' | 'issuer'>,
  { issuers }: Config['authentication'],
): readonly [key: string, issuer: IssuerConfig] | undefined {
  return Object.entries(issuers).find(([key, { issuer }]) => (named === undefined ? issuer === claims['iss'] : key === named))
}

/** Why a token with these claims would be refused, or null. */
function faultOf(key: string, issuer: IssuerConfig, claims: JsonObject, now: number, tolerance: number): Reason | null {
  if (claims['iss'] !== issuer.issuer) return 'issuer-unknown'
  const held = userOf(key, issuer, claims, now, tolerance)
  if (isRefusal(held)) return held.reason
  const end = timeIn(claims['exp'])
  if (end === undefined) return 'claim-missing'
  return end + tolerance <= now ? 'token-expired' : null
}
