/** Who is asking the self-hosted agent: verified from the forwarded `Authorization` header, once per request. */
import { createRemoteJWKSet, errors, jwtVerify, type JWTPayload } from 'jose'

/** What the agent's code reads; it never sees the token. */
export interface AuthUser {
  readonly user_id: string
  readonly role?: string
  readonly permissions: readonly string[]
}

/** The caller showed no credential, or not a good one. */
export class Unauthorized extends Error {}

export interface Trust {
  /** Whose tokens count. */
  readonly issuer: string
  /** For whom they have to be issued. */
  readonly audience: string
  /** Where the issuer's keys are; by default its discovery document says so. */
  readonly jwksUri?: string
}

/**
 * Makes the check that stands before every run.
 * @returns a function from the `Authorization` header to the user. It throws `Unauthorized` for a caller who shows
 *   nothing good, and any other error if the issuer's keys can't be had
 */
export function userReader({ issuer, audience, jwksUri }: Trust): (authorization: string | undefined) => Promise<AuthUser> {
  let keys: ReturnType<typeof createRemoteJWKSet> | undefined
  return async (authorization) => {
    if (authorization === undefined) throw new Unauthorized('the Authorization header is missing')
    if (!authorization.startsWith('Bearer ')) throw new Unauthorized('the Authorization header must start with "Bearer "')
    // Not at start: the issuer may come up later than the agent.
    keys ??= createRemoteJWKSet(new URL(jwksUri ?? (await discoverKeys(issuer))))
    try {
      const { payload } = await jwtVerify(authorization.slice('Bearer '.length), keys, {
        issuer,
        audience,
        algorithms: ['RS256'],
        requiredClaims: ['sub', 'exp'],
      })
      return userOf(payload)
    } catch (error) {
      if (isAboutTheToken(error)) throw new Unauthorized('the token is not valid', { cause: error })
      throw error
    }
  }
}

async function discoverKeys(issuer: string): Promise<string> {
  const response = await fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  if (!response.ok) throw new Error(`discovery at ${issuer} answered ${response.status}`)
  const found = (await response.json()) as { issuer: string; jwks_uri: string }
  if (found.issuer !== issuer) throw new Error(`discovery at ${issuer} speaks for ${found.issuer}`)
  return found.jwks_uri
}

function userOf({ sub, role, permissions }: JWTPayload & { role?: unknown; permissions?: unknown }): AuthUser {
  return {
    user_id: String(sub),
    ...(typeof role === 'string' && { role }),
    permissions: Array.isArray(permissions) ? permissions.filter((entry) => typeof entry === 'string') : [],
  }
}

/** Tells a bad token from keys that couldn't be fetched. */
function isAboutTheToken(error: unknown): boolean {
  if (!(error instanceof errors.JOSEError)) return false
  return /^ERR_(JWT|JWS|JWKS_NO_MATCHING_KEY|JOSE_ALG_NOT_ALLOWED|JOSE_NOT_SUPPORTED)/.test(error.code)
}
