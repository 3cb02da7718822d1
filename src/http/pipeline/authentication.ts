/** Authenticates a request, and counts it against the caller's limit of requests. */
import type { Authenticate, Authenticated } from '../../auth/authenticate.ts'
import { callerKey } from '../../core/decide/principal.ts'
import type { Credential } from '../../core/decide/credential.ts'
import type { Rate } from '../../core/decide/rules.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import type { Limiter } from '../../limits/port.ts'
import type { Caller, Exchange } from './stages.ts'

export interface AuthenticationParts {
  readonly authenticate: Authenticate
  readonly isRevoked: (userId: string, credential: Credential) => boolean
  readonly requests: Rate | 'off'
  readonly limiter: Limiter
  readonly onFault: (error: unknown, requestId: string) => void
  readonly clock: () => number
}

export interface Authentication {
  authenticate(exchange: Exchange, connection: object): Caller | Refusal | Promise<Caller | Refusal>
  /** Why a credential that was valid on arrival no longer is; null if it is. */
  readonly invalidity: (caller: Pick<Caller, 'principal' | 'credential'>) => Refusal | null
}

export function makeAuthentication(parts: AuthenticationParts): Authentication {
  const { clock, isRevoked, limiter, requests } = parts

  const invalidity: Authentication['invalidity'] = ({ principal, credential }) => {
    if (credential === null) return null
    if (isRevoked(principal.id, credential)) return refuse('token-revoked')
    return credential.expiresAt !== undefined && credential.expiresAt <= clock() ? refuse('token-expired') : null
  }

  const admit = ({ head, record }: Exchange, verified: Authenticated | Refusal): Caller | Refusal | Promise<Caller | Refusal> => {
    if (verified.outcome === 'refused') return verified
    const { principal, credential } = verified
    record.principal = principal
    const invalid = invalidity(verified)
    if (invalid !== null) return invalid
    const caller = { principal, credential, key: callerKey(principal, head.address) }
    if (requests === 'off') return caller
    return limiter
      .take('requests', caller.key, requests)
      .then((limit) => (limit === null ? caller : refuse('requests-limited', { limit })))
  }

  return {
    authenticate(exchange, connection) {
      const { id, lines } = exchange.head
      const failed = (error: unknown): Refusal => {
        parts.onFault(error, id)
        return refuse('identity-failed')
      }
      let verified: ReturnType<Authenticate>
      try {
        verified = parts.authenticate(lines.get('authorization')?.[0], connection)
      } catch (error) {
        return failed(error)
      }
      if (!(verified instanceof Promise)) return admit(exchange, verified)
      return verified.catch(failed).then((one) => admit(exchange, one))
    },
    invalidity,
  }
}
