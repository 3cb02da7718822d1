/** Sessions of operators in browsers. They are in memory: a restart ends them. */
import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

export interface Operator {
  /** For the log: who did it. */
  readonly name: string
  /** A viewer changes nothing. */
  readonly role: 'operator' | 'viewer'
}

export interface Sessions {
  /**
   * Always under a new id, which no other page can have set before (session fixation).
   * @param isValid asked for each request; the session ends when it is false
   */
  begin(request: FastifyRequest, reply: FastifyReply, operator: Operator, isValid: () => boolean): void
  of(request: FastifyRequest): Operator | null
  end(request: FastifyRequest, reply: FastifyReply): void
}

interface Session {
  readonly operator: Operator
  readonly isValid: () => boolean
  readonly endsAt: number
  idleAt: number
}

const IDLE_MS = 30 * 60_000
const LONGEST_MS = 8 * 3600_000
/** Most sessions, and of one operator; the oldest ends for a new one, so that no operator signs others out. */
const MOST = 1000
const MOST_OF_ONE = 10

/** @param isSecure whether browsers reach the console by HTTPS */
export function cookieOf(name: string, isSecure: boolean) {
  return {
    // RFC 6265bis §4.1.3.2: no other host and no page without TLS can set a cookie with this prefix.
    name: isSecure ? `__Host-${name}` : name,
    // Lax, because the page of an issuer leads back to the console.
    options: { path: '/', httpOnly: true, sameSite: 'lax', secure: isSecure },
  } as const
}

/**
 * @param isSecure whether browsers reach the console by HTTPS
 * @param clock milliseconds since the epoch
 */
export function makeSessions(isSecure: boolean, clock: () => number): Sessions {
  const { name: cookie, options } = cookieOf('threadwarden', isSecure)
  const sessions = new Map<string, Session>()
  const idOf = ({ cookies }: FastifyRequest): string => cookies[cookie] ?? ''
  return {
    begin(request, reply, operator, isValid) {
      sessions.delete(idOf(request))
      const id = randomBytes(32).toString('base64url')
      const now = clock()
      const own = [...sessions].filter(([, session]) => session.operator.name === operator.name).map(([known]) => known)
      const [oldest] = own.length >= MOST_OF_ONE ? own : sessions.size >= MOST ? sessions.keys() : []
      if (oldest !== undefined) sessions.delete(oldest)
      sessions.set(id, { operator, isValid, endsAt: now + LONGEST_MS, idleAt: now + IDLE_MS })
      void reply.setCookie(cookie, id, options)
    },
    of(request) {
      const id = idOf(request)
      const session = sessions.get(id)
      if (session === undefined) return null
      const now = clock()
      if (now >= session.endsAt || now >= session.idleAt || !session.isValid()) {
        sessions.delete(id)
        return null
      }
      session.idleAt = now + IDLE_MS
      return session.operator
    },
    end(request, reply) {
      sessions.delete(idOf(request))
      void reply.clearCookie(cookie, options)
    },
  }
}
