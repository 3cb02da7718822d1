/** Sign-in of operators by OpenID Connect: authorization code flow with PKCE (OpenID Connect Core 1.0 §3.1, RFC 7636). */
import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { valueAt } from '../../../core/json/pointer.ts'
import { cookieOf, type Operator } from './sessions.ts'

export interface OpenIdSettings {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: string | undefined
  readonly scopes: string
  /** JSON pointer into the ID token. */
  readonly rolesClaim: string
  readonly operators: readonly string[]
  readonly viewers: readonly string[]
}

export interface OpenId {
  /** @returns the address at the issuer to which the browser goes. @throws Error if the issuer does not answer */
  begin(reply: FastifyReply): Promise<string>
  /** @throws Error for an answer of the issuer that fails any check */
  finish(request: FastifyRequest, reply: FastifyReply): Promise<Operator | 'no-role'>
}

interface Pending {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly endsAt: number
}

const LONGEST_MS = 10 * 60_000
/** So many that no caller can push out the sign-ins of others soon; each takes some hundred bytes. */
const MOST = 10_000
const ISSUER_TIMEOUT_S = 10

/** @param url the origin of the console, of which the redirect address is a part */
export function makeOpenId(settings: OpenIdSettings, url: string, clock: () => number): OpenId {
  const { name: cookie, options } = cookieOf('threadwarden-sign-in', url.startsWith('https:'))
  const pending = new Map<string, Pending>()
  const library = () => import('openid-client')
  type Found = Awaited<ReturnType<Awaited<ReturnType<typeof library>>['discovery']>>
  let found: Promise<Found> | null = null

  const discover = async (): Promise<Found> => {
    // oxlint-disable-next-line typescript/no-deprecated -- marked to stand out: the schema allows http for loopback addresses only
    const { discovery, allowInsecureRequests, ClientSecretBasic, None } = await library()
    const { issuer, clientId, clientSecret } = settings
    const authentication = clientSecret === undefined ? None() : ClientSecretBasic(clientSecret)
    const execute = issuer.startsWith('http:') ? [allowInsecureRequests] : []
    return discovery(new URL(issuer), clientId, {}, authentication, { execute, timeout: ISSUER_TIMEOUT_S })
  }
  const client = async (): Promise<Found> => {
    found ??= discover()
    try {
      return await found
    } catch (error) {
      found = null
      throw error
    }
  }

  // Only the query is the issuer's.
  const answerAddress = (target: string): URL => new URL(`${url}/console/callback${target.slice(target.indexOf('?'))}`)

  return {
    async begin(reply) {
      const issuer = await client()
      const { buildAuthorizationUrl, calculatePKCECodeChallenge, randomNonce, randomPKCECodeVerifier, randomState } =
        await library()
      const [state, nonce, verifier] = [randomState(), randomNonce(), randomPKCECodeVerifier()]
      const id = randomBytes(32).toString('base64url')
      pending.set(id, { state, nonce, verifier, endsAt: clock() + LONGEST_MS })
      const [oldest] = pending.keys()
      if (pending.size > MOST && oldest !== undefined) pending.delete(oldest)
      void reply.setCookie(cookie, id, options)
      return buildAuthorizationUrl(issuer, {
        redirect_uri: `${url}/console/callback`,
        scope: settings.scopes,
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }).href
    },
    async finish(request, reply) {
      const id = request.cookies[cookie] ?? ''
      const begun = pending.get(id)
      pending.delete(id)
      void reply.clearCookie(cookie, options)
      if (begun === undefined || clock() >= begun.endsAt)
        throw new Error('this browser has begun no sign-in, or it took too long')
      const { authorizationCodeGrant } = await library()
      const tokens = await authorizationCodeGrant(await client(), answerAddress(request.originalUrl), {
        pkceCodeVerifier: begun.verifier,
        expectedState: begun.state,
        expectedNonce: begun.nonce,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (claims === undefined) throw new Error('the issuer sent no ID token')
      if (!SUBJECT.test(claims.sub)) throw new Error('the subject of the ID token is not acceptable')
      const roles = rolesIn(valueAt(claims, settings.rolesClaim))
      const has = (wanted: readonly string[]): boolean => wanted.some((role) => roles.includes(role))
      const name = `openid:${claims.sub}`
      if (has(settings.operators)) return { name, role: 'operator' }
      return has(settings.viewers) ? { name, role: 'viewer' } : 'no-role'
    },
  }
}

/** OpenID Connect Core 1.0 §2: at most 255 ASCII characters. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/

function rolesIn(claim: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(claim) ? claim : [claim]
  return all.filter((role) => typeof role === 'string')
}
