/** Authenticates a request, and counts it against the caller's limit of requests. */
import type { Authenticate, Authenticated } from '../../auth/authenticate.ts'
import type { AuthenticateRequest } from '../../auth/request-credentials.ts'
import type { Principal } from '../../core/decide/principal.ts'
import type { Credential } from '../../core/decide/credential.ts'
import type { Rates } from '../../core/decide/limits.ts'
import { refuse, type Refusal } from '../../core/reasons.ts'
import type { Limiter } from '../../limits/port.ts'
import { takeRates } from './limit-leases.ts'
import type { Caller, Exchange } from './stages.ts'

export interface AuthenticationParts {
  readonly authenticate: Authenticate
  /** Null where no issuer has a credential cookie. */
  readonly authenticateWithCookies: AuthenticateRequest | null
  readonly isRevoked: (userId: string, credential: Credential) => boolean
  readonly requests: Rates
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
    const { principal, credential, sentIn } = verified
    record.principal = principal
    record.credential = sentIn
    const invalid = invalidity(verified)
    if (invalid !== null) return invalid
    const caller = { principal, credential, key: callerKey(principal, head.address) }
    if (requests === 'off') return caller
    return takeRates(limiter, 'requests', requests, { principal, caller: caller.key }).then((limit) =>
      limit === null ? caller : refuse('requests-limited', { limit }),
    )
  }

  return {
    authenticate(exchange, connection) {
      const { head } = exchange
      const failed = (error: unknown): Refusal => {
        parts.onFault(error, head.id)
        return refuse('identity-failed')
      }
      let verified: ReturnType<Authenticate>
      try {
        verified =
          parts.authenticateWithCookies === null
            ? parts.authenticate(head.lines.get('authorization')?.[0], connection)
            : parts.authenticateWithCookies(head, connection)
      } catch (error) {
        return failed(error)
      }
      if (!(verified instanceof Promise)) return admit(exchange, verified)
      return verified.catch(failed).then((one) => admit(exchange, one))
    },
    invalidity,
  }
}

/** Names the caller that a limit counts. No user id begins with `@`, so an address key never equals a user id. */
export function callerKey(principal: Principal, address: string): string {
  return principal.kind === 'user' ? principal.id : `@${network(address)}`
}

/** Keeps an IPv4 address whole and the first 64 bits of an IPv6 address: a subscriber gets that much (RFC 6177 §2). */
function network(written: string): string {
  // Some proxies append a port. With the port, every connection would count as a separate caller.
  const address = written.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1').replace(/^\[(.+)\](?::\d+)?$/, '$1')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped?.[1] !== undefined) return mapped[1]
  if (!address.includes(':')) return address
  const [head = '', tail] = address.toLowerCase().split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const gap = tail === undefined ? [] : Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
  const groups = [...before, ...gap, ...after].slice(0, 4)
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`
}
